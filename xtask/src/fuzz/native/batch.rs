//! Builds a batch of programs, and runs them: each in a process of its own, as the runtime makes one report per process.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use dagsan_findings::{FINDINGS_FILE, Findings};
use dagsan_fuzz::rust::write_batch;

use super::case::{Case, Failure, Run, Seen};
use crate::bench::native::{cargo_dagsan, succeed, target_directory};

/// A program that takes longer hangs. The slowest take milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// How programs are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl FromStr for Profile {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Profile> {
        match name {
            "release" => Ok(Profile::Release),
            "dev" => Ok(Profile::Dev),
            _ => Err(anyhow!("no profile is called `{name}`; there are: release, dev")),
        }
    }
}

/// Builds batches.
pub struct Builder {
    root: PathBuf,
    cargo_dagsan: PathBuf,
    directory: PathBuf,
    profile: Profile,
}

impl Builder {
    pub fn new(root: &Path, profile: Profile) -> Result<Builder> {
        // One each, so that both can be tried at the same time.
        let directory = target_directory(root).join("fuzz-native").join(profile.name());
        Ok(Builder { root: root.to_owned(), cargo_dagsan: cargo_dagsan(root)?, directory, profile })
    }

    /// Builds the programs of these cases.
    pub fn build(&self, cases: &[Case]) -> Result<Batch> {
        let source = self.directory.join("batch");
        let programs: Vec<_> = cases.iter().map(|case| (&case.said, &case.layout)).collect();
        write_batch(&source, &self.root.join("crates").join("dagsan-task"), &programs)
            .with_context(|| format!("cannot write {}", source.display()))?;
        // The dependencies of dagsan-task, and rayon, as another program has them.
        let lock = source.join("Cargo.lock");
        if !lock.exists() {
            fs::copy(self.root.join("tests/rayon/Cargo.lock"), &lock)
                .with_context(|| format!("cannot write {}", lock.display()))?;
        }
        let target = self.directory.join("target");
        let mut command = Command::new(&self.cargo_dagsan);
        command.args(["build", "--quiet", "--manifest-path"]).arg(source.join("Cargo.toml"));
        command.arg("--target-dir").arg(&target).env_remove("RUSTFLAGS");
        if self.profile == Profile::Release {
            command.arg("--release");
        }
        succeed(&mut command)?;
        let built = target.join("dagsan/x86_64-unknown-linux-gnu").join(self.profile.name());
        let program = built.join("batch");
        ensure!(program.exists(), "{} was not built", program.display());
        Ok(Batch { program, directory: self.directory.clone() })
    }
}

/// A batch that is built.
pub struct Batch {
    program: PathBuf,
    directory: PathBuf,
}

impl Batch {
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
            let findings = self.directory.join(format!("findings.{job}.json"));
            loop {
                // Relaxed: the numbers order nothing else, and the scope ends with a join.
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = cases.get(number) else { return Ok(()) };
                for &run in &case.runs {
                    let seen = self.run_one(number, run, &findings).with_context(|| case.name.clone())?;
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

    fn run_one(&self, number: usize, run: Run, findings: &Path) -> Result<Seen> {
        match fs::remove_file(findings) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut command = Command::new(&self.program);
        command.arg(number.to_string()).env(FINDINGS_FILE, findings);
        // A race that is found and not kept would look like one that is missed.
        let (engine, atomics) = (run.engine.name, u8::from(run.atomics));
        let sites = if run.exact { "exact" } else { "line" };
        let options = format!("engine={engine}:atomics={atomics}:sites={sites}:max_races={}", u32::MAX);
        command.env("DAGSAN_OPTIONS", options);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let child = child.with_context(|| format!("cannot start {}", self.program.display()))?;
        let output = match wait(child)? {
            Ok(output) => output,
            Err(how) => return Ok(Seen::Failed(how)),
        };
        let findings = match Findings::read(findings) {
            Ok(findings) => Box::new(findings),
            Err(error) => return Ok(Seen::Failed(format!("without findings: {error}"))),
        };
        let said = |key: &str| output.lines().find_map(|line| line.strip_prefix(key));
        let number = |key| said(key).and_then(|text| text.parse().ok());
        let (Some(arena), Some(pages)) = (number("arena "), number("pages ")) else {
            return Ok(Seen::Failed(format!("without telling where its memory is: {output}")));
        };
        Ok(Seen::Ended { arena, pages, panic: said("panicked ").map(str::to_owned), findings })
    }
}

/// Waits for the process, and returns what it printed, or how it failed. The exit code says whether there were races,
/// which the findings say too.
fn wait(mut child: Child) -> Result<Result<String, String>> {
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
    if !matches!(status.code(), Some(0 | 66)) {
        return Ok(Err(status.to_string()));
    }
    let mut text = String::new();
    // A few lines, which a pipe holds.
    child.stdout.take().context("the output is not here")?.read_to_string(&mut text)?;
    Ok(Ok(text))
}
