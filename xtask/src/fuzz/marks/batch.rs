//! Builds a batch of functions, runs it, and compares what it shows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};
use clap::ValueEnum;
use dagsan_findings::FINDINGS_FILE;
use dagsan_fuzz::marks::{ARENA, BASE, Function, initial_memory, interpret, write_batch};

use super::verdict::{self, Failure};
use crate::bench::native::{cargo_dagsan, succeed, target_directory};
use crate::fuzz::value_name;

/// How functions are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// For use
    Release,
    /// For development
    Dev,
    /// Release with fat link-time optimisation
    Fat,
    // Link-time optimisation would come after the pass, which so sees loops that are vectorised.
    /// For development, and optimised, without link-time optimisation
    Tuned,
}

impl Profile {
    /// Is it one of cargo's profile `release`?
    fn is_release(self) -> bool {
        matches!(self, Profile::Release | Profile::Fat)
    }

    /// For the manifest.
    fn settings(self) -> &'static str {
        match self {
            Profile::Dev => "[profile.dev]\nincremental = false\ndebug = false\n",
            Profile::Release => "",
            Profile::Fat => "[profile.release]\nlto = \"fat\"\n",
            // Checks would keep loops from being vectorised.
            Profile::Tuned => {
                "[profile.dev]\nopt-level = 3\nlto = \"off\"\noverflow-checks = false\n\
                 debug-assertions = false\nincremental = false\ndebug = false\n"
            }
        }
    }
}

/// Builds batches, and judges them.
pub struct Builder {
    root: PathBuf,
    cargo_dagsan: PathBuf,
    directory: PathBuf,
    profile: Profile,
    elim: Option<String>,
}

impl Builder {
    pub fn new(root: &Path, profile: Profile, elim: Option<String>) -> Result<Builder> {
        // A directory for each profile: campaigns may run beside each other.
        let directory = target_directory(root).join("fuzz-marks").join(value_name(&profile));
        Ok(Builder { root: root.to_owned(), cargo_dagsan: cargo_dagsan(root)?, directory, profile, elim })
    }

    /// Of each function how it fails, if it does.
    pub fn judge(&self, functions: &[Function]) -> Result<Vec<Option<Failure>>> {
        let program = self.build(functions)?;
        let output = self.run(&program, functions)?;
        let mut found = verdict::read(&output)?.into_iter();
        let mut failures = Vec::new();
        for (number, function) in functions.iter().enumerate() {
            let expected = interpret(function, base(number))
                .map_err(|why| anyhow!("the reference refuses seed {} at its place: {why}", function.seed))?;
            let found = found.next().with_context(|| format!("seed {} shows nothing", function.seed))?;
            failures.push(verdict::compare(&expected, &found));
        }
        Ok(failures)
    }

    fn build(&self, functions: &[Function]) -> Result<PathBuf> {
        let source = self.directory.join("batch");
        let note = format!("Eliminations: {}.", self.elim.as_deref().unwrap_or("as usual"));
        write_batch(
            &source,
            &self.root.join("crates").join("dagsan-task"),
            self.profile.settings(),
            &note,
            functions,
        )
        .with_context(|| format!("cannot write {}", source.display()))?;
        // The dependencies of dagsan-task, as another program has them.
        let lock = source.join("Cargo.lock");
        if !lock.exists() {
            fs::copy(self.root.join("tests/native/Cargo.lock"), &lock)
                .with_context(|| format!("cannot write {}", lock.display()))?;
        }
        let target = self.directory.join("target");
        let mut command = Command::new(&self.cargo_dagsan);
        command.args(["build", "--quiet", "--manifest-path"]).arg(source.join("Cargo.toml"));
        command.arg("--target-dir").arg(&target).env_remove("RUSTFLAGS");
        match &self.elim {
            Some(list) => command.env("DAGSAN_ELIM", list),
            None => command.env_remove("DAGSAN_ELIM"),
        };
        if self.profile.is_release() {
            command.arg("--release");
        }
        succeed(&mut command)?;
        let profile = if self.profile.is_release() { "release" } else { "debug" };
        let program = target.join("dagsan/x86_64-unknown-linux-gnu").join(profile).join("marks");
        ensure!(program.exists(), "{} was not built", program.display());
        Ok(program)
    }

    /// Runs all functions in one process; what they have shown.
    fn run(&self, program: &Path, functions: &[Function]) -> Result<Vec<u8>> {
        let (memory, output) = (self.directory.join("memory"), self.directory.join("output"));
        let initial = |(number, function): (usize, &Function)| initial_memory(&function.input, base(number));
        let bytes: Vec<u8> = functions.iter().enumerate().flat_map(initial).collect();
        fs::write(&memory, bytes).with_context(|| format!("cannot write {}", memory.display()))?;
        let mut command = Command::new(program);
        command.arg(&memory).arg(&output).env(FINDINGS_FILE, self.directory.join("findings.json"));
        // What is judged are marks, and not what others stand for.
        command.env("DAGSAN_OPTIONS", "shared_reads=0").stdin(Stdio::null());
        // No function touches what another does: there are no races.
        succeed(&mut command)?;
        fs::read(&output).with_context(|| format!("cannot read {}", output.display()))
    }
}

/// Those that the reference takes at the places that they get. A function may compute with pointers that it finds in its memory, and numbers that come of it
/// overflow in one place and not in another.
pub fn placed(functions: impl IntoIterator<Item = Function>) -> Vec<Function> {
    let mut placed = Vec::new();
    for function in functions {
        if interpret(&function, base(placed.len())).is_ok() {
            placed.push(function);
        }
    }
    placed
}

/// Where the memory of a function is.
fn base(number: usize) -> u64 {
    BASE + (number * ARENA) as u64
}

#[cfg(test)]
mod tests {
    use dagsan_fuzz::marks::{Processor, generate};

    use super::*;

    /// Among these is one that the reference refuses at the 290th place, and takes at the first.
    #[test]
    fn functions_are_left_out_where_their_numbers_overflow() {
        let processor = Processor { avx2: true, avx512: true };
        let all: Vec<Function> = (0..800).map(|number| generate(5_502_401 + number, processor)).collect();
        assert!(all.iter().all(|function| interpret(function, BASE).is_ok()));
        let placed = placed(all);
        let taken = |(number, function): (usize, &Function)| interpret(function, base(number)).is_ok();
        assert!(placed.iter().enumerate().all(taken));
        assert!((780..=800).contains(&placed.len()), "{}", placed.len());
    }
}
