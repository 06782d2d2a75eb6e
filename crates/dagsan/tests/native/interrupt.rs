//! Ctrl-C while a program runs: what was found until then is told.
//!
//! The signal goes to all processes, as from a terminal; each command here is the head of a group of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Directory, POINTS, package, target_directory};

/// Much longer than it takes.
const PATIENCE: Duration = Duration::from_secs(120);

const RACY: &str = "static mut N: u64 = 0;\nfn race() {\n    let add = || std::thread::spawn(|| unsafe { N += 1 });\n    let (one, two) = (add(), add());\n    one.join().unwrap();\n    two.join().unwrap();\n}\n";
const ENDLESS: &str = "fn endless() -> ! {\n    loop {\n        std::thread::sleep(std::time::Duration::from_millis(20));\n    }\n}\n";

/// Not before this file is gone is Ctrl-C pressed.
const AWAITED: &str = "awaited";

/// Presses Ctrl-C when a line with `sign` is printed; the exit code, and all that is printed.
fn interrupted(package: &Directory, arguments: &[&str], sign: &str) -> (Option<i32>, String, String) {
    let _runtime = &*POINTS;
    // Programs of one name would take each other's place in the target directory.
    let name = package.0.file_name().unwrap().to_str().unwrap();
    let manifest = format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n\n[workspace]\n");
    fs::write(package.file("Cargo.toml"), manifest).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_cargo-dagsan"))
        .arg("dagsan")
        .args(arguments)
        .current_dir(&package.0)
        .env("CARGO_TARGET_DIR", target_directory())
        .env("CARGO_TERM_COLOR", "never")
        .env_remove("DAGSAN_OPTIONS")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut stderr = child.stderr.take().unwrap();
    let errors = thread::spawn(move || {
        let mut text = String::new();
        stderr.read_to_string(&mut text).unwrap();
        text
    });
    let mut printed = String::new();
    while !printed.contains(sign) {
        assert_ne!(
            stdout.read_line(&mut printed).unwrap(),
            0,
            "no `{sign}` in\n{printed}\n{}",
            errors.join().unwrap()
        );
    }
    // What is captured shows no sign: whoever has begun removes the file.
    while package.file(AWAITED).exists() {
        thread::sleep(Duration::from_millis(20));
    }
    let sent = Command::new("sh").args(["-c", &format!("kill -INT -{}", child.id())]).status().unwrap();
    assert!(sent.success());
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > PATIENCE {
            Command::new("sh").args(["-c", &format!("kill -KILL -{}", child.id())]).status().unwrap();
            panic!("not ended {PATIENCE:?} after the interrupt\n{printed}");
        }
        thread::sleep(Duration::from_millis(20));
    }
    stdout.read_to_string(&mut printed).unwrap();
    (child.wait().unwrap().code(), printed, errors.join().unwrap())
}

#[test]
fn a_program_is_reported_until_then() {
    let main =
        format!("{RACY}{ENDLESS}fn main() {{\n    race();\n    println!(\"ready\");\n    endless()\n}}\n");
    let package = package("interrupted", &main);
    let file = package.file("x.json");
    let report = format!("json={}", file.display());
    let (code, _, errors) = interrupted(&package, &["--report", &report, "run"], "ready");
    assert_eq!(code, Some(66), "{errors}");
    assert!(
        errors.contains("interrupted: the program was ended, and this is what was found until then"),
        "{errors}"
    );
    assert!(errors.contains("race[") && errors.contains("::N`"), "{errors}");
    let json: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(json[0]["verdict"], "race", "files are written too");
}

#[test]
fn tests_that_have_ended_are_told() {
    let tests = format!(
        "#[test] fn a_races() {{ race() }}\n#[test] fn b_runs_for_ever() {{ std::fs::remove_file({AWAITED:?}).unwrap(); endless() }}\n\
         #[test] fn c_comes_later() {{}}\n"
    );
    let package = package("interrupted-tests", &format!("{RACY}{ENDLESS}{tests}fn main() {{}}\n"));
    fs::write(package.file(AWAITED), "").unwrap();
    let (code, printed, errors) = interrupted(&package, &["test", "--jobs", "1"], "test a_races ... RACE");
    assert_eq!(code, Some(66), "{printed}{errors}");
    assert!(printed.contains("interrupted: 1 test was not run\n"), "{printed}{errors}");
    assert!(printed.contains("---- a_races dagsan ----\nrace["), "{printed}{errors}");
    assert!(printed.contains("test result: FAILED. 0 passed; 1 failed; 1 racy; "), "{printed}{errors}");
}

#[test]
fn a_clean_program_ends_as_shells_expect() {
    let package = package(
        "interrupted-clean",
        &format!("{ENDLESS}fn main() {{\n    println!(\"ready\");\n    endless()\n}}\n"),
    );
    let (code, _, errors) = interrupted(&package, &["run"], "ready");
    assert_eq!(code, Some(130), "{errors}");
}
