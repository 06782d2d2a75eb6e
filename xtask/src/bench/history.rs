//! `cargo xtask bench history`: nanoseconds per run of bytes in the access history, without a front end.
//!
//! One task waits in the background, so that nothing is quiescent unless it is said to be. Every figure is
//! the best of several runs.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;
use dagsan_core::order::{self, Options};
use dagsan_core::{
    AccessKind, Bytes, Detector, Event, LINE_BYTES, Location, Run, SiteId, Stream, TaskId, TaskKind,
};

/// Options of `bench history`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many lines of 64 bytes are touched
    #[arg(long, default_value_t = 1 << 20)]
    lines: u64,
    /// Of how many runs the best is shown
    #[arg(long, default_value_t = 5)]
    repeat: u32,
}

const MAIN: TaskId = TaskId::MAIN;

/// A stream, and how long deliveries have taken.
struct Timed {
    stream: Stream<Detector>,
    seconds: f64,
}

impl Timed {
    fn new() -> Timed {
        Timed {
            stream: Stream::new(Detector::new(order::default_engine(), Options::default())),
            seconds: 0.0,
        }
    }

    /// A task in a finish of its own that makes these accesses.
    fn task(&mut self, runs: &[Run]) -> Result<()> {
        let child = TaskId(self.stream.structure().task_count());
        self.stream.event(Event::FinishBegin { task: MAIN })?;
        self.stream.event(Event::Spawn { parent: MAIN, child, kind: TaskKind::Async })?;
        let start = Instant::now();
        self.stream.runs(child, black_box(runs))?;
        self.seconds += start.elapsed().as_secs_f64();
        self.stream.event(Event::TaskEnd { task: child })?;
        self.stream.event(Event::FinishEnd { task: MAIN })?;
        Ok(())
    }

    fn background(&mut self) -> Result<()> {
        let child = TaskId(self.stream.structure().task_count());
        Ok(self.stream.event(Event::Spawn { parent: MAIN, child, kind: TaskKind::Future })?)
    }

    /// How long all deliveries since the last call took.
    fn take(&mut self) -> f64 {
        std::mem::take(&mut self.seconds)
    }
}

/// Runs over lines in the order of `line`.
fn runs(lines: u64, kind: AccessKind, site: u32, line: impl Fn(u64) -> u64) -> Vec<Run> {
    let site = SiteId::new(site).unwrap_or(SiteId::new(0).expect("the first"));
    let run = |i| Run { at: Location { line: line(i), mask: u64::MAX }, kind, site, atomic: false };
    (0..lines).map(run).collect()
}

/// Measures, and prints.
pub fn run(args: &Args) -> Result<()> {
    let lines = args.lines;
    let writes = runs(lines, AccessKind::Write, 1, |i| i);
    let reads = runs(lines, AccessKind::Read, 2, |i| i);
    // An odd factor visits every line of a power of two once.
    let mask = lines.next_power_of_two() - 1;
    let scattered = runs(lines, AccessKind::Write, 3, |i| i.wrapping_mul(0x9e37_79b1) & mask);
    let mut best = [f64::INFINITY; 7];
    for _ in 0..args.repeat {
        let mut timed = Timed::new();
        timed.background()?;
        let mut figures = Vec::new();
        let measured = |timed: &mut Timed| timed.take() * 1e9 / lines as f64;
        timed.task(&writes)?;
        figures.push(measured(&mut timed));
        timed.task(&reads)?;
        figures.push(measured(&mut timed));
        timed.task(&writes)?;
        figures.push(measured(&mut timed));
        timed.task(&scattered)?;
        figures.push(measured(&mut timed));
        // Small deliveries, as from tasks of a few lines each.
        for runs in reads.chunks(4) {
            timed.task(runs)?;
        }
        figures.push(measured(&mut timed));
        let start = Instant::now();
        for i in 0..lines {
            timed.stream.erase(Bytes::new(i * LINE_BYTES, LINE_BYTES)?)?;
        }
        figures.push(start.elapsed().as_secs_f64() * 1e9 / lines as f64);
        // Once much, then over and over little, with a quiescent point in between.
        let mut timed = Timed::new();
        timed.task(&writes)?;
        let start = Instant::now();
        for _ in 0..10_000 {
            timed.task(&writes[..64])?;
        }
        figures.push(start.elapsed().as_secs_f64() * 1e9 / 10_000.0);
        best.iter_mut().zip(figures).for_each(|(best, figure)| *best = best.min(figure));
    }
    let what = [
        "first writes, ns per line",
        "reads after a join, ns per line",
        "writes after a join, ns per line",
        "writes in a scattered order, ns per line",
        "reads by tasks of 4 lines, ns per line",
        "erasing line by line, ns per line",
        "a task of 64 lines and a quiescent point, ns",
    ];
    for (what, figure) in what.iter().zip(best) {
        println!("{figure:9.1}  {what}");
    }
    Ok(())
}
