//! `cargo xtask fuzz-native`: random programs as native Rust under `cargo dagsan`, against the oracle.
//!
//! Programs are interpreted, by one crate that `cargo dagsan build` builds once, or compiled: then they come in batches of one crate.
//! Either way there is a process per program and engine. The kept counterexamples come first, with every engine; random programs
//! have one engine each, by chance. A failing program is shrunk in rounds, many candidates in one build, and printed.

mod batch;
mod case;
mod change;
mod shrink;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use dagsan_core::order::{self, Engine};
use dagsan_fuzz::Class;
use indicatif::{ProgressBar, ProgressStyle};

use super::value_name;
use batch::{Builder, Profile};
pub use batch::{Form, wait};
use case::{Case, Failure, Tasks};

/// Options of `fuzz-native`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many programs
    #[arg(long, default_value_t = 400)]
    programs: u64,
    /// Seed of the first program
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Compile the programs as Rust, instead of interpreting them
    #[arg(long)]
    compiled: bool,
    /// How many programs go into one build, if they are compiled. The runtime is optimised with them, which takes as long as 150
    /// of them
    #[arg(long, default_value_t = 1000)]
    batch: u64,
    /// What the runtime is asked for besides, as in DAGSAN_OPTIONS
    #[arg(long, default_value = "")]
    options: String,
    /// How the programs are built
    #[arg(long, value_enum, default_value_t = Profile::Release)]
    profile: Profile,
    /// Only programs of this class: see `cargo xtask fuzz`
    #[arg(long)]
    class: Option<Class>,
    /// Only this engine, on the programs that it supports
    #[arg(long)]
    engine: Option<String>,
    /// Tasks are threads. What a run shows depends on its order, which the program tells and the oracle is given
    #[arg(long)]
    threads: bool,
    /// Tasks are halves of rayon's joins, which run beside each other if `--options` has several workers
    #[arg(long, conflicts_with = "threads")]
    joins: bool,
    /// Processes at a time
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
    jobs: usize,
    /// Print the programs as Rust can say them, and what the oracle says, instead of judging them
    #[arg(long)]
    show: bool,
}

impl Args {
    fn tasks(&self) -> Tasks {
        match (self.threads, self.joins) {
            (true, _) => Tasks::Threads,
            (_, true) => Tasks::Joins,
            _ => Tasks::Both,
        }
    }
}

/// Where counterexamples are kept: those of the engines, in `native` those of this command, and in `threads` those of `--threads`.
const REGRESSIONS: &str = "crates/dagsan-fuzz/regressions";

/// How kept programs are written: without rayon and with it, each with the arena in a static and on the heap.
const NESTS: u64 = 4;

/// Fuzzes, and fails at the first disagreement.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let start = Instant::now();
    let engine = args.engine.as_deref().map(order::find).transpose()?;
    if args.show {
        for number in 0..args.programs {
            let case = Case::random(args.seed.wrapping_add(number), args.class, engine, args.tasks())?;
            println!("// {}\n{}{}{case}\n", case.name, nest_line(&case), case.said.program);
        }
        return Ok(());
    }
    let form = if args.compiled { Form::Compiled } else { Form::Interpreted };
    let builder = Builder::new(root, args.profile, form, &args.options)?;
    let bar = ProgressBar::new(args.programs).with_style(
        ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} programs, {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let mut tally = Tally { building: start.elapsed(), ..Tally::default() };
    let mut cases = kept(root, engine, args.tasks())?;
    let mut next = 0;
    loop {
        let end = args.programs.min(next + args.batch.max(1));
        for seed in next..end {
            cases.push(Case::random(args.seed.wrapping_add(seed), args.class, engine, args.tasks())?);
        }
        bar.set_message("building");
        if let Some((case, failure)) = batch(&builder, &cases, args.jobs, &mut tally, &bar)? {
            bar.finish_and_clear();
            return report(args, &builder, case, failure);
        }
        (next, cases) = (end, Vec::new());
        if next == args.programs {
            break;
        }
    }
    bar.finish_and_clear();
    println!(
        "{} programs agree in {:.1} s, {:.1} s of it to build them: {} racy, {} deadlock, {} tasks, {} accesses; {} runs; {} of {} statements could not \
         be said in Rust",
        tally.programs,
        start.elapsed().as_secs_f64(),
        tally.building.as_secs_f64(),
        tally.racy,
        tally.deadlocks,
        tally.tasks,
        tally.accesses,
        tally.runs,
        tally.changed,
        tally.statements,
    );
    println!("by engine: {}", tally.engines());
    Ok(())
}

#[derive(Default)]
struct Tally {
    programs: u64,
    building: Duration,
    racy: u64,
    deadlocks: u64,
    tasks: u64,
    accesses: u64,
    runs: u64,
    changed: usize,
    statements: usize,
    by_engine: Vec<(&'static str, u64)>,
}

impl Tally {
    fn add(&mut self, case: &Case) {
        self.programs += 1;
        self.racy += u64::from(!case.racy(order::default_engine()).is_empty());
        self.deadlocks += u64::from(case.outcome().deadlock);
        self.tasks += u64::from(case.outcome().tasks);
        self.accesses += case.outcome().accesses;
        self.runs += case.runs.len() as u64;
        self.changed += case.said.changed;
        self.statements += case.said.program.walk().count();
        for run in &case.runs {
            match self.by_engine.iter_mut().find(|(name, _)| *name == run.engine.name) {
                Some((_, runs)) => *runs += 1,
                None => self.by_engine.push((run.engine.name, 1)),
            }
        }
    }

    fn engines(&self) -> String {
        let engines: Vec<String> =
            self.by_engine.iter().map(|(name, runs)| format!("{name} {runs}")).collect();
        engines.join(", ")
    }
}

/// Builds and runs the cases; returns the first that fails, and how.
fn batch<'c>(
    builder: &Builder,
    cases: &'c [Case],
    jobs: usize,
    tally: &mut Tally,
    bar: &ProgressBar,
) -> Result<Option<(&'c Case, Failure)>> {
    let start = Instant::now();
    let program = builder.build(cases)?;
    tally.building += start.elapsed();
    bar.set_message("running");
    let failures = program.run(cases, jobs, || bar.inc(1))?;
    for (case, failure) in cases.iter().zip(failures) {
        if let Some(failure) = failure {
            return Ok(Some((case, failure)));
        }
        tally.add(case);
    }
    Ok(None)
}

/// What decides where threads yield, and what else there is a choice of: a comment, with which a program is kept.
fn nest_line(case: &Case) -> String {
    if case.said.threads { format!("{NEST}{}\n", case.said.nest) } else { String::new() }
}

const NEST: &str = "// nest ";

/// The programs that are kept, each with every engine that supports it.
fn kept(root: &Path, engine: Option<&'static Engine>, tasks: Tasks) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    let kept = root.join(REGRESSIONS);
    let of_threads = (tasks == Tasks::Threads).then(|| (kept.join("threads"), true));
    let directories = [(kept.clone(), false), (kept.join("native"), true)];
    for (directory, is_said) in directories.into_iter().chain(of_threads) {
        let listing = directory.read_dir().with_context(|| format!("cannot list {}", directory.display()))?;
        let mut files: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "prog"));
        files.sort();
        for path in files {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let own = text.lines().find_map(|line| line.strip_prefix(NEST)?.parse().ok());
            for nest in (0..NESTS).chain(own) {
                cases.push(Case::kept(&path, is_said, nest, engine, tasks)?);
            }
        }
    }
    ensure!(!cases.is_empty(), "no programs are kept in {REGRESSIONS}");
    Ok(cases)
}

fn report(args: &Args, builder: &Builder, case: &Case, failure: Failure) -> Result<()> {
    println!("{}: {failure}", case.name);
    println!("shrinking a program of {} tasks …", case.said.program.task_count());
    let (small, failure) = shrink::shrink(builder, case, failure)?;
    println!("\n{}{}\n{failure}", nest_line(&small), small.said.program);
    if let Some(seed) = case.seed {
        let class = args.class.map(|class| format!(" --class {class}")).unwrap_or_default();
        let engine = args.engine.as_ref().map(|name| format!(" --engine {name}")).unwrap_or_default();
        let threads = match args.tasks() {
            Tasks::Both => "",
            Tasks::Threads => " --threads",
            Tasks::Joins => " --joins",
        };
        let compiled = if args.compiled { " --compiled" } else { "" };
        let options = match args.options.as_str() {
            "" => String::new(),
            options => format!(" --options {options}"),
        };
        let profile = value_name(&args.profile);
        println!(
            "\nmake it again with:  cargo xtask fuzz-native --seed {seed} --programs 1 --profile {profile}{class}{engine}{threads}{compiled}{options}"
        );
        let directory = if args.threads { "threads" } else { "native" };
        println!("keep the small one:  {REGRESSIONS}/{directory}/NAME.prog");
    }
    bail!("a native program and the oracle disagree")
}
