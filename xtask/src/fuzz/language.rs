//! `cargo xtask fuzz-language`: random programs of the task language; engines, eliminations and explorations.
//!
//! The program of a seed and a class is always the same. What must hold of it is in `judge.rs`; a program of which it does
//! not is shrunk and printed, with the command that makes it again.

mod judge;

use std::time::Instant;

use anyhow::{Result, bail};
use dagsan_fuzz::source::{SourceClass, generate, shrink};
use dagsan_lang::End;

use super::campaign::{self, Campaign};
use judge::{Disagreement, Judgement, judge};

/// Options of `fuzz-language`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many programs
    #[arg(long, default_value_t = 10_000)]
    programs: u64,
    /// Seed of the first program
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only programs of this class: loops, tasks, promises, isolated, regions, all, sections
    #[arg(long)]
    class: Option<SourceClass>,
    /// Threads
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
    jobs: usize,
    /// Print the programs themselves and what is said of them, instead of judging many
    #[arg(long)]
    show: bool,
}

impl Args {
    fn campaign(&self) -> Campaign {
        Campaign { programs: self.programs, seed: self.seed, jobs: self.jobs }
    }

    fn class(&self, seed: u64) -> SourceClass {
        self.class.unwrap_or(SourceClass::ALL[(seed % SourceClass::ALL.len() as u64) as usize])
    }
}

/// Fuzzes, and fails at the first disagreement.
pub fn run(args: &Args) -> Result<()> {
    if args.show {
        return show(args);
    }
    let start = Instant::now();
    let tally = args.campaign().run(|seed, tally: &mut Tally| {
        let class = args.class(seed);
        match judged(&generate(seed, class), class) {
            Ok(judgement) => {
                tally.add(&judgement);
                Ok(())
            }
            Err(disagreement) => Err((seed, disagreement)),
        }
    });
    let tally = match tally {
        Ok(tally) => tally,
        Err((seed, disagreement)) => {
            report(args.class(seed), seed, &disagreement);
            bail!("two that should agree do not");
        }
    };
    println!(
        "{} programs agree in {:.1} s: {} racy, {} do not finish, {} tasks; {} verdicts, {} refusals; \
         the orders of {} compared: {}, {} of them enough",
        args.programs,
        start.elapsed().as_secs_f64(),
        tally.racy,
        tally.unfinished,
        tally.tasks,
        tally.verdicts,
        tally.refusals,
        tally.compared,
        tally.orders,
        tally.enough,
    );
    Ok(())
}

/// Judges a generated program, which must compile.
fn judged(source: &str, class: SourceClass) -> Result<Judgement, Disagreement> {
    judge(source, class).unwrap_or_else(|| {
        Err(Disagreement { who: "the generator".to_owned(), what: "the program does not compile".to_owned() })
    })
}

#[derive(Default)]
struct Tally {
    racy: u64,
    unfinished: u64,
    tasks: u64,
    verdicts: u64,
    refusals: u64,
    compared: u64,
    orders: u64,
    enough: u64,
}

impl Tally {
    fn add(&mut self, judgement: &Judgement) {
        self.racy += u64::from(judgement.racy);
        self.unfinished += u64::from(judgement.end != End::Finished);
        self.tasks += judgement.tasks;
        for (_, races) in &judgement.engines {
            *(if races.is_ok() { &mut self.verdicts } else { &mut self.refusals }) += 1;
        }
        if let Some((orders, enough)) = judgement.schedules {
            self.compared += 1;
            self.orders += orders;
            self.enough += enough;
        }
    }
}

impl campaign::Tally for Tally {
    fn merge(&mut self, other: &Tally) {
        self.racy += other.racy;
        self.unfinished += other.unfinished;
        self.tasks += other.tasks;
        self.verdicts += other.verdicts;
        self.refusals += other.refusals;
        self.compared += other.compared;
        self.orders += other.orders;
        self.enough += other.enough;
    }
}

fn report(class: SourceClass, seed: u64, first: &Disagreement) {
    let source = generate(seed, class);
    println!("{first}");
    println!("shrinking a program of {} lines …", source.lines().count());
    let mut last = None;
    let small = shrink(&source, class, &mut |candidate| match judge(candidate, class) {
        Some(Err(disagreement)) if disagreement.who == first.who => {
            last = Some(disagreement);
            true
        }
        _ => false,
    });
    println!("\n{small}");
    if let Some(disagreement) = last {
        println!("{disagreement}");
    }
    println!("\nmake it again with:  cargo xtask fuzz-language --class {class} --seed {seed} --programs 1");
    println!(
        "keep the small one:  crates/dagsan-lang/tests/regressions/NAME.task, or corpus/ if it is about orders"
    );
}

fn show(args: &Args) -> Result<()> {
    for seed in args.campaign().seeds() {
        let class = args.class(seed);
        let source = generate(seed, class);
        println!("// class {class}, seed {seed}\n{source}");
        let judgement = match judged(&source, class) {
            Ok(judgement) => judgement,
            Err(disagreement) => bail!("{disagreement}"),
        };
        for (engine, races) in &judgement.engines {
            let name = engine.name;
            match races {
                Err(error) => println!("{name:<22} {error}"),
                Ok(races) if races.is_empty() => println!("{name:<22} race-free"),
                Ok(races) => {
                    println!("{name:<22} race on {}", Vec::from_iter(races.iter().cloned()).join(", "));
                }
            }
        }
        match judgement.end {
            End::Failed(failure) => println!("{:<22} fails: {}", "the run", failure.message),
            End::Deadlock(_) => println!("{:<22} deadlock", "the run"),
            End::Finished | End::Refused(_) | End::Stopped => {}
        }
        if let Some((orders, enough)) = judgement.schedules {
            println!("{:<22} {orders}, {enough} of them enough", "orders");
        }
        println!();
    }
    Ok(())
}
