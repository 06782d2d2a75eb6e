//! Compiles programs by the batch, and runs each in a process of its own.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use clap::ValueEnum;
use dagsan_findings::{FINDINGS_FILE, Findings};
use dagsan_fuzz::openmp::{Expected, interpreted, write_batch, write_interpreter};

use super::case::{Case, Failure, Seen};
use crate::bench::native::{succeed, target_directory};
use crate::fuzz::native::{Form, wait};
use crate::fuzz::value_name;

/// How programs are optimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "verbatim")]
pub enum Level {
    O0,
    O2,
}

/// Compiles programs, to be run with these options.
pub struct Builder {
    dagsan: PathBuf,
    directory: PathBuf,
    cache: PathBuf,
    options: String,
    /// What was compiled so far.
    compiled: Mutex<Vec<PathBuf>>,
}

impl Builder {
    /// Builds `dagsan`. `options` come last, after those of the environment and those that the judge needs.
    pub fn new(root: &Path, options: &str) -> Result<Builder> {
        let mut command = Command::new("cargo");
        command.args(["build", "--release", "--quiet", "--package", "dagsan", "--bin", "dagsan"]);
        succeed(command.current_dir(root))?;
        let target = target_directory(root);
        let directory = target.join("fuzz-openmp");
        // That of the tests, which have the same runtime.
        let cache = target.join("tmp").join("openmp");
        fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
        let (dagsan, options) = (target.join("release").join("dagsan"), options.to_owned());
        Ok(Builder { dagsan, directory, cache, options, compiled: Mutex::default() })
    }

    /// What runs the programs of these cases: compiled, or interpreted by what is compiled once for each level.
    pub fn build(&self, cases: &[Case], level: Level, form: Form) -> Result<Batch<'_>> {
        let (name, text) = match form {
            Form::Compiled => {
                let programs: Vec<_> = cases.iter().map(|case| &case.program).collect();
                (format!("batch-{}", value_name(&level)), write_batch(&programs))
            }
            Form::Interpreted => (format!("interpreter-{}", value_name(&level)), write_interpreter()),
        };
        let program = self.directory.join(name);
        let batch = Batch { builder: self, program, level, form };
        if form == Form::Compiled || !self.compiled.lock().expect("no thread panics").contains(&batch.program)
        {
            self.compile(&batch, &text)?;
        }
        Ok(batch)
    }

    fn compile(&self, batch: &Batch<'_>, text: &str) -> Result<()> {
        let Batch { program, level, .. } = batch;
        let source = program.with_extension("c");
        fs::write(&source, text).with_context(|| format!("cannot write {}", source.display()))?;
        let mut command = Command::new(&self.dagsan);
        // A word may be part of another.
        command.args(["cc", "-fopenmp", "-fno-strict-aliasing", "-w"]).arg(format!("-{}", value_name(level)));
        command.arg("-o").arg(program).arg(&source).env("DAGSAN_CACHE", &self.cache);
        succeed(&mut command)?;
        self.compiled.lock().expect("no thread panics").push(program.clone());
        Ok(())
    }
}

/// Programs that are compiled.
pub struct Batch<'b> {
    builder: &'b Builder,
    program: PathBuf,
    level: Level,
    form: Form,
}

impl Batch<'_> {
    /// Runs every case, and says of each what the oracle says, or how they disagree. Calls `progress` after each.
    pub fn run(
        &self,
        cases: &[Case],
        jobs: usize,
        progress: impl Fn() + Sync,
    ) -> Result<Vec<Result<Expected, Failure>>> {
        let judged: Mutex<Vec<_>> = Mutex::new(cases.iter().map(|_| None).collect());
        let next = AtomicUsize::new(0);
        let work = |job: usize| -> Result<()> {
            let findings =
                self.builder.directory.join(format!("findings-{}.{job}.json", value_name(&self.level)));
            loop {
                // Relaxed: the numbers order nothing else, and the scope ends with a join.
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = cases.get(number) else { return Ok(()) };
                let seen = self.run_one(number, case, &findings);
                let seen = seen.with_context(|| format!("seed {}", case.seed))?;
                let verdict = seen.and_then(|seen| case.judge(&seen));
                judged.lock().expect("no thread panics")[number] = Some(verdict);
                progress();
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs.max(1)).map(|job| scope.spawn(move || work(job))).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("no thread panics"))
        })?;
        let judged = judged.into_inner().expect("no thread panics");
        Ok(judged.into_iter().flatten().collect())
    }

    fn run_one(&self, number: usize, case: &Case, findings: &Path) -> Result<Result<Seen, Failure>> {
        match fs::remove_file(findings) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let given = std::env::var("DAGSAN_OPTIONS").unwrap_or_default();
        // A race that is found and not kept would look like one that is missed.
        let options = format!("{given}:max_races={}:{}", u32::MAX, self.builder.options);
        let (argument, text) = match self.form {
            Form::Compiled => (Some(number.to_string()), String::new()),
            Form::Interpreted => (None, interpreted(&case.program)),
        };
        let told = self.program.with_extension(format!("{number}.out"));
        let output = fs::File::create(&told).with_context(|| format!("cannot write {}", told.display()))?;
        let mut command = Command::new(&self.program);
        command.args(argument).env(FINDINGS_FILE, findings).env("DAGSAN_OPTIONS", options);
        command.env_remove("OMP_NUM_THREADS").stdin(Stdio::piped()).stdout(output).stderr(Stdio::null());
        let child = command.spawn();
        let mut child = child.with_context(|| format!("cannot start {}", self.program.display()))?;
        // A program that ends without having read its text is seen by how it ends.
        if let Some(mut input) = child.stdin.take()
            && let Err(error) = input.write_all(text.as_bytes())
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            return Err(error).context("cannot write to the program");
        }
        let ended = wait(child)?;
        let text = fs::read_to_string(&told).with_context(|| format!("cannot read {}", told.display()))?;
        fs::remove_file(&told)?;
        if let Err(how) = ended {
            return Ok(Err(Failure::Ending(how)));
        }
        let findings = match Findings::read(findings) {
            Ok(findings) => Box::new(findings),
            Err(error) => return Ok(Err(Failure::Ending(format!("without findings: {error}")))),
        };
        let arena = text.lines().next().and_then(|line| line.strip_prefix("arena ")?.parse().ok());
        let Some(arena) = arena else {
            return Ok(Err(Failure::Ending(format!("without telling where its memory is: {text}"))));
        };
        let step = |line: &str| {
            let (who, what) = line.split_once(' ')?;
            Some((who.parse().ok()?, what.parse().ok()?))
        };
        let trace = text.lines().skip(1).map(|line| step(line).with_context(|| line.to_owned()));
        Ok(Ok(Seen { arena, trace: trace.collect::<Result<_>>()?, findings }))
    }
}
