//! `cargo dagsan` from end to end as far as it goes without a compilation: help, and what it refuses.

use std::fs;

use crate::support::{self, Directory, Ran, limited, package, run};

const EMPTY: &str = "fn main() {}\n";

/// Where there are no sources to build a runtime from.
fn cargo_dagsan(directory: &Directory, arguments: &[&str]) -> Ran {
    let mut command = support::cargo_dagsan(&directory.0, arguments);
    run(command
        .env("DAGSAN_SOURCE", &directory.0)
        .env("DAGSAN_CACHE", directory.file("cache"))
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("CARGO_BUILD_TARGET_DIR"))
}

fn error(directory: &Directory, arguments: &[&str]) -> String {
    let ran = cargo_dagsan(directory, arguments);
    assert_eq!(ran.code, 2, "{ran:?}");
    ran.stderr
}

#[test]
fn help_lists_commands_and_exit_codes() {
    let package = package("help", EMPTY);
    for arguments in [&["--help"][..], &["run", "--help"], &["test", "-h"]] {
        let Ran { code, stdout: help, .. } = cargo_dagsan(&package, arguments);
        assert!(code == 0 && help.contains("\n  test   ") && help.contains("\n  66  a race\n"), "{help}");
        assert!(help.ends_with(".\n"), "{help}");
    }
    assert!(cargo_dagsan(&package, &["--version"]).stdout.starts_with("cargo-dagsan "));
}

#[test]
fn what_cannot_be_done_is_refused_with_the_next_step() {
    let package = package("refused", EMPTY);
    let error = |arguments: &[&str]| error(&package, arguments);
    assert!(error(&["fly"]).contains("there is no `cargo dagsan fly`: use run, test"));
    assert!(error(&["run", "--target", "wasm32-wasip1"]).contains("leave it out to check on x86_64"));
    assert!(error(&["build"]).contains("set DAGSAN_SOURCE to a checkout of DagSan"));
    assert!(error(&["test", "--doc"]).contains("doctests cannot be checked"));
    // Without sources to build from, so before anything is built.
    assert!(error(&["nextest"]).contains("say `cargo dagsan nextest run`"));
    assert!(error(&["nextest", "list"]).contains("say `cargo dagsan nextest run`"));
    assert!(error(&["clean", "-p", "x"]).contains("leave out -p"));
    fs::remove_file(package.file("Cargo.toml")).unwrap();
    assert!(error(&["run"]).contains("could not find `Cargo.toml`"), "in cargo's words");
}

#[test]
fn clean_removes_what_is_ours_and_nothing_else() {
    let package = package("clean", EMPTY);
    let target = package.file("target");
    let cache = package.file("cache");
    let ours = ["sources/1", "runtime/1", "cc/1", "elsewhere/1", "findings"].map(|name| cache.join(name));
    let others = [target.join("debug"), cache.join("other")];
    for directory in ours.iter().chain(&others).chain([&target.join("dagsan/findings")]) {
        fs::create_dir_all(directory).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(cargo_dagsan(&package, &["clean"]).code, 0);
        assert!(!target.join("dagsan").exists());
        assert!(!ours.iter().any(|directory| directory.exists()), "{ours:?}");
        assert!(others.iter().all(|directory| directory.exists()), "{others:?}");
    }
}

#[test]
fn clean_needs_no_package() {
    let directory = Directory::new("clean-elsewhere");
    fs::create_dir_all(directory.file("cache/cc/1")).unwrap();
    assert_eq!(cargo_dagsan(&directory, &["clean"]).code, 0);
    assert!(!directory.file("cache/cc").exists());
}

#[test]
fn a_wrapper_without_its_session_refuses_to_compile() {
    // Not a session of this version: the wrapper must say so, and not compile without checks.
    let ran =
        run(limited(env!("CARGO_BIN_EXE_cargo-dagsan")).args(["rustc", "-vV"]).env("DAGSAN_SESSION", "{}"));
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("not set by this version of cargo dagsan"));
}
