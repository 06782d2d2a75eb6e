//! `cargo xtask bench papers`: the tables of papers 001 (SF-Order), 002 (Zipper) and 003 (Nakade), their figures beside ours.
//!
//! Their programs are not here: those in `papers/programs` are written anew, after what the papers say of them.
//! Figures of theirs were measured on other machines, on Java programs inside a model checker. Only verdicts, numbers of
//! states and growth can be compared; times show the shape of a table.

mod load;
mod nakade;
mod sf_order;
mod table;
mod zipper;

use std::time::{Duration, Instant};

use clap::ValueEnum;

/// Options of `bench papers`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this table
    #[arg(long)]
    table: Option<Table>,
    /// Fewer and shorter measurements
    #[arg(long)]
    quick: bool,
}

/// The tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Table {
    /// SF-Order: base, reach and full, on one and two workers
    #[value(name = "4")]
    SfOrder,
    /// Zipper: `cg` and `zipper` on 27 programs, and how they grow
    #[value(name = "3")]
    Zipper,
    /// Nakade: 16 programs, states and verdicts
    #[value(name = "7.1")]
    States,
    /// Nakade: on the fly against the finished graph
    #[value(name = "7.2")]
    OnTheFly,
}

/// How long to measure.
#[derive(Debug, Clone, Copy)]
struct Effort {
    /// Each figure is the best of as many runs as fit in this time, and of three at least.
    measure: Duration,
    /// Plain enumeration of schedules is given up after this time.
    enumerate: Duration,
    /// The largest programs of the growing series have so many tasks.
    most_tasks: u64,
}

const FULL: Effort =
    Effort { measure: Duration::from_millis(300), enumerate: Duration::from_secs(30), most_tasks: 6_400 };
const QUICK: Effort =
    Effort { measure: Duration::from_millis(20), enumerate: Duration::from_secs(1), most_tasks: 1_600 };

/// Prints the tables.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let effort = if args.quick { &QUICK } else { &FULL };
    let wanted = |table| args.table.is_none_or(|only| only == table);
    if wanted(Table::SfOrder) {
        sf_order::figure_4(effort)?;
    }
    if wanted(Table::Zipper) {
        zipper::table_3(effort)?;
        zipper::growth(effort)?;
    }
    if wanted(Table::States) {
        nakade::table_7_1(effort)?;
        nakade::twelve()?;
    }
    if wanted(Table::OnTheFly) {
        nakade::table_7_2(effort)?;
    }
    Ok(())
}

/// The best time of several runs, in milliseconds. `work` measures itself, so that what it prepares is left out.
fn best_ms(effort: &Effort, mut work: impl FnMut() -> anyhow::Result<Duration>) -> anyhow::Result<f64> {
    let start = Instant::now();
    let (mut best, mut runs) = (Duration::MAX, 0);
    while runs < 3 || (start.elapsed() < effort.measure && runs < 1_000) {
        best = best.min(work()?);
        runs += 1;
    }
    Ok(ms(best))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Whether there is a race, in the words of table 7.1.
fn verdict(race: bool) -> &'static str {
    if race { "race" } else { "no race" }
}
