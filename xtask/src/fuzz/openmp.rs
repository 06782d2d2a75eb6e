//! `cargo xtask fuzz-openmp`: random OpenMP programs, compiled by `dagsan cc` and run by its runtime, against the oracle.
//!
//! Programs are interpreted, by one C file for each level, or compiled: then a batch of them is one file. Each runs in a process of its own. The racy bytes of the findings must be those of the oracle, which
//! judges the same run by the specification ([`dagsan_fuzz::openmp`]). A failing program is shrunk in rounds, many candidates in one file,
//! and printed as C.

mod batch;
mod case;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use dagsan_fuzz::openmp::{generate, smaller, write_batch};
use indicatif::{ProgressBar, ProgressStyle};

use super::native::Form;
use super::value_name;
use batch::{Builder, Level};
use case::{Case, Failure};

/// Options of `fuzz-openmp`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many programs
    #[arg(long, default_value_t = 400)]
    programs: u64,
    /// Seed of the first program
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How they are optimised; batches take turns otherwise
    #[arg(long, value_enum)]
    level: Option<Level>,
    /// Threads of each region; any number otherwise
    #[arg(long)]
    threads: Option<u32>,
    /// Compile the programs as C, instead of interpreting them
    #[arg(long)]
    compiled: bool,
    /// How many programs go into one file, if they are compiled
    #[arg(long, default_value_t = 50)]
    batch: u64,
    /// What the runtime is asked for besides, as in DAGSAN_OPTIONS
    #[arg(long, default_value = "")]
    options: String,
    /// Processes at a time
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
    jobs: usize,
    /// Print the programs as C, instead of judging them
    #[arg(long)]
    show: bool,
}

impl Args {
    fn form(&self) -> Form {
        if self.compiled { Form::Compiled } else { Form::Interpreted }
    }
}

/// What is counted.
#[derive(Default)]
struct Tally {
    programs: u64,
    building: Duration,
    racy: u64,
    tasks: u64,
    accesses: u64,
}

/// Fuzzes, and fails at the first disagreement.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let start = Instant::now();
    let case = |seed| Case { seed, program: generate(seed, args.threads) };
    if args.show {
        for number in 0..args.programs {
            let case = case(args.seed.wrapping_add(number));
            println!("// seed {}\n{}", case.seed, write_batch(&[&case.program]));
        }
        return Ok(());
    }
    let builder = Builder::new(root, &args.options)?;
    let bar = ProgressBar::new(args.programs).with_style(
        ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} programs, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let mut tally = Tally { building: start.elapsed(), ..Tally::default() };
    let mut levels = [Level::O0, Level::O2].into_iter().cycle();
    let mut next = 0;
    while next < args.programs {
        let end = args.programs.min(next + args.batch.max(1));
        let cases: Vec<Case> = (next..end).map(|number| case(args.seed.wrapping_add(number))).collect();
        next = end;
        let level = args.level.or_else(|| levels.next()).unwrap_or(Level::O2);
        let begin = Instant::now();
        let batch = builder.build(&cases, level, args.form())?;
        tally.building += begin.elapsed();
        for (case, judged) in cases.iter().zip(batch.run(&cases, args.jobs, || bar.inc(1))?) {
            let expected = match judged {
                Ok(expected) => expected,
                Err(failure) => {
                    bar.finish_and_clear();
                    return report(args, &builder, level, case, failure);
                }
            };
            tally.programs += 1;
            tally.racy += u64::from(!expected.racy.is_empty());
            tally.tasks += u64::from(expected.tasks);
            tally.accesses += expected.accesses;
        }
    }
    bar.finish_and_clear();
    println!(
        "{} programs agree in {:.1} s, {:.1} s of it to build them: {} racy, {} tasks, {} accesses",
        tally.programs,
        start.elapsed().as_secs_f64(),
        tally.building.as_secs_f64(),
        tally.racy,
        tally.tasks,
        tally.accesses,
    );
    Ok(())
}

fn report(args: &Args, builder: &Builder, level: Level, case: &Case, failure: Failure) -> Result<()> {
    let name = value_name(&level);
    println!("seed {}, -{name}: {failure}", case.seed);
    println!("shrinking a program of {} statements …", case.program.len());
    let (small, failure) = shrink(builder, level, case, failure, args)?;
    println!("\n{}\n-{name}: {failure}", write_batch(&[&small.program]));
    let threads = args.threads.map(|threads| format!(" --threads {threads}")).unwrap_or_default();
    let compiled = if args.compiled { " --compiled" } else { "" };
    let options = match args.options.as_str() {
        "" => String::new(),
        options => format!(" --options {options}"),
    };
    println!(
        "make it again with:  cargo xtask fuzz-openmp --seed {} --programs 1 --level {name}{threads}{compiled}{options}",
        case.seed
    );
    println!("keep the small one, in a user's words:  corpus/openmp/NAME.c");
    bail!("a program and the oracle disagree")
}

/// About how many statements go into one file of candidates.
const ROUND: usize = 3000;

/// The smallest program found that fails in the same way, and how it does.
fn shrink(
    builder: &Builder,
    level: Level,
    case: &Case,
    mut failure: Failure,
    args: &Args,
) -> Result<(Case, Failure)> {
    let mut best = Case { seed: case.seed, program: case.program.clone() };
    'rounds: loop {
        let mut candidates = smaller(&best.program);
        while !candidates.is_empty() {
            let mut statements = 0;
            let is_over = |program: &_| {
                statements += dagsan_fuzz::openmp::Program::len(program);
                statements > ROUND
            };
            let end = candidates.iter().position(is_over).map_or(candidates.len(), |at| at.max(1));
            let rest = candidates.split_off(end);
            let cases: Vec<Case> =
                candidates.into_iter().map(|program| Case { seed: case.seed, program }).collect();
            let judged = builder.build(&cases, level, args.form())?.run(&cases, args.jobs, || {})?;
            let mut failing = cases.into_iter().zip(judged).filter_map(|(case, judged)| {
                let how = judged.err().filter(|how| how.is_like(&failure))?;
                Some((case, how))
            });
            if let Some((smaller, how)) = failing.next() {
                drop(failing);
                println!("  {} statements", smaller.program.len());
                (best, failure) = (smaller, how);
                continue 'rounds;
            }
            drop(failing);
            candidates = rest;
        }
        return Ok((best, failure));
    }
}
