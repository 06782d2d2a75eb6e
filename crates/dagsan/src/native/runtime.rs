//! Builds the runtime that goes into every checked program, from DagSan's own sources.
//!
//! It must come from the compiler that compiles the program, so it is built by cargo in the user's directory, with the
//! toolchain that holds there. All its crates carry a mark in their identity, or rustc could take its serde for the
//! user's.
//!
//! There are two, which differ in their hooks. A program that is linked with fat LTO gets them inlined; in any other
//! they are called, and then shorter ones are better.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::native::config::{TARGET, cargo};
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

/// Builds it under `directory`, if it is not there and up to date.
pub fn build(directory: &Path, hooks: Hooks, color: &str, quiet: bool) -> Result<Runtime> {
    let (name, features) = match hooks {
        Hooks::Inlined => ("inlined", "inline-hooks"),
        Hooks::Called => ("called", ""),
    };
    let directory = &directory.join(name);
    let source = source()?;
    let manifest = source.join("Cargo.toml");
    let release = directory.join(TARGET).join("release");
    let library = release.join("libdagsan_rt.rlib");
    if !quiet && !library.exists() {
        status::progress(color, "Compiling", "dagsan runtime");
    }
    let mut command = cargo();
    command.args(["build", "--quiet", "--release", "--package=dagsan-rt", "--target", TARGET]);
    command.args(["--features", features]);
    command.arg("--manifest-path").arg(&manifest).arg("--target-dir").arg(directory);
    for setting in PROFILE {
        command.args(["--config", setting]);
    }
    command.env("RUSTFLAGS", RUSTFLAGS).env_remove("CARGO_ENCODED_RUSTFLAGS");
    let output = command.output().context("cannot start cargo")?;
    ensure!(
        output.status.success(),
        "{}\nthe dagsan runtime cannot be built with this toolchain: see above",
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    ensure!(library.exists(), "{} was built and has no library", manifest.display());
    // Macros that its crates were compiled with are for the host.
    let directories = vec![release.join("deps"), directory.join("release").join("deps")];
    Ok(Runtime { library, directories, rayon: rayon::source(&source) })
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
