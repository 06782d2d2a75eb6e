//! What the tests share: programs built once, and runs that end.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs};

/// Seconds, for a build and for a run.
const TIME_LIMIT: &str = "300";

/// The exit code of `timeout` for a program that was ended by it.
const TIMED_OUT: i32 = 124;

/// A path in the workspace.
pub fn workspace(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap().join(path)
}

/// A command that is ended if it hangs, without the variables that would change what it does.
pub fn limited(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", TIME_LIMIT]).arg(program);
    for name in ["DAGSAN_OPTIONS", "DAGSAN_SESSION", "RUSTFLAGS", "RUSTC_WRAPPER", "RAYON_NUM_THREADS"] {
        command.env_remove(name);
    }
    command
}

/// `cargo dagsan` in a package. What it builds is under the target directory of the workspace, so that the next time is
/// quick.
pub fn cargo_dagsan(package: &Path, arguments: &[&str]) -> Command {
    let mut command = limited(env!("CARGO_BIN_EXE_cargo-dagsan"));
    command.arg("dagsan").args(arguments).current_dir(package);
    command.env("CARGO_TARGET_DIR", target_directory()).env("CARGO_TERM_COLOR", "never");
    command
}

pub fn target_directory() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("rayon")
}

/// Builds the package, and says where its programs are.
fn built(arguments: &[&str], profile: &str) -> PathBuf {
    let arguments = [&["build", "--quiet"], arguments].concat();
    let (code, output) = run(&mut cargo_dagsan(&workspace("tests/rayon"), &arguments));
    assert_eq!(code, 0, "{output:?}");
    target_directory().join("dagsan/x86_64-unknown-linux-gnu").join(profile)
}

/// The programs, for development.
pub static DEVELOPMENT: LazyLock<PathBuf> = LazyLock::new(|| built(&[], "debug"));
/// The same, optimised.
pub static RELEASE: LazyLock<PathBuf> = LazyLock::new(|| built(&["--release"], "release"));

/// Runs it, to its end.
pub fn run(command: &mut Command) -> (i32, Output) {
    let output = command.output().unwrap();
    let code = output.status.code().unwrap_or(-1);
    assert_ne!(code, TIMED_OUT, "{command:?} hangs\n{output:?}");
    (code, output)
}

/// A directory that goes away.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new(name: &str) -> Directory {
        // Tests run at the same time, some of them the same program. Only the number itself is shared.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("dagsan-rayon-{name}-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A test that has failed says more than what it leaves behind.
        let _ = fs::remove_dir_all(&self.0);
    }
}
