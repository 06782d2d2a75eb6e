//! Runs the command in a directory of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use expect_test::Expect;
use serde_json::Value;

/// A directory of its own for each test, removed at its end.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new(test: &str, files: &[(&str, &str)]) -> Directory {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        // Left by a run that failed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        for (name, text) in files {
            let file = path.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Directory(path)
    }

    pub fn run(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dagsan"));
        for name in ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "RUST_BACKTRACE"] {
            command.env_remove(name);
        }
        command.current_dir(&self.0).args(arguments.split(' ')).output().unwrap()
    }

    pub fn json(&self, arguments: &str) -> Value {
        serde_json::from_slice(&self.run(arguments).stdout).unwrap()
    }

    /// Runs the command, and compares exit code, standard output and standard error.
    pub fn check(&self, arguments: &str, expected: Expect) {
        let output = self.run(arguments);
        let mut text = format!("exit code {}\n", output.status.code().unwrap());
        for (name, bytes) in [("output", output.stdout), ("error", output.stderr)] {
            if !bytes.is_empty() {
                text += &format!("--- standard {name}\n{}", String::from_utf8(bytes).unwrap());
            }
        }
        // Trailing white space in a snapshot would be trailing white space in this file.
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        expected.assert_eq(&(lines.join("\n") + "\n"));
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
