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

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::native::beside;
use crate::native::config::{TARGET, cargo, rustc_version};
use crate::native::pass::{self, Pass};
use crate::native::progress;
use crate::native::rayon;
use crate::native::session::Runtime;
use crate::native::sources::{self, Sources};
use crate::native::status;

/// Not instrumented, whatever the user's flags are.
const RUSTFLAGS: &str = "-Cmetadata=dagsan -Cembed-bitcode=yes -Cforce-frame-pointers=yes";
/// For what goes into executables only: their thread-local variables are where the compiler can tell.
const OF_EXECUTABLES: &str = " -Crelocation-model=pie";

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

/// Builds it, if it is not there and up to date, with the pass: in the cache if the sources are there too, else under `directory`.
pub fn build(directory: &Path, hooks: Hooks, color: &str, quiet: bool) -> Result<(Runtime, Pass)> {
    let sources = sources::find()?;
    let directory = &match &sources.builds {
        Some(builds) => builds.join(toolchain()?),
        None => directory.to_owned(),
    };
    let (name, mut features) = match hooks {
        Hooks::Inlined => ("inlined", "inline-hooks".to_owned()),
        Hooks::Called => ("called", String::new()),
    };
    let mut name = name.to_owned();
    let is_first = !quiet && !directory.exists();
    let _line = is_first.then(|| {
        status::progress(color, "Compiling", "dagsan runtime");
        progress::busy("built once for this version and toolchain, which takes a minute or two")
    });
    let pass = pass::prepare(&sources, &directory.join("pass"))?;
    match pass {
        Pass::Ours(_) => features += " pass",
        Pass::ThreadSanitizers(_) => name += "-without-pass",
    }
    let directory = &directory.join(name);
    let release = package(&sources, directory, "dagsan-rt", &features, OF_EXECUTABLES)?;
    let library = release.join("libdagsan_rt.rlib");
    ensure!(library.exists(), "{} was built and is not there", library.display());
    // Macros that its crates were compiled with are for the host.
    let (libraries, macros) = (release.join("deps"), directory.join("release").join("deps"));
    let beside = match &pass {
        Pass::Ours(_) => Some(beside::copy(&library, &libraries, &macros, &directory.join("beside"))?),
        Pass::ThreadSanitizers(_) => None,
    };
    let directories = vec![libraries, macros];
    let rayon = rayon::source(&sources.root);
    let runtime = Runtime { library, directories, rayon, pass: pass.library(), beside };
    Ok((runtime, pass))
}

/// Builds one of DagSan's packages, with flags of its own; the directory of what was built.
pub fn package(
    sources: &Sources,
    directory: &Path,
    package: &str,
    features: &str,
    flags: &str,
) -> Result<PathBuf> {
    let release = directory.join(TARGET).join("release");
    forget_other_sources(&sources.root, directory, &release)?;
    let manifest = sources.root.join("Cargo.toml");
    let mut command = cargo();
    command.args(["build", "--quiet", "--release", "--package", package, "--target", TARGET]);
    command.args(["--features", features]);
    command.arg("--manifest-path").arg(&manifest).arg("--target-dir").arg(directory);
    for setting in PROFILE {
        command.args(["--config", setting]);
    }
    command.env("RUSTFLAGS", format!("{RUSTFLAGS}{flags}")).env_remove("CARGO_ENCODED_RUSTFLAGS");
    let output = command.output().context("cannot start cargo")?;
    ensure!(
        output.status.success(),
        "{}\n{package} cannot be built here: see above",
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    Ok(release)
}

/// To cargo, the same crate in another directory is the same, and it is up to date if its files are older than what was built. So what was built from other
/// sources is built again.
fn forget_other_sources(root: &Path, directory: &Path, release: &Path) -> Result<()> {
    let name = directory.join("sources");
    let root = root.as_os_str().as_encoded_bytes();
    if fs::read(&name).is_ok_and(|known| known == root) {
        return Ok(());
    }
    let forget = || -> std::io::Result<()> {
        let fingerprints = release.join(".fingerprint");
        if fingerprints.exists() {
            for entry in fs::read_dir(fingerprints)? {
                let entry = entry?;
                if entry.file_name().as_encoded_bytes().starts_with(b"dagsan") {
                    fs::remove_dir_all(entry.path())?;
                }
            }
        }
        fs::create_dir_all(directory)?;
        fs::write(&name, root)
    };
    forget().with_context(|| format!("cannot prepare {}", directory.display()))
}

/// A name for the toolchain: what one has built is of no use to another.
fn toolchain() -> Result<String> {
    let mut digest = DefaultHasher::new();
    rustc_version()?.hash(&mut digest);
    Ok(format!("{:016x}", digest.finish()))
}
