//! What the tests share.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use dagsan_findings::FINDINGS_FILE;

/// Seconds for a run, which takes less than one, and for what may have to be built.
const TO_RUN: &str = "60";
const TO_BUILD: &str = "900";

/// Where the runtime is built and findings are kept: under the target directory, so that the next time is quick.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("openmp")
}

/// A program that is ended if it hangs, without the variables that would change what it does.
fn limited(seconds: &str, program: &OsStr) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", seconds]).arg(program);
    for name in [
        "DAGSAN_OPTIONS",
        FINDINGS_FILE,
        "DAGSAN_CC",
        "DAGSAN_CXX",
        "DAGSAN_PASS",
        "OMP_NUM_THREADS",
        "RUSTFLAGS",
    ] {
        command.env_remove(name);
    }
    command.env("DAGSAN_CACHE", cache());
    command
}

/// `dagsan`.
pub fn dagsan(arguments: &[&str]) -> Command {
    let mut command = limited(TO_BUILD, env!("CARGO_BIN_EXE_dagsan").as_ref());
    command.args(arguments);
    command
}

/// A program, with so many virtual threads.
pub fn program(path: &Path, threads: &str) -> Command {
    let mut command = limited(TO_RUN, path.as_os_str());
    command.env("OMP_NUM_THREADS", threads);
    command
}

/// What a run has printed, and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs it.
pub fn run(command: &mut Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ran { code, stdout: text(stdout), stderr: text(stderr) }
}

/// A directory of its own for a test, removed at its end.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new(name: &str) -> Directory {
        let path = env::temp_dir().join(format!("dagsan-openmp-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    /// A file in it, with this text.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A test that has failed says more than what it leaves behind.
        let _ = fs::remove_dir_all(&self.0);
    }
}
