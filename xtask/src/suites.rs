//! `cargo xtask rayon-suite`, `rayon-crates` and `thread-crates`: test suites of others, plainly and under `cargo dagsan test`.
//!
//! Sources come from the registry at the time of the run, by `cargo vendor`, into a scratch directory under the target
//! directory. Nothing of theirs is kept here.

pub mod crates;
pub mod rayon;
mod subjects;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::bench::native::{succeed, target_directory};

/// A directory for the sources of others.
struct Scratch(PathBuf);

impl Scratch {
    fn new(root: &Path, name: &str) -> Result<Scratch> {
        let path = target_directory(root).join("suites").join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Scratch(path))
    }

    /// Fetches crates of exactly these versions, and what they need. Each is in a directory with its name and version.
    fn vendor(&self, crates: &[(&str, &str)]) -> Result<PathBuf> {
        let lines: Vec<String> =
            crates.iter().map(|(name, version)| format!("{name} = \"={version}\"")).collect();
        let wanted = self.0.join("wanted");
        write(&wanted.join("Cargo.toml"), &manifest("wanted", &lines.join("\n")))?;
        write(&wanted.join("src").join("lib.rs"), "")?;
        let mut command = Command::new("cargo");
        command.args(["vendor", "--quiet", "--versioned-dirs", "../vendor"]).current_dir(&wanted);
        // It prints how to use the directory, which is not what we are after.
        succeed(command.stdout(std::process::Stdio::null()))?;
        Ok(self.0.join("vendor"))
    }

    /// A copy of a crate that stands for itself, outside of any workspace.
    fn package(&self, vendored: &Path, name: &str, version: &str) -> Result<PathBuf> {
        let to = self.0.join(name);
        remove(&to)?;
        copy(&vendored.join(format!("{name}-{version}")), &to)?;
        // The toolchain that it asks for is that of its authors.
        for file in ["rust-toolchain", "rust-toolchain.toml"].map(|file| to.join(file)) {
            if file.exists() {
                fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
            }
        }
        let manifest = to.join("Cargo.toml");
        let text =
            fs::read_to_string(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
        let workspace = if text.contains("\n[workspace]") { "" } else { "\n[workspace]\n" };
        write(&manifest, &format!("{}{workspace}", without_benchmarks(&text)))?;
        Ok(to)
    }
}

/// A package with these dependencies.
fn manifest(name: &str, dependencies: &str) -> String {
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n\n\
         [dependencies]\n{dependencies}\n"
    )
}

/// A manifest without its benchmarks, and the crate that measures them: it takes longer to build than many a test suite.
fn without_benchmarks(manifest: &str) -> String {
    let mut left_out = false;
    let keep = |line: &&str| {
        if line.starts_with('[') {
            left_out = matches!(line.trim_end(), "[[bench]]" | "[dev-dependencies.criterion]");
        }
        !left_out
    };
    manifest.split_inclusive('\n').filter(keep).collect()
}

fn write(path: &Path, text: &str) -> Result<()> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(path, text))
        .with_context(|| format!("cannot write {}", path.display()))
}

fn remove(directory: &Path) -> Result<()> {
    if directory.exists() {
        fs::remove_dir_all(directory).with_context(|| format!("cannot remove {}", directory.display()))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let cannot = || format!("cannot copy {}", from.display());
    fs::create_dir_all(to).with_context(cannot)?;
    for entry in fs::read_dir(from).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let target = to.join(entry.file_name());
        if entry.file_type().with_context(cannot)?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target).with_context(cannot)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benchmarks_are_left_out() {
        let manifest = "[package]\nname = \"a\"\n\n[[bench]]\nname = \"b\"\n\n[dev-dependencies.criterion]\nversion = \"0.5\"\n\n\
                        [dev-dependencies.rand]\nversion = \"0.9\"\n";
        let left = "[package]\nname = \"a\"\n\n[dev-dependencies.rand]\nversion = \"0.9\"\n";
        assert_eq!(without_benchmarks(manifest), left);
    }
}
