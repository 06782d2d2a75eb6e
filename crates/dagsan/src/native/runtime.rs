//! Builds the runtime that goes into every checked program, from DagSan's own sources.
//!
//! It must come from the compiler that compiles the program, so it is built by cargo in the user's directory, with the
//! toolchain that holds there. All its crates carry a mark in their identity, or rustc could take its serde for the
//! user's.
//!
//! The pass that goes into the compiler is built the same way.
//!
//! There are two runtimes. The one for code that is not optimised keeps call stacks. Without our pass they also differ in their
//! hooks: a program that is linked with fat LTO gets them inlined; in any other they are called, and then shorter ones are better.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::native::config::{TARGET, cargo};
use crate::native::pass::{self, Pass};
use crate::native::rayon;
use crate::native::session::Runtime;
use crate::native::status;

/// The variable that names other sources.
const SOURCE: &str = "DAGSAN_SOURCE";

/// Not instrumented, whatever the user's flags are.
const RUSTFLAGS: &str = "-Cmetadata=dagsan -Cembed-bitcode=yes -Cforce-frame-pointers=yes";

/// Settings that the user's configuration must not change.
const PROFILE: [&str; 5] = [
    "profile.release.opt-level=3",
    "profile.release.codegen-units=1",
    "profile.release.lto=false",
    "profile.release.incremental=false",
    "profile.release.panic='unwind'",
];

/// How hooks get into the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hooks {
    Inlined,
    Called,
}

/// Builds it under `directory`, if it is not there and up to date, with the pass.
pub fn build(directory: &Path, hooks: Hooks, color: &str, quiet: bool) -> Result<(Runtime, Pass)> {
    let (name, mut features) = match hooks {
        Hooks::Inlined => ("inlined", "inline-hooks".to_owned()),
        Hooks::Called => ("called", String::new()),
    };
    let mut name = name.to_owned();
    if !quiet && !directory.exists() {
        status::progress(color, "Compiling", "dagsan runtime");
    }
    let pass = pass::prepare(&directory.join("pass"))?;
    match pass {
        Pass::Ours(_) => features += " pass",
        Pass::ThreadSanitizers(_) => name += "-without-pass",
    }
    let directory = &directory.join(name);
    let release = package(directory, "dagsan-rt", &features)?;
    let library = release.join("libdagsan_rt.rlib");
    ensure!(library.exists(), "{} was built and is not there", library.display());
    // Macros that its crates were compiled with are for the host.
    let directories = vec![release.join("deps"), directory.join("release").join("deps")];
    let runtime = Runtime { library, directories, rayon: rayon::source(&source()?), pass: pass.library() };
    Ok((runtime, pass))
}

/// Builds one of DagSan's packages; the directory of what was built.
pub fn package(directory: &Path, package: &str, features: &str) -> Result<PathBuf> {
    let manifest = source()?.join("Cargo.toml");
    let mut command = cargo();
    command.args(["build", "--quiet", "--release", "--package", package, "--target", TARGET]);
    command.args(["--features", features]);
    command.arg("--manifest-path").arg(&manifest).arg("--target-dir").arg(directory);
    for setting in PROFILE {
        command.args(["--config", setting]);
    }
    command.env("RUSTFLAGS", RUSTFLAGS).env_remove("CARGO_ENCODED_RUSTFLAGS");
    let output = command.output().context("cannot start cargo")?;
    ensure!(
        output.status.success(),
        "{}\n{package} cannot be built with this toolchain: see above",
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    Ok(directory.join(TARGET).join("release"))
}

/// The root of DagSan's sources.
fn source() -> Result<PathBuf> {
    let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("/"));
    let source = env::var_os(SOURCE).map_or_else(|| built_from.to_owned(), PathBuf::from);
    if !source.join("crates").join("dagsan-rt").join("Cargo.toml").is_file() {
        bail!(
            "the sources of the dagsan runtime are not in {}: set {SOURCE} to a checkout of DagSan, or install \
             cargo-dagsan from one again (cargo install --path crates/dagsan)",
            source.display()
        );
    }
    Ok(source)
}
