//! `cargo xtask bench order`: the order engines alone, over growing programs.
//!
//! Each program is recorded once and fed to every engine that supports it: first its events alone, then
//! with the questions its own accesses would raise ("near"), then with strands picked at random ("far").
//! Near ones are asked in every other block of strands, and cost the difference between the blocks; far
//! ones are timed one by one. The best of several runs counts, of differences the median.

use std::time::{Duration, Instant};

use anyhow::Context;
use dagsan_core::order::{self, Engine, JoinOrder, Options, Search};

use super::script::{Answers, Asking, Script};
use super::shapes::SHAPES;

/// Options of `bench order`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only programs whose name contains this
    #[arg(long, default_value = "")]
    shape: String,
    /// Only this engine
    #[arg(long)]
    engine: Option<String>,
    /// Leave out programs with more tasks
    #[arg(long, default_value_t = 1_000_000)]
    max_tasks: u32,
    /// Runs of which the best counts
    #[arg(long, default_value_t = 5)]
    runs: u32,
    /// Also print the searches of `drdp` in all four orders (the paper's table 3)
    #[arg(long)]
    visits: bool,
}

/// Engines whose cost is known to be quadratic are left out of programs larger than this.
fn largest(engine: &Engine, shape: &str) -> u32 {
    match engine.name {
        "vector-clock" | "closure" => 10_000,
        // A bitmap of all futures before it, for each: k²/16 bytes.
        "sf-order" if shape.contains("futures") => 100_000,
        _ => u32::MAX,
    }
}

/// Runs the benchmark and prints the table.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let only = args.engine.as_deref().map(order::find).transpose()?;
    println!(
        "{:<28} {:>9} {:>9} {:<13} {:>8} {:>8} {:>9} {:>10}",
        "program", "tasks", "gets", "engine", "ns/event", "ns/near", "ns/far", "bytes/task"
    );
    for shape in SHAPES.iter().filter(|shape| shape.name.contains(&args.shape)) {
        for &size in shape.sizes.iter().filter(|&&size| size <= args.max_tasks) {
            let script = (shape.build)(size);
            let takes = |engine: &&Engine| {
                engine.order(Options::default()).is_some()
                    && script.constructs().iter().all(|&construct| engine.supports(construct))
                    && only.is_none_or(|only| std::ptr::eq(only, *engine))
                    && size <= largest(engine, shape.name)
            };
            let engines: Vec<&Engine> = order::ENGINES.iter().filter(takes).collect();
            let costs = measure(&script, &engines, args.runs).with_context(|| shape.name)?;
            for (engine, mut cost) in engines.iter().zip(costs) {
                println!(
                    "{:<28} {:>9} {:>9} {:<13} {:>8.1} {:>8.1} {:>9.1} {:>10.1}",
                    shape.name,
                    script.task_count,
                    script.gets,
                    engine.name,
                    cost.events / script.events as f64,
                    cost.near(),
                    cost.far,
                    cost.memory as f64 / f64::from(script.task_count)
                );
            }
            if args.visits && script.gets > 0 {
                print_visits(&script)?;
            }
        }
    }
    Ok(())
}

/// Best times in nanoseconds.
struct Cost {
    /// Of the events alone.
    events: f64,
    /// Of a near question, in each run.
    near: Vec<f64>,
    /// Of a far question.
    far: f64,
    memory: usize,
}

impl Cost {
    /// As a difference it may come out too small as well as too large: the median counts.
    fn near(&mut self) -> f64 {
        self.near.sort_by(f64::total_cmp);
        self.near[self.near.len() / 2].max(0.0)
    }
}

/// The engines take turns, so that a machine that changes its speed does so for all of them.
fn measure(script: &Script, engines: &[&Engine], runs: u32) -> anyhow::Result<Vec<Cost>> {
    let new = |_: &_| Cost { events: f64::MAX, near: Vec::new(), far: f64::MAX, memory: 0 };
    let mut costs: Vec<Cost> = engines.iter().map(new).collect();
    let few = (script.strands / 500).max(1);
    let clock = cost_of_the_clock();
    for _ in 0..runs.max(1) {
        for (engine, cost) in engines.iter().zip(&mut costs) {
            let (elapsed, _, memory) = time(script, engine, Asking::Nothing)?;
            cost.events = cost.events.min(elapsed);
            cost.memory = memory;
            let (_, answers, _) = time(script, engine, Asking::Near)?;
            let [without, with] = answers.blocks.map(|time| time.as_nanos() as f64);
            cost.near.push((with - without) / answers.asked.max(1) as f64);
            let (_, answers, _) = time(script, engine, Asking::Far(few))?;
            let each = answers.time.as_nanos() as f64 / answers.asked.max(1) as f64;
            cost.far = cost.far.min((each - clock).max(0.0));
        }
    }
    Ok(costs)
}

/// What looking at the clock twice adds to what is measured in between.
fn cost_of_the_clock() -> f64 {
    let looks = 100_000;
    let total: Duration = (0..looks).map(|_| Instant::now().elapsed()).sum();
    total.as_nanos() as f64 / f64::from(looks)
}

fn time(script: &Script, engine: &Engine, asking: Asking) -> anyhow::Result<(f64, Answers, usize)> {
    let mut order = engine.order(Options::default()).context("only order engines are measured")?;
    let start = Instant::now();
    let answers = script.replay(&mut *order, asking)?;
    let elapsed = start.elapsed().as_nanos() as f64;
    if asking == Asking::Near {
        let no = answers.asked - answers.yes;
        anyhow::ensure!(no == 0, "{} says that {no} of {} are parallel", engine.name, answers.asked);
    }
    Ok((elapsed, answers, order.memory()))
}

fn print_visits(script: &Script) -> anyhow::Result<()> {
    let drdp = order::find("drdp")?;
    if !script.constructs().iter().all(|&construct| drdp.supports(construct)) {
        return Ok(());
    }
    for (search, name) in [(Search::DepthFirst, "dfs"), (Search::BreadthFirst, "bfs")] {
        for (joins, way) in
            [(JoinOrder::BackToFront, "back to front"), (JoinOrder::FrontToBack, "front to back")]
        {
            let mut order = drdp
                .order(Options { search, joins, ..Options::default() })
                .context("`drdp` is an order engine")?;
            script.replay(&mut *order, Asking::Near)?;
            if let Some(visits) = order.visits().filter(|visits| visits.searches > 0) {
                println!(
                    "    drdp {name}, {way}: tasks visited min {}, max {}, mean {:.2}",
                    visits.min,
                    visits.max,
                    visits.mean()
                );
            }
        }
    }
    Ok(())
}
