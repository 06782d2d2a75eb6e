//! Native programs: `cargo dagsan`, and what it left behind.
//!
//! One executable plays three parts, and tells them apart by how it is started:
//!
//! ```text
//! cargo dagsan run ─► command ─ runtime: builds dagsan-rt for the user's toolchain
//!                        │      session: what the other parts must know, in one environment variable
//!                        ▼
//!                      cargo ──► wrapper, in front of every rustc: adds flags to what is compiled for the target
//!                        │
//!                        └─────► runner, in front of every program: runs it, reads its findings, prints the report
//!                                  ├ harness: each test of a test binary in a process of its own
//!                                  └ second: a program with races runs again, for exact places
//! ```
//!
//! What runners tell the command (`told`) becomes the reports that are put together at its end (`collected`).
//! `dagsan cc` and `dagsan c++` compile C and C++ (`cc`), and `dagsan run` runs what they have linked, as the runner does (`program`).
//!
//! `dagsan report` and `dagsan explain` show findings again, the latter after a second run whose output is seen.

mod arguments;
mod beside;
pub mod cc;
mod collected;
mod command;
mod config;
mod doctor;
mod findings;
mod harness;
mod input;
mod interrupt;
mod outcome;
mod pass;
mod program;
mod progress;
mod rayon;
mod replay;
mod runner;
mod runtime;
mod second;
mod session;
mod sources;
mod status;
mod told;
mod wrapper;

pub use arguments::command_line;
pub use outcome::shown;
pub use program::run;
pub use replay::{explain, report};
pub use runner::put;

use std::ffi::OsString;

use anyhow::Result;

use session::Session;

/// The first argument of the part that runs programs.
const RUNNER: &str = "--dagsan-runner";

/// What `cargo-dagsan` does with these arguments; the result is its exit code.
pub fn cargo_dagsan(arguments: Vec<OsString>) -> Result<u8> {
    match arguments.split_first() {
        Some((first, program)) if first == RUNNER => runner::run(&Session::inherited()?, program),
        // cargo passes the name of the command; whoever starts the program by hand may leave it out.
        Some((first, rest)) if first == "dagsan" => command::run(rest),
        Some((rustc, rest)) if Session::is_inherited() => wrapper::run(&Session::inherited()?, rustc, rest),
        _ => command::run(&arguments),
    }
}
