//! The kernels, built three times: plain, for ThreadSanitizer, for DagSan.
//!
//! All are optimised alike (`kernels/Cargo.toml`: fat LTO, one unit). ThreadSanitizer is rustc's own, with the standard
//! library as it comes: not instrumented, which is also what DagSan sees of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// How the kernels are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    Plain,
    Tsan,
    Dagsan,
}

impl Build {
    pub const ALL: [Build; 3] = [Build::Plain, Build::Tsan, Build::Dagsan];

    pub fn name(self) -> &'static str {
        match self {
            Build::Plain => "plain",
            Build::Tsan => "tsan",
            Build::Dagsan => "dagsan",
        }
    }

    /// Builds the kernels of a package, and returns the program.
    pub fn make(self, root: &Path, package: &str) -> Result<PathBuf> {
        println!("building {package}: {}", self.name());
        let directory = target_directory(root).join("native").join(package).join(self.name());
        let mut command = match self {
            Build::Plain | Build::Tsan => Command::new("cargo"),
            Build::Dagsan => Command::new(cargo_dagsan(root)?),
        };
        command.args(["build", "--release", "--target", TARGET]);
        command.arg("--manifest-path").arg(root.join(package).join("Cargo.toml"));
        command.arg("--target-dir").arg(&directory).env_remove("RUSTFLAGS").current_dir(root);
        if self == Build::Tsan {
            command.env("RUSTC_BOOTSTRAP", "1");
            command.env("RUSTFLAGS", "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer");
        }
        succeed(&mut command)?;
        // `cargo dagsan` has a directory of its own in every target directory.
        let directory = if self == Build::Dagsan { directory.join("dagsan") } else { directory };
        Ok(directory.join(TARGET).join("release").join("kernels"))
    }
}

/// Where cargo builds the workspace, and where we put what we build besides.
pub fn target_directory(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |given| root.join(given))
}

/// Removes what `cargo dagsan` has built in a target directory, but for its runtime and its pass.
pub fn forget_programs(directory: &Path) -> Result<()> {
    let ours = directory.join("dagsan");
    if !ours.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(&ours).with_context(|| format!("cannot read {}", ours.display()))? {
        let path = entry.with_context(|| format!("cannot read {}", ours.display()))?.path();
        if path.is_dir() && !path.ends_with("runtime") {
            fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// Builds the `cargo dagsan` of this workspace, and returns the program.
pub fn cargo_dagsan(root: &Path) -> Result<PathBuf> {
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "--quiet", "--package", "dagsan", "--bin", "cargo-dagsan"]);
    succeed(command.current_dir(root))?;
    Ok(target_directory(root).join("release").join("cargo-dagsan"))
}

/// Runs a command that must succeed.
pub fn succeed(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot start {name}"))?;
    ensure!(status.success(), "{name} {} ended with {status}", arguments(command));
    Ok(())
}

fn arguments(command: &Command) -> String {
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}
