//! What the parts of one `cargo dagsan` must know of each other, handed down in one environment variable.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result};
use dagsan_report::Format;
use serde::{Deserialize, Serialize};

use crate::accept::AcceptArguments;
use crate::cli::GraphFile;
use crate::native::beside::Beside;

/// The variable.
pub const VARIABLE: &str = "DAGSAN_SESSION";

/// What cargo was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    Build,
    Run,
    Test,
    Bench,
    /// cargo-nextest, which runs each test by itself.
    Nextest,
}

impl Action {
    /// The subcommand of cargo.
    pub fn name(self) -> &'static str {
        match self {
            Action::Build => "build",
            Action::Run => "run",
            Action::Test => "test",
            Action::Bench => "bench",
            Action::Nextest => "nextest",
        }
    }
}

/// Where the runtime is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runtime {
    /// The library.
    pub library: PathBuf,
    /// Where rustc finds the crates it needs.
    pub directories: Vec<PathBuf>,
    /// The source that takes the place of rayon-core's.
    pub rayon: PathBuf,
    /// The pass that is loaded into the compiler, if it can be.
    pub pass: Option<PathBuf>,
    /// The same for programs with fat link-time optimisation.
    pub beside: Option<Beside>,
}

/// One `cargo dagsan`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    pub action: Action,
    pub runtime: Runtime,
    /// The version of the compiler's LLVM.
    pub llvm: u32,
    /// The user's own rustc wrapper.
    pub wrapper: Option<PathBuf>,
    /// The user's own runner, and its arguments.
    pub runner: Vec<String>,
    /// Where programs for the target are built. Tests of macros run elsewhere, and are not checked.
    pub programs: PathBuf,
    /// The directory of findings.
    pub findings: PathBuf,
    /// A file for what the other parts tell the command: see [`super::told`].
    pub told: PathBuf,
    /// The variables that cargo was started with, and that the user's programs should see as they were.
    pub environment: Vec<(String, Option<String>)>,
    pub format: Format,
    /// Where reports go, instead of to the terminal.
    pub output: Option<PathBuf>,
    /// The formats of the reports that the command puts together from their parts.
    pub collected: Vec<Format>,
    /// A file for what is around the races in the graph.
    pub graph: Option<GraphFile>,
    /// Which races do not count.
    pub accept: AcceptArguments,
    /// `auto`, `always` or `never`.
    pub color: String,
    pub quiet: bool,
    /// How many tests to run at a time, if that was said.
    pub jobs: Option<usize>,
}

impl Session {
    /// Was this process started by one?
    pub fn is_inherited() -> bool {
        env::var_os(VARIABLE).is_some()
    }

    /// The one that started this process.
    pub fn inherited() -> Result<Session> {
        let text = env::var(VARIABLE).context("this is a part of `cargo dagsan`, and is started by it")?;
        serde_json::from_str(&text)
            .with_context(|| format!("{VARIABLE} was not set by this version of cargo dagsan"))
    }

    /// The value of the variable.
    pub fn to_variable(&self) -> Result<String> {
        serde_json::to_string(self).context("a directory has a name that is not UTF-8: use another one")
    }
}
