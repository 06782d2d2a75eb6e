//! `cargo xtask bench lang`: the interpreter of the task language, plain and with checks, on the papers' kernels.
//!
//! Every kernel is run plainly, with checks and all static eliminations, with checks and none, in turn,
//! several times; of each the best time counts. A slowdown is a ratio of two times of one run of the
//! benchmark.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use dagsan_core::order::{self, Engine};
use dagsan_core::{Detector, Error};
use dagsan_lang::{CompileOptions, Elimination, Eliminations, End, Limits, Program, Run};

/// The kernels: name and text.
const KERNELS: [(&str, &str); 6] = [
    ("simple loop", include_str!("kernels/simple.task")),
    ("matmul", include_str!("kernels/matmul.task")),
    ("mergesort", include_str!("kernels/mergesort.task")),
    ("stencil", include_str!("kernels/stencil.task")),
    ("lu", include_str!("kernels/lu.task")),
    ("knapsack", include_str!("kernels/knapsack.task")),
];

/// Options of `bench lang`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only kernels whose name contains this
    #[arg(long, default_value = "")]
    kernel: String,
    /// The engine that judges
    #[arg(long, default_value = "dag")]
    engine: String,
    /// Runs of which the best counts
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Also print how many accesses each elimination left without a check
    #[arg(long)]
    eliminations: bool,
}

/// Runs the benchmark and prints the table.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let engine = order::find(&args.engine)?;
    println!(
        "{:<12} {:>9} {:>8} {:>8} {:>9} {:>7} {:>10} {:>7}",
        "kernel", "tasks", "Mops", "plain ms", "Mops/s", "checks", "without", "engine"
    );
    for (name, source) in KERNELS.iter().filter(|(name, _)| name.contains(&args.kernel)) {
        kernel(name, source, engine, args).with_context(|| format!("kernel {name}"))?;
    }
    println!("\nchecks: slowdown with checks and all eliminations; without: and no elimination");
    Ok(())
}

fn kernel(name: &str, source: &str, engine: &'static Engine, args: &Args) -> anyhow::Result<()> {
    let compile = |eliminations, checks, count| {
        let options = CompileOptions { eliminations, checks, count };
        let program = Program::compile(source, &options);
        program.map_err(|diagnostics| anyhow::anyhow!("{}", diagnostics[0]))
    };
    let plain = compile(Eliminations::all(), false, false)?;
    let checked = compile(Eliminations::all(), true, false)?;
    let unreduced = compile(Eliminations::none(), true, false)?;
    let limits = Limits::default();
    let mut best = [Duration::MAX; 3];
    let (mut operations, mut tasks) = (0, 0);
    for _ in 0..args.runs.max(1) {
        let (time, run) = timed(|| plain.run_plain(&limits));
        finished(&run)?;
        (operations, tasks) = (run.counts.operations, run.tasks.len());
        best[0] = best[0].min(time);
        for (program, best) in [&checked, &unreduced].into_iter().zip(&mut best[1..]) {
            let mut detector = Detector::new(engine, order::Options::default());
            let (time, run) = timed(|| program.run(&limits, &mut detector));
            if let End::Refused(Error::Unsupported { .. }) = run.end {
                continue;
            }
            finished(&run)?;
            drop(run);
            detector.finish()?;
            anyhow::ensure!(detector.races().is_empty(), "the kernel has a race: {:?}", detector.races()[0]);
            *best = (*best).min(time);
        }
    }
    let seconds = best[0].as_secs_f64();
    let slowdown = |time: Duration| match time {
        Duration::MAX => "-".to_owned(),
        time => format!("{:.2}x", time.as_secs_f64() / seconds),
    };
    println!(
        "{name:<12} {tasks:>9} {:>8.1} {:>8.0} {:>9.0} {:>7} {:>10} {:>7}",
        operations as f64 / 1e6,
        seconds * 1e3,
        operations as f64 / 1e6 / seconds,
        slowdown(best[1]),
        slowdown(best[2]),
        engine.name
    );
    if args.eliminations {
        let counting = compile(Eliminations::all(), true, true)?;
        let mut detector = Detector::new(engine, order::Options::default());
        let counts = counting.run(&limits, &mut detector).counts;
        print!("    {} accesses, {} checks made; without a check:", counts.accesses, counts.checks);
        for (elimination, count) in Elimination::ALL.iter().zip(counts.eliminated) {
            print!(" {} {count}", elimination.name());
        }
        println!();
    }
    Ok(())
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

fn finished(run: &Run<'_>) -> anyhow::Result<()> {
    match &run.end {
        End::Finished => Ok(()),
        other => bail!("the kernel did not finish: {other:?}"),
    }
}
