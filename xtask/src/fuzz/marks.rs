//! `cargo xtask fuzz-marks`: random functions under `cargo dagsan`, of which a reference says which bytes they touch.
//!
//! Functions come in batches: one crate, built once and run once. A function is judged by the bytes that the runtime has
//! noted of each of its strands, by what is in its memory at the end, and by the hash of what it has read. The smallest one
//! that fails in a batch is shrunk, many candidates in one build, and printed.

mod batch;
mod verdict;

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};
use dagsan_fuzz::marks::{BASE, Function, Processor, generate, interpret, smaller, write};
use indicatif::{ProgressBar, ProgressStyle};

use super::value_name;
use batch::{Builder, Profile, placed};
use verdict::Failure;

/// Options of `fuzz-marks`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many functions
    #[arg(long, default_value_t = 800)]
    count: u64,
    /// Seed of the first function
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many functions go into one build
    #[arg(long, default_value_t = 800)]
    batch: u64,
    /// How the functions are built
    #[arg(long, value_enum, default_value_t = Profile::Release)]
    profile: Profile,
    /// Which eliminations the pass makes (`DAGSAN_ELIM`)
    #[arg(long)]
    elim: Option<String>,
    /// Print the functions instead of judging them
    #[arg(long)]
    show: bool,
}

/// Fuzzes, and fails at the first batch with a disagreement.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let start = Instant::now();
    let processor = Processor {
        avx2: std::arch::is_x86_feature_detected!("avx2"),
        avx512: std::arch::is_x86_feature_detected!("avx512vl"),
    };
    if args.show {
        for number in 0..args.count {
            let function = generate(args.seed.wrapping_add(number), processor);
            println!("// seed {}\n{}\n{:?}\n", function.seed, write(&function, "f"), function.input);
        }
        return Ok(());
    }
    let builder = Builder::new(root, args.profile, args.elim.clone())?;
    let bar = ProgressBar::new(args.count).with_style(
        ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} functions, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let mut tally = Tally::default();
    let mut next = 0;
    while next < args.count {
        let end = args.count.min(next + args.batch.max(1));
        let functions = placed((next..end).map(|number| generate(args.seed.wrapping_add(number), processor)));
        let verdicts = builder.judge(&functions)?;
        let failing =
            functions.iter().zip(verdicts).filter_map(|(function, failure)| Some((function, failure?)));
        if let Some((function, failure)) = failing.min_by_key(|(function, _)| function.size()) {
            bar.finish_and_clear();
            return report(args, &builder, function, failure);
        }
        functions.iter().for_each(|function| tally.add(function));
        bar.inc(end - next);
        next = end;
    }
    bar.finish_and_clear();
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{} functions agree in {seconds:.1} s ({:.0} a second): {} statements, {} executed, {} strands shown, {} panics",
        tally.functions,
        tally.functions as f64 / seconds,
        tally.statements,
        tally.executed,
        tally.shown,
        tally.panics,
    );
    Ok(())
}

#[derive(Default)]
struct Tally {
    functions: usize,
    statements: usize,
    executed: usize,
    shown: usize,
    panics: usize,
}

impl Tally {
    fn add(&mut self, function: &Function) {
        self.functions += 1;
        self.statements += function.size();
        if let Ok(expected) = interpret(function, BASE) {
            self.executed += expected.steps;
            self.shown += expected.shown.len();
            self.panics += usize::from(expected.panics);
        }
    }
}

fn report(args: &Args, builder: &Builder, function: &Function, failure: Failure) -> Result<()> {
    println!("seed {}: {failure}\nshrinking a function of {} statements …", function.seed, function.size());
    let (small, failure) = shrink(builder, function.clone(), failure)?;
    println!("\n{}\n{:?}\n\n{failure}", write(&small, "f"), small.input);
    let elim = args.elim.as_ref().map(|list| format!(" --elim {list}")).unwrap_or_default();
    let (seed, profile) = (function.seed, value_name(&args.profile));
    println!(
        "\nmake it again with:  cargo xtask fuzz-marks --seed {seed} --count 1 --profile {profile}{elim}"
    );
    bail!("a function's marks and the reference disagree")
}

/// The smallest function found that fails in the same way. A build takes seconds, so all candidates of a round are in one.
fn shrink(builder: &Builder, mut best: Function, mut failure: Failure) -> Result<(Function, Failure)> {
    loop {
        let mut all = smaller(&best);
        all.sort_by_key(Function::size);
        let all = placed(all);
        if all.is_empty() {
            return Ok((best, failure));
        }
        let verdicts = builder.judge(&all)?;
        let mut failing = all.into_iter().zip(verdicts).filter_map(|(function, how)| Some((function, how?)));
        match failing.find(|(_, how)| how.is_like(&failure)) {
            Some(next) => (best, failure) = next,
            None => return Ok((best, failure)),
        }
    }
}
