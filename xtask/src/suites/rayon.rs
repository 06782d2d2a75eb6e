//! `cargo xtask rayon-suite`: rayon's own tests on the drop-in, first without DagSan, then under it.
//!
//! The tests of `rayon` are run where they are. Those of rayon-core's units stand in its sources, which the drop-in
//! replaces; they are compiled into a package of their own, with the public interface in place of the crate.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::bench::native::{cargo_dagsan, succeed, target_directory};
use crate::suites::{Scratch, copy, manifest, remove, write};

/// Options of `rayon-suite`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The version of rayon
    #[arg(long, default_value = "1.12.0")]
    rayon: String,
    /// The version of rayon-core
    #[arg(long, default_value = "1.13.0")]
    rayon_core: String,
    /// Only without DagSan
    #[arg(long)]
    plain: bool,
}

/// What is left out, for the reasons in docs/rayon.md: tests that need two threads at the same time, and tests of the
/// threads themselves.
const EXCEPTIONS: [&str; 21] = [
    // A second thread must come to the other half of a search.
    "find_last_octillion",
    "find_any_octillion",
    "filter_find_any_octillion",
    "test_usize_i64_overflow",
    // Jobs or handlers wait for each other, or for the thread that spawns them.
    "join_context_second",
    "scope_spawn_broadcast_barrier",
    "start_callback_called",
    "exit_callback_called",
    "handler_panics_handled_correctly",
    "termination_while_things_are_executing",
    "use_current_thread_basic",
    // Names, stacks and variables of threads.
    "named_threads",
    "panic_thread_name",
    "failed_thread_stack",
    "stack_overflow_crash",
    "missing_scoped_tls",
    // What is stolen, and which of two scopes' jobs is next on a worker.
    "join_context_neither",
    "scope_test::mixed_fifo_order",
    "scope_test::mixed_lifo_order",
    "scope_test::mixed_fifo_lifo_order",
    "scope_test::mixed_lifo_fifo_order",
];

/// What has a run of its own, with fewer pieces. Searches in 10^27 items end early because rayon knows by the position of a
/// piece, in 64 bits, that it lies behind what was found; down to single items there are 90 cuts, and what the last ones
/// part would be searched to its end. And 81 iterators over a million items. The second has the name of an exception in
/// its own.
const LARGE: [&str; 3] = ["find_first_octillion", "fold_find_any_octillion_flat", "check_lengths"];

/// How many pieces.
const PIECES: &str = "split=1024";

/// Tests that look into the crate, and are cut out.
const INTERNAL: [&str; 2] = ["workers_stop", "sleeper_stop"];

/// The units' tests as a test of another crate.
const UNITS: &str = r#"
#![allow(unused_imports, dead_code, deprecated)]
pub use rayon_core::*;
mod unwind {
    pub fn halt_unwinding<R>(f: impl FnOnce() -> R) -> std::thread::Result<R> {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(f))
    }
}
mod registry {
    pub fn in_worker<R: Send>(f: impl FnOnce((), bool) -> R + Send) -> R {
        rayon_core::scope(|_| f((), false))
    }
}
#[path = "../../real/broadcast/test.rs"]
mod broadcast_test;
#[path = "../../real/join/test.rs"]
mod join_test;
#[path = "../../real/scope/test.rs"]
mod scope_test;
#[path = "../../real/spawn/test.rs"]
mod spawn_test;
#[path = "../../real/thread_pool/test.rs"]
mod thread_pool_test;
#[path = "../../real/test.rs"]
mod lib_test;
"#;

/// Runs the tests, and stops at the first package that fails.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let scratch = Scratch::new(root, "rayon")?;
    let vendored = scratch.vendor(&[("rayon", &args.rayon), ("rayon-core", &args.rayon_core)])?;
    let rayon = scratch.package(&vendored, "rayon", &args.rayon)?;
    let core = units(&scratch, &vendored, args)?;
    let drop_in = root.join("crates").join("rayon-core");
    println!("without DagSan");
    suite(root, &rayon, &core, || {
        let mut command = Command::new("cargo");
        command.arg("--config").arg(format!("patch.crates-io.rayon-core.path={drop_in:?}"));
        command
    })?;
    if args.plain {
        return Ok(());
    }
    for package in [&rayon, &core] {
        // The patch is in the lock file, and must not be under DagSan.
        fs::remove_file(package.join("Cargo.lock")).context("cargo has left no lock file")?;
    }
    let dagsan = cargo_dagsan(root)?;
    println!("under DagSan");
    suite(root, &rayon, &core, || Command::new(&dagsan))
}

/// All tests of both packages, then the large ones, which the first has.
fn suite(root: &Path, rayon: &Path, core: &Path, cargo: impl Fn() -> Command) -> Result<()> {
    for package in [rayon, core] {
        println!("{}", package.display());
        let mut command = test(cargo(), root, package);
        command.args(["--no-fail-fast", "--lib", "--tests", "--"]);
        for left_out in EXCEPTIONS.iter().chain(&LARGE) {
            command.args(["--skip", left_out]);
        }
        succeed(&mut command)?;
    }
    let mut command = test(cargo(), root, rayon);
    command.args(["--lib", "--test", "octillion", "--"]).args(LARGE).env("DAGSAN_OPTIONS", PIECES);
    succeed(&mut command)
}

fn test(mut command: Command, root: &Path, package: &Path) -> Command {
    command.arg("test").env("CARGO_TARGET_DIR", target_directory(root).join("suites").join("build"));
    // Optimised a little, and without the link-time optimisation that `cargo dagsan` gives other profiles.
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1").env_remove("RUSTFLAGS").current_dir(package);
    command
}

/// The package of rayon-core's tests.
fn units(scratch: &Scratch, vendored: &Path, args: &Args) -> Result<PathBuf> {
    let (to, from) = (scratch.0.join("core"), vendored.join(format!("rayon-core-{}", args.rayon_core)));
    remove(&to)?;
    copy(&from.join("tests"), &to.join("tests"))?;
    copy(&from.join("src"), &to.join("real"))?;
    let pool = to.join("real").join("thread_pool").join("test.rs");
    let text = fs::read_to_string(&pool).with_context(|| format!("cannot read {}", pool.display()))?;
    write(&pool, &INTERNAL.iter().fold(text, |text, name| without(&text, name)))?;
    write(&to.join("tests").join("units").join("main.rs"), UNITS)?;
    write(&to.join("src").join("lib.rs"), "")?;
    let dependencies = format!(
        "rayon-core = \"={}\"\ncrossbeam-utils = \"0.8\"\n\n[dev-dependencies]\nrand = \"0.9\"\nrand_xorshift = \"0.4\"\n\
         scoped-tls = \"1\"\nlibc = \"0.2\"",
        args.rayon_core
    );
    write(&to.join("Cargo.toml"), &manifest("core", &dependencies))?;
    Ok(to)
}

/// The source without the test of this name.
fn without(source: &str, name: &str) -> String {
    let cut = || {
        let function = source.find(&format!("fn {name}("))?;
        let start = source[..function].rfind("#[test]")?;
        let end = function + source[function..].find("\n}\n")? + 3;
        Some(format!("{}{}", &source[..start], &source[end..]))
    };
    cut().unwrap_or_else(|| source.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_cut_out_with_its_attributes() {
        let source = "#[test]\nfn a() {\n}\n\n#[test]\n#[cfg(x)]\nfn b() {\n    1\n}\n\nfn c() {}\n";
        assert_eq!(without(source, "b"), "#[test]\nfn a() {\n}\n\n\nfn c() {}\n");
        assert_eq!(without(source, "d"), source);
    }
}
