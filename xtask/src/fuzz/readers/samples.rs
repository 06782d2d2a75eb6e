//! Files as they are: what is damaged.
//!
//! Findings are those of the examples, run under `cargo dagsan`; executables are these programs, and small ones of C with debug information of several kinds.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use object::{Object, ObjectSection};

use super::Reader;

/// A file of so many bytes is a large one.
const LARGE: usize = 1 << 20;

/// The examples that leave findings.
const EXAMPLES: [&str; 3] = ["missing_get", "shared_histogram", "promise_pipeline_racy"];

/// How the program of C is compiled.
const KINDS: [&[&str]; 4] =
    [&["-g", "-O0"], &["-gdwarf-4", "-O2"], &["-gdwarf-5", "-O2", "-gz"], &["-gsplit-dwarf", "-O1"]];

const PROGRAM: &str = "\
#include <stdio.h>
int counter[4];
static inline int inner(int at) { return counter[at & 3]++; }
__attribute__((noinline)) int outer(int at) { int sum = 0; for (int i = 0; i < at; i++) sum += inner(i); return sum; }
int main(int argc, char **argv) { (void)argv; printf(\"%d\\n\", outer(argc)); return 0; }
";

/// Where the findings are kept.
pub fn findings(directory: &Path) -> PathBuf {
    directory.join("findings")
}

/// The findings and the executable of the first example.
pub fn example(directory: &Path) -> Result<(PathBuf, PathBuf)> {
    let kept = findings(directory);
    let listing = kept.read_dir().with_context(|| format!("cannot list {}", kept.display()))?;
    let is_first =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(EXAMPLES[0]));
    let first = listing.flatten().map(|entry| entry.path()).find(is_first);
    Ok((
        first.with_context(|| format!("{} has no findings of {}", kept.display(), EXAMPLES[0]))?,
        directory.join("executables").join(EXAMPLES[0]),
    ))
}

/// A file, and which parts of it are worth the trouble.
pub struct Sample {
    pub bytes: Vec<u8>,
    parts: Vec<Range<usize>>,
}

impl Sample {
    /// A file that is the same everywhere.
    pub fn of(bytes: Vec<u8>) -> Sample {
        Sample { bytes, parts: Vec::new() }
    }

    /// An executable: most of it is code, which nobody reads.
    fn executable(bytes: Vec<u8>) -> Sample {
        let mut parts = vec![0..bytes.len().min(1024), bytes.len().saturating_sub(4096)..bytes.len()];
        if let Ok(file) = object::File::parse(&*bytes) {
            let read = |name: &str| {
                [".debug", ".zdebug", ".symtab", ".strtab", ".note", ".gnu"]
                    .iter()
                    .any(|start| name.starts_with(start))
            };
            let sections = file.sections().filter(|section| section.name().is_ok_and(read));
            let ranges = sections.filter_map(|section| section.file_range());
            parts.extend(ranges.map(|(start, length)| start as usize..(start + length) as usize));
        }
        Sample { bytes, parts }
    }

    /// A place to change something in a file of this length, at most its end.
    pub fn position(&self, length: usize, rng: &mut Rng) -> usize {
        match self.parts.as_slice() {
            parts if !parts.is_empty() && rng.u8(..16) > 0 => {
                let part = &parts[rng.usize(..parts.len())];
                rng.usize(part.start..part.end.max(part.start + 1)).min(length)
            }
            _ => rng.usize(..=length),
        }
    }
}

/// All of one kind.
pub struct Samples(pub Vec<Sample>);

impl Samples {
    /// Those that were [`prepare`]d, and some that are written here.
    pub fn load(directory: &Path, reader: Reader) -> Result<Samples> {
        let text = |text: &&str| Sample::of(text.as_bytes().to_vec());
        let samples = match reader {
            Reader::Findings => files(&findings(directory))?.into_iter().map(Sample::of).collect(),
            Reader::Debug => {
                files(&directory.join("executables"))?.into_iter().map(Sample::executable).collect()
            }
            Reader::Suppressions => SUPPRESSIONS.iter().map(text).collect(),
            Reader::Baseline => BASELINES.iter().map(text).collect(),
        };
        Ok(Samples(samples))
    }

    /// One of them; a large one seldom, as it takes as long as many others.
    pub fn any(&self, rng: &mut Rng) -> &Sample {
        loop {
            let sample = &self.0[rng.usize(..self.0.len())];
            if sample.bytes.len() < LARGE || rng.u8(..64) == 0 {
                return sample;
            }
        }
    }
}

const SUPPRESSIONS: [&str; 4] = [
    "[[suppress]]\nreason = \"a counter that is only shown\"\nfunction = \"stats::*\"\nexpires = 2030-12-31\n",
    "# Ours.\n[[suppress]]\nreason = '''why'''\nfile = \"src/**/*.rs\"\nallocation = \"[a-z]*/cache.rs\"\n\n[[suppress]]\nreason = \"r\"\nvariable = \"?*a*a*a*a*b\"\n",
    "suppress = [{ reason = \"r\", file = \"**\" }, { reason = \"s\", function = \"*\" }]\n",
    "[[suppress]]\nreason = \"\\u202e \\n\"\nfunction = \"*histogram*::{{closure}}*\"\n",
];

const BASELINES: [&str; 2] = [
    "{\"version\": 1, \"races\": {}}\n",
    "{\"version\": 1, \"races\": {\"0123456789abcdef0123456789abcdef\": \"write-write | a.rs: x = 1 | a.rs: x = 2\"}}\n",
];

/// The files of a directory, by name.
fn files(directory: &Path) -> Result<Vec<Vec<u8>>> {
    let listing = directory.read_dir().with_context(|| format!("cannot list {}", directory.display()))?;
    let mut paths: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    ensure!(!paths.is_empty(), "{} is empty: remove it, to have it made again", directory.display());
    paths
        .iter()
        .map(|path| fs::read(path).with_context(|| format!("cannot read {}", path.display())))
        .collect()
}

/// Makes the samples, if they are not there.
pub fn prepare(root: &Path, directory: &Path) -> Result<()> {
    if findings(directory).exists() && directory.join("executables").exists() {
        return Ok(());
    }
    let making = directory.join(format!("making-{}", std::process::id()));
    let executables = making.join("executables");
    fs::create_dir_all(&executables).with_context(|| format!("cannot make {}", executables.display()))?;
    let target = making.join("target");
    let status = Command::new("cargo")
        .args(["build", "--package", "dagsan"])
        .current_dir(root)
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "the command cannot be built: see above");
    for name in EXAMPLES {
        let status = Command::new(root.join("target/debug/cargo-dagsan"))
            .args(["dagsan", "run", "--quiet", "--bin", name, "--target-dir"])
            .arg(&target)
            .current_dir(root.join("examples/native"))
            .stderr(Stdio::null())
            .status()
            .context("cannot start cargo-dagsan")?;
        ensure!(status.code() == Some(66), "the example {name} ended with {status}");
        let built = target.join("dagsan/x86_64-unknown-linux-gnu/debug").join(name);
        if name == EXAMPLES[0] {
            copy(&built, &executables.join(name))?;
        }
    }
    let source = making.join("program.c");
    fs::write(&source, PROGRAM).with_context(|| format!("cannot write {}", source.display()))?;
    for (number, options) in KINDS.iter().enumerate() {
        let status = Command::new("clang-19")
            .args(*options)
            .arg("-o")
            .arg(executables.join(format!("c{number}")))
            .arg(&source)
            .current_dir(&making)
            .status()
            .context("cannot start clang-19")?;
        ensure!(status.success(), "clang-19 {options:?} ended with {status}");
    }
    let found = target.join("dagsan/findings");
    let listing = found.read_dir().with_context(|| format!("cannot list {}", found.display()))?;
    let kept = making.join("findings");
    fs::create_dir_all(&kept).with_context(|| format!("cannot make {}", kept.display()))?;
    for path in listing.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension == "json") {
            copy(&path, &kept.join(path.file_name().unwrap_or_default()))?;
        }
    }
    for name in ["executables", "findings"] {
        let (from, to) = (making.join(name), directory.join(name));
        if !to.exists() {
            fs::rename(&from, &to).with_context(|| format!("cannot make {}", to.display()))?;
        }
    }
    fs::remove_dir_all(&making).with_context(|| format!("cannot remove {}", making.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}
