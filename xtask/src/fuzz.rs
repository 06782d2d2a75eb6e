//! `cargo xtask fuzz`: random programs, every engine against the oracle.
//!
//! Program number i has the seed `--seed` + i, which decides everything about it, and whether it runs depth first
//! or, one in three, interleaved. A failing one is shrunk and printed, with the command that makes it again.

mod campaign;
pub mod language;
pub mod marks;
pub mod native;
pub mod openmp;
pub mod readers;

use std::time::Instant;

use anyhow::{Result, bail};
use clap::ValueEnum;
use dagsan_core::order::{self, Engine};
use dagsan_fuzz::{Class, Disagreement, Program, Schedule, Size, generate, judge_in, shrink};

use campaign::Campaign;

/// What a value is called on the command line.
fn value_name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Options of `fuzz`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many programs
    #[arg(long, default_value_t = 10_000)]
    programs: u64,
    /// Seed of the first program
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only programs of this class: sp, spawn-sync, structured-futures, futures, promises, isolated, all, locks, atomics, native, detached, children
    #[arg(long)]
    class: Option<Class>,
    /// Judge only this engine
    #[arg(long)]
    engine: Option<String>,
    /// Programs of about this many tasks; otherwise most are small, and some have up to 300
    #[arg(long)]
    tasks: Option<usize>,
    /// Threads
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
    jobs: usize,
    /// Print the programs themselves and what the engines say, instead of judging many
    #[arg(long)]
    show: bool,
}

impl Args {
    fn campaign(&self) -> Campaign {
        Campaign { programs: self.programs, seed: self.seed, jobs: self.jobs }
    }
}

/// Fuzzes, and fails at the first disagreement.
pub fn run(args: &Args) -> Result<()> {
    let engines: Vec<&'static Engine> = match &args.engine {
        Some(name) => vec![order::find(name)?],
        None => order::ENGINES.iter().chain([&order::EXPLORER]).collect(),
    };
    if args.show {
        return show(args, &engines);
    }
    let start = Instant::now();
    let tally = args.campaign().run(|seed, tally: &mut Tally| {
        let (class, program) = make(seed, args);
        match judge_in(&program, schedule(seed), &engines, Some(class)) {
            Ok(judgement) => {
                tally.add(&judgement);
                Ok(())
            }
            Err(_) => Err((seed, class, program)),
        }
    });
    let tally = match tally {
        Ok(tally) => tally,
        Err((seed, class, program)) => {
            report(args, &engines, seed, class, &program);
            bail!("an engine and the oracle disagree");
        }
    };
    println!(
        "{} programs agree in {:.1} s: {} racy, {} tasks, {} accesses; {} verdicts, {} refusals",
        args.programs,
        start.elapsed().as_secs_f64(),
        tally.racy,
        tally.tasks,
        tally.accesses,
        tally.verdicts,
        tally.refusals,
    );
    Ok(())
}

fn make(seed: u64, args: &Args) -> (Class, Program) {
    let class = args.class.unwrap_or(Class::ALL[(seed % Class::ALL.len() as u64) as usize]);
    let mut rng = fastrand::Rng::with_seed(seed);
    let size = args.tasks.map_or_else(|| Size::pick(&mut rng), |tasks| Size { tasks });
    (class, generate(class, &mut rng, size))
}

/// All classes come in each schedule: class and schedule have periods without a common factor.
fn schedule(seed: u64) -> Schedule {
    if seed.is_multiple_of(3) { Schedule::Interleaved(seed) } else { Schedule::DepthFirst }
}

#[derive(Default)]
struct Tally {
    racy: u64,
    tasks: u64,
    accesses: u64,
    verdicts: u64,
    refusals: u64,
}

impl Tally {
    fn add(&mut self, judgement: &dagsan_fuzz::Judgement) {
        self.racy += u64::from(!judgement.racy_bytes.is_empty());
        self.tasks += u64::from(judgement.outcome.tasks);
        self.accesses += judgement.outcome.accesses;
        let verdicts = judgement.verdicts.iter().filter(|verdict| verdict.races.is_ok()).count();
        self.verdicts += verdicts as u64;
        self.refusals += (judgement.verdicts.len() - verdicts) as u64;
    }
}

impl campaign::Tally for Tally {
    fn merge(&mut self, other: &Tally) {
        self.racy += other.racy;
        self.tasks += other.tasks;
        self.accesses += other.accesses;
        self.verdicts += other.verdicts;
        self.refusals += other.refusals;
    }
}

fn report(args: &Args, engines: &[&'static Engine], seed: u64, class: Class, program: &Program) {
    let schedule = schedule(seed);
    let judge = |program: &Program| judge_in(program, schedule, engines, Some(class));
    let Err(first) = judge(program) else {
        println!("seed {seed} fails now and then: the judge itself is not deterministic");
        return;
    };
    println!("{first}");
    println!("shrinking a program of {} tasks …", program.task_count());
    let same = |candidate: &Program| match judge(candidate) {
        Err(Disagreement { engine, .. }) => engine == first.engine,
        Ok(_) => false,
    };
    let small = shrink(program, &mut { same });
    println!("\n{small}");
    if let Schedule::Interleaved(seed) = schedule {
        println!("when it runs interleaved, with seed {seed}:");
    }
    if let Err(disagreement) = judge(&small) {
        println!("{disagreement}");
    }
    let engine = args.engine.as_ref().map(|name| format!(" --engine {name}")).unwrap_or_default();
    let tasks = args.tasks.map(|tasks| format!(" --tasks {tasks}")).unwrap_or_default();
    println!(
        "\nmake it again with:  cargo xtask fuzz --class {class} --seed {seed} --programs 1{tasks}{engine}"
    );
    println!("keep the small one:  crates/dagsan-fuzz/regressions/NAME.prog");
}

fn show(args: &Args, engines: &[&'static Engine]) -> Result<()> {
    for seed in args.campaign().seeds() {
        let (class, program) = make(seed, args);
        println!("// class {class}, seed {seed}\n{program}");
        crate::judge::print(&program, engines, Some(class))?;
    }
    Ok(())
}
