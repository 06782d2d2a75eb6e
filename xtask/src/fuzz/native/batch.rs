//! Builds programs, and runs them: each in a process of its own, as the runtime makes one report per process.
//!
//! Programs that are compiled are built by the batch; those that are interpreted need one build for all.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use dagsan_findings::{FINDINGS_FILE, Findings};
use dagsan_fuzz::rust::{interpreted, write_batch, write_interpreter};

use super::case::{Case, Ended, Failure, Run, Seen};
use crate::bench::native::{cargo_dagsan, succeed, target_directory};

/// A program that takes longer hangs. The slowest take milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// How programs are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    Release,
    Dev,
}

impl Profile {
    /// The directory of what cargo builds with it.
    fn name(self) -> &'static str {
        match self {
            Profile::Release => "release",
            Profile::Dev => "debug",
        }
    }
}

/// In which form the compiler, or the interpreter, sees programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Compiled,
    Interpreted,
}

/// Builds programs, to be run with these options.
pub struct Builder {
    root: PathBuf,
    cargo_dagsan: PathBuf,
    directory: PathBuf,
    profile: Profile,
    form: Form,
    options: String,
}

impl Builder {
    /// If programs are interpreted, what interprets them is built here. `options` come last, after those of the environment and
    /// those that the judge needs.
    pub fn new(root: &Path, profile: Profile, form: Form, options: &str) -> Result<Builder> {
        // One each, so that all can be tried at the same time.
        let name = match form {
            Form::Compiled => profile.name().to_owned(),
            Form::Interpreted => format!("interpreted-{}", profile.name()),
        };
        let directory = target_directory(root).join("fuzz-native").join(name);
        let (root, options) = (root.to_owned(), options.to_owned());
        let builder = Builder { cargo_dagsan: cargo_dagsan(&root)?, root, directory, profile, form, options };
        if form == Form::Interpreted {
            write_interpreter(&builder.source(), &builder.task())
                .with_context(|| format!("cannot write {}", builder.source().display()))?;
            builder.compile()?;
        }
        Ok(builder)
    }

    fn source(&self) -> PathBuf {
        self.directory.join("batch")
    }

    fn task(&self) -> PathBuf {
        self.root.join("crates").join("dagsan-task")
    }

    fn program(&self) -> PathBuf {
        let built = self.directory.join("target/dagsan/x86_64-unknown-linux-gnu");
        built.join(self.profile.name()).join("batch")
    }

    /// Builds the programs of these cases.
    pub fn build(&self, cases: &[Case]) -> Result<Batch<'_>> {
        if self.form == Form::Compiled {
            let programs: Vec<_> = cases.iter().map(|case| (&case.said, &case.layout)).collect();
            write_batch(&self.source(), &self.task(), &programs)
                .with_context(|| format!("cannot write {}", self.source().display()))?;
            self.compile()?;
        }
        Ok(Batch { builder: self, program: self.program() })
    }

    fn compile(&self) -> Result<()> {
        let source = self.source();
        // The dependencies of dagsan-task, and rayon, as another program has them.
        let lock = source.join("Cargo.lock");
        if !lock.exists() {
            fs::copy(self.root.join("tests/rayon/Cargo.lock"), &lock)
                .with_context(|| format!("cannot write {}", lock.display()))?;
        }
        let mut command = Command::new(&self.cargo_dagsan);
        command.args(["build", "--quiet", "--manifest-path"]).arg(source.join("Cargo.toml"));
        command.arg("--target-dir").arg(self.directory.join("target")).env_remove("RUSTFLAGS");
        if self.profile == Profile::Release {
            command.arg("--release");
        }
        succeed(&mut command)?;
        let program = self.program();
        ensure!(program.exists(), "{} was not built", program.display());
        Ok(())
    }
}

/// Programs that are built.
pub struct Batch<'b> {
    builder: &'b Builder,
    program: PathBuf,
}

impl Batch<'_> {
    /// Runs every case in its ways, and says of each how it fails, if it does. Calls `progress` after each.
    pub fn run(
        &self,
        cases: &[Case],
        jobs: usize,
        progress: impl Fn() + Sync,
    ) -> Result<Vec<Option<Failure>>> {
        let failures: Mutex<Vec<Option<Failure>>> = Mutex::new(cases.iter().map(|_| None).collect());
        let next = AtomicUsize::new(0);
        let work = |job: usize| -> Result<()> {
            let findings = self.builder.directory.join(format!("findings.{job}.json"));
            loop {
                // Relaxed: the numbers order nothing else, and the scope ends with a join.
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = cases.get(number) else { return Ok(()) };
                for &run in &case.runs {
                    let seen = self.run_one(number, case, run, &findings);
                    let seen = seen.with_context(|| case.name.clone())?;
                    if let Some(failure) = case.compare(run, &seen) {
                        failures.lock().expect("no thread panics")[number].get_or_insert(failure);
                    }
                }
                progress();
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs.max(1)).map(|job| scope.spawn(move || work(job))).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("no thread panics"))
        })?;
        Ok(failures.into_inner().expect("no thread panics"))
    }

    fn run_one(&self, number: usize, case: &Case, run: Run, findings: &Path) -> Result<Seen> {
        match fs::remove_file(findings) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let (argument, text) = match self.builder.form {
            Form::Compiled => (Some(number.to_string()), String::new()),
            Form::Interpreted => (None, interpreted(&case.said, &case.layout)),
        };
        let mut command = Command::new(&self.program);
        command.args(argument).env(FINDINGS_FILE, findings).env("DAGSAN_OPTIONS", self.options(run));
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("cannot start {}", self.program.display()))?;
        // A program that ends without having read its text says why itself.
        if let Some(mut input) = child.stdin.take()
            && let Err(error) = input.write_all(text.as_bytes())
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            return Err(error).context("cannot write to the program");
        }
        let mut output = String::new();
        let printed = child.stdout.take();
        if let Err(how) = wait(child)? {
            return Ok(Seen::Failed(how));
        }
        // A few lines, which a pipe holds.
        printed.context("the output is not here")?.read_to_string(&mut output)?;
        let findings = match Findings::read(findings) {
            Ok(findings) => Box::new(findings),
            Err(error) => return Ok(Seen::Failed(format!("without findings: {error}"))),
        };
        let said = |key: &str| output.lines().find_map(|line| line.strip_prefix(key));
        let number = |key| said(key).and_then(|text| text.parse().ok());
        let (Some(arena), Some(pages)) = (number("arena "), number("pages ")) else {
            return Ok(Seen::Failed(format!("without telling where its memory is: {output}")));
        };
        let order = output.lines().filter_map(|line| line.strip_prefix("t ")?.trim().parse().ok()).collect();
        let panic = said("panicked ").map(str::to_owned);
        Ok(Seen::Ended(Ended { arena, pages, panic, order, findings }))
    }

    /// What the runtime is asked for: of the same option, the last counts.
    fn options(&self, run: Run) -> String {
        let given = std::env::var("DAGSAN_OPTIONS").unwrap_or_default();
        let (engine, atomics) = (run.engine.name, u8::from(run.atomics));
        let sites = if run.exact { "exact" } else { "line" };
        // A race that is found and not kept would look like one that is missed.
        let most = u32::MAX;
        let given_last = &self.builder.options;
        format!("{given}:engine={engine}:atomics={atomics}:sites={sites}:max_races={most}:{given_last}")
    }
}

/// Waits for the process; how it failed, if it did. The exit code says whether there were races, which the findings say too.
pub fn wait(mut child: Child) -> Result<Result<(), String>> {
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Ok(Err(format!("hangs for {} s", PATIENCE.as_secs())));
        }
        std::thread::sleep(Duration::from_micros(500));
    };
    // 65 is a deadlock of threads.
    if !matches!(status.code(), Some(0 | 65 | 66)) {
        return Ok(Err(status.to_string()));
    }
    Ok(Ok(()))
}
