//! `cargo xtask fuzz-readers`: damaged files for whatever reads files that somebody else has written.
//!
//! Case number i has the seed `--seed` + i, which decides which sample is taken and what is done to it. The readers run in a process of their own,
//! which says the number of each case before it reads it: one that panics, overflows its stack or asks for more memory than there
//! is ends the process, and one that does not come back is ended. Either way the file is kept, with the command that makes it again.
//!
//! That process is xtask once more, built as tests are: with checks of overflow and debug assertions, which `cargo xtask` itself, a release build, does not have.
//! What a reader answers is not judged, but for what is said in [`targets`]: no control characters reach a terminal, and JSON is JSON.

mod mutate;
mod samples;
mod targets;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;

use super::value_name;
use crate::bench::native::{succeed, target_directory};
use samples::Samples;
use targets::{Answer, Target};

/// Options of `fuzz-readers`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What is read
    reader: Reader,
    /// Stop after so many seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Stop after so many cases
    #[arg(long, default_value_t = u64::MAX)]
    cases: u64,
    /// Seed of the first case
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A case that takes longer than so many seconds hangs
    #[arg(long, default_value_t = 20)]
    limit: u64,
    /// How many MiB the readers may have
    #[arg(long, default_value_t = 2048)]
    memory: u64,
    /// Be the process that reads
    #[arg(long, hide = true)]
    inside: bool,
}

/// Whose files are damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Reader {
    /// Files of findings, shown in every format
    Findings,
    /// Executables and their debug information
    Debug,
    /// Suppressions, and what they match
    Suppressions,
    /// Baselines, and what they know
    Baseline,
}

/// Fuzzes, and fails at the first case that is not survived.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let directory = root.join("target/fuzz-readers");
    if args.inside {
        return read(&directory, args);
    }
    samples::prepare(root, &directory)?;
    let executable = checked(root)?;
    let started = Instant::now();
    let mut inside = Inside::start(&executable, args)?;
    let mut last = args.seed;
    let how = loop {
        match inside.lines.recv_timeout(Duration::from_secs(args.limit)) {
            Ok(line) => match line.parse() {
                Ok(seed) => last = seed,
                Err(_) => {
                    inside.child.wait().context("cannot wait for the process that reads")?;
                    println!(
                        "{}: {line} in {:.0} s",
                        value_name(&args.reader),
                        started.elapsed().as_secs_f64()
                    );
                    return Ok(());
                }
            },
            Err(RecvTimeoutError::Timeout) => {
                inside.child.kill().context("cannot end the process that reads")?;
                inside.child.wait().context("cannot wait for the process that reads")?;
                break format!("took more than {} seconds", args.limit);
            }
            Err(RecvTimeoutError::Disconnected) => {
                break inside.child.wait().context("cannot wait for the process that reads")?.to_string();
            }
        }
    };
    let samples = Samples::load(&directory, args.reader)?;
    let file = directory.join(format!("{}-{last}", value_name(&args.reader)));
    fs::write(&file, mutate::case(&samples, args.reader, last))
        .with_context(|| format!("cannot write {}", file.display()))?;
    println!("seed {last}: {how}; the file is kept as {}", file.display());
    println!(
        "make it again with:  cargo xtask fuzz-readers {} --seed {last} --cases 1",
        value_name(&args.reader)
    );
    bail!("a reader does not survive a file")
}

/// xtask as tests are built.
fn checked(root: &Path) -> Result<PathBuf> {
    let mut command = Command::new("cargo");
    command.args(["build", "--quiet", "--profile", "dev", "--package", "xtask"]).current_dir(root);
    succeed(&mut command)?;
    Ok(target_directory(root).join("debug").join("xtask"))
}

/// The process that reads.
struct Inside {
    child: Child,
    /// What it says: the number of each case, and at last what it has counted.
    lines: Receiver<String>,
}

impl Inside {
    fn start(executable: &Path, args: &Args) -> Result<Inside> {
        let mut command = Command::new(executable);
        command.args(["fuzz-readers", &value_name(&args.reader), "--inside"]);
        let numbers = [
            ("--seconds", args.seconds),
            ("--cases", args.cases),
            ("--seed", args.seed),
            ("--memory", args.memory),
        ];
        for (name, value) in numbers {
            command.arg(name).arg(value.to_string());
        }
        let mut child =
            command.stdout(Stdio::piped()).spawn().context("cannot start the process that reads")?;
        let stdout = child.stdout.take().context("the process that reads has no output")?;
        let (sender, lines) = mpsc::channel();
        let forward = move |stdout: ChildStdout| {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        };
        std::thread::spawn(move || forward(stdout));
        Ok(Inside { child, lines })
    }
}

/// What the process does that reads.
fn read(directory: &Path, args: &Args) -> Result<()> {
    ensure!(
        cfg!(debug_assertions),
        "readers are to be built with debug assertions: start `cargo xtask fuzz-readers` without --inside"
    );
    let samples = Samples::load(directory, args.reader)?;
    let scratch = Scratch::new()?;
    let target = Target::new(directory, args.reader, scratch.0.join("case"))?;
    limit_memory(args.memory << 20)?;
    let (start, mut out) = (Instant::now(), std::io::stdout());
    let (mut cases, mut refused) = (0_u64, 0_u64);
    while cases < args.cases && start.elapsed() < Duration::from_secs(args.seconds) {
        let seed = args.seed.wrapping_add(cases);
        writeln!(out, "{seed}").and_then(|()| out.flush()).context("nobody listens")?;
        let bytes = mutate::case(&samples, args.reader, seed);
        refused += u64::from(target.read(&bytes)? == Answer::Refused);
        cases += 1;
    }
    writeln!(out, "{cases} files are survived, {refused} of them refused").context("nobody listens")
}

/// A directory for the file that is read, which goes with the process unless that is ended.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch> {
        let path = std::env::temp_dir().join(format!("dagsan-readers-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left behind, it is in nobody's way.
        _ = fs::remove_dir_all(&self.0);
    }
}

fn limit_memory(bytes: u64) -> Result<()> {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: the call reads the structure, which lives until it returns.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
    if set != 0 {
        return Err(std::io::Error::last_os_error()).context("cannot limit the memory");
    }
    Ok(())
}
