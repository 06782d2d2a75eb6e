//! `cargo dagsan` from end to end as far as it goes without a compilation: help, and what it refuses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A package in a directory of its own, removed at its end.
struct Package(PathBuf);

impl Package {
    fn new(name: &str) -> Package {
        let path = std::env::temp_dir().join(format!("dagsan-cargo-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("src")).unwrap();
        let manifest = "[package]\nname = \"x\"\nedition = \"2024\"\n\n[workspace]\n";
        fs::write(path.join("Cargo.toml"), manifest).unwrap();
        fs::write(path.join("src").join("main.rs"), "fn main() {}\n").unwrap();
        Package(path)
    }
}

impl Drop for Package {
    fn drop(&mut self) {
        // A test that has failed says more than what it leaves behind.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn cargo_dagsan(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cargo-dagsan"))
        .arg("dagsan")
        .args(arguments)
        .current_dir(directory)
        .env("DAGSAN_SOURCE", directory)
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("CARGO_BUILD_TARGET_DIR")
        .output()
        .unwrap()
}

fn error(directory: &Path, arguments: &[&str]) -> String {
    let output = cargo_dagsan(directory, arguments);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn help_lists_commands_and_exit_codes() {
    let package = Package::new("help");
    for arguments in [&["--help"][..], &["run", "--help"], &["test", "-h"]] {
        let output = cargo_dagsan(&package.0, arguments);
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success() && help.contains("\n  test   ") && help.contains("\n  66  a race\n"),
            "{help}"
        );
    }
    assert!(cargo_dagsan(&package.0, &["--version"]).stdout.starts_with(b"cargo-dagsan "));
}

#[test]
fn what_cannot_be_done_is_refused_with_the_next_step() {
    let package = Package::new("refused");
    let error = |arguments: &[&str]| error(&package.0, arguments);
    assert!(error(&["fly"]).contains("there is no `cargo dagsan fly`: use run, test"));
    assert!(error(&["run", "--target", "wasm32-wasip1"]).contains("leave it out to check on x86_64"));
    assert!(error(&["build"]).contains("set DAGSAN_SOURCE to a checkout of DagSan"));
    assert!(error(&["clean", "-p", "x"]).contains("leave out -p"));
    fs::remove_file(package.0.join("Cargo.toml")).unwrap();
    assert!(error(&["run"]).contains("could not find `Cargo.toml`"), "in cargo's words");
}

#[test]
fn clean_removes_what_is_ours_and_nothing_else() {
    let package = Package::new("clean");
    let target = package.0.join("target");
    for directory in ["dagsan/findings", "debug"] {
        fs::create_dir_all(target.join(directory)).unwrap();
    }
    for _ in 0..2 {
        assert!(cargo_dagsan(&package.0, &["clean"]).status.success());
        assert!(!target.join("dagsan").exists() && target.join("debug").exists());
    }
}

#[test]
fn a_wrapper_without_its_session_refuses_to_compile() {
    // Not a session of this version: the wrapper must say so, and not compile without checks.
    let output = Command::new(env!("CARGO_BIN_EXE_cargo-dagsan"))
        .args(["rustc", "-vV"])
        .env("DAGSAN_SESSION", "{}")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("not set by this version of cargo dagsan"));
}
