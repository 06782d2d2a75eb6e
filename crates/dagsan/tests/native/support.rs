//! What the tests share: programs built once, runs that end, and directories that go away.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::{env, fs};

use dagsan_findings::{FINDINGS_FILE, Findings};

/// Seconds for a run, the longest of which takes a few.
const TO_RUN: &str = "120";
/// Seconds for what may have to be compiled.
const TO_BUILD: &str = "900";

/// The exit code of `timeout` for a program that was ended by it.
const TIMED_OUT: i32 = 124;

/// A directory of the workspace.
pub fn workspace(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap().join(path)
}

/// The target directory of all that is built here: under that of the workspace, so that the next time is quick.
pub fn target_directory() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("native")
}

/// A program that is ended if it hangs, without the variables that would change what it does.
pub fn limited(program: impl AsRef<OsStr>) -> Command {
    limited_to(TO_RUN, program.as_ref())
}

fn limited_to(seconds: &str, program: &OsStr) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", seconds]).arg(program);
    for name in
        ["DAGSAN_OPTIONS", FINDINGS_FILE, "DAGSAN_SESSION", "RUSTFLAGS", "RUSTC_WRAPPER", "RUST_BACKTRACE"]
    {
        command.env_remove(name);
    }
    command
}

/// `cargo dagsan` in a package.
pub fn cargo_dagsan(package: &Path, arguments: &[&str]) -> Command {
    let mut command = limited_to(TO_BUILD, env!("CARGO_BIN_EXE_cargo-dagsan").as_ref());
    command.arg("dagsan").args(arguments).current_dir(package);
    command.env("CARGO_TARGET_DIR", target_directory()).env("CARGO_TERM_COLOR", "never");
    command
}

/// `dagsan`.
pub fn dagsan(arguments: &[&str]) -> Command {
    let mut command = limited(env!("CARGO_BIN_EXE_dagsan"));
    command.args(arguments);
    command
}

/// What a run has printed, and how it ended.
#[derive(Debug)]
pub struct Ran {
    /// As a shell has it: 128 and the signal.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs it.
pub fn run(command: &mut Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let ran = Ran { code, stdout: text(stdout), stderr: text(stderr) };
    assert_ne!(code, TIMED_OUT, "{command:?} hangs\n{}\n{}", ran.stdout, ran.stderr);
    ran
}

/// Builds a package with the arguments; the directory of its programs.
fn built(package: &str, arguments: &[&str], profile: &str) -> PathBuf {
    let ran = run(&mut cargo_dagsan(&workspace(package), &[&["build", "--quiet"], arguments].concat()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    target_directory().join("dagsan/x86_64-unknown-linux-gnu").join(profile)
}

/// The program `points`, not optimised: its hooks are called.
pub static POINTS: LazyLock<PathBuf> = LazyLock::new(|| built("tests/native", &[], "debug").join("points"));

/// The program `points`, optimised: its hooks are inlined.
pub static OPTIMISED_POINTS: LazyLock<PathBuf> =
    LazyLock::new(|| built("tests/native", &["--release", "--bin", "points"], "release").join("points"));

/// The directory of the examples' programs.
pub static EXAMPLES: LazyLock<PathBuf> = LazyLock::new(|| built("examples/native", &[], "debug"));

/// A directory of its own for a test, removed at its end.
pub struct Directory(pub PathBuf);

impl Directory {
    /// Among the temporary ones; the name is the test's.
    pub fn new(name: &str) -> Directory {
        let path = env::temp_dir().join(format!("dagsan-native-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Directory(path.canonicalize().unwrap())
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A test that has failed says more than what it leaves behind.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A package of its own, without dependencies.
pub fn package(name: &str, main: &str) -> Directory {
    let directory = Directory::new(name);
    fs::create_dir_all(directory.file("src")).unwrap();
    let manifest = "[package]\nname = \"x\"\nedition = \"2024\"\n\n[workspace]\n";
    fs::write(directory.file("Cargo.toml"), manifest).unwrap();
    fs::write(directory.file("src/main.rs"), main).unwrap();
    directory
}

/// Runs a point as the runner does, with `DAGSAN_OPTIONS`; the findings, if it left some.
pub fn run_point(program: &Path, name: &str, options: &str) -> (Ran, Option<Findings>) {
    let directory = Directory::new(&format!("{name}-{}", options.replace(':', "-")));
    let file = directory.file("findings.json");
    let mut command = limited(program);
    command.arg(name).current_dir(&directory.0).env(FINDINGS_FILE, &file);
    if !options.is_empty() {
        command.env("DAGSAN_OPTIONS", options);
    }
    let ran = run(&mut command);
    let found = file.exists().then(|| Findings::read(&file).unwrap());
    (ran, found)
}
