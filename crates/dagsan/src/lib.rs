//! DagSan's commands: `dagsan` and `cargo dagsan`.
//!
//! For the task language, `dagsan check`: `cli` is what can be asked for, `inputs` which files are meant, `check` checks
//! one of them, in one run or in all `schedules`, `describe` says what a run was in the words of a report, `expect`
//! compares with what its author expects, `command` does it for all and prints.
//!
//! For native programs, `cargo dagsan`, `dagsan report` and `dagsan explain`: `native`.
//!
//! `manual` makes completions and manual pages. `accept` says which races do not count, `reports` has the files that reports are written to, `exit` the exit codes of all.

mod accept;
mod check;
mod cli;
mod command;
mod describe;
mod exit;
mod expect;
mod inputs;
mod manual;
mod native;
mod reports;
mod schedules;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use cli::{Action, Cli};
use exit::Code;

/// The command `dagsan`.
pub fn dagsan() -> ExitCode {
    let Cli { action } = Cli::parse();
    end(match action {
        Action::Check(arguments) => schedules::listen_for_interrupts()
            .map_err(Into::into)
            .and_then(|()| command::run(&arguments))
            .map(Code::number),
        Action::Report(arguments) => native::report(&arguments),
        Action::Explain(arguments) => native::explain(&arguments),
        Action::Completions(arguments) => {
            native::put(std::io::stdout(), manual::completions(&arguments)).map(|()| Code::Clean.number())
        }
        Action::Man(arguments) => manual::man(&arguments).map(|()| Code::Clean.number()),
    })
}

/// The command `cargo dagsan`, which cargo finds by the name of this program.
pub fn cargo_dagsan() -> ExitCode {
    end(native::cargo_dagsan(std::env::args_os().skip(1).collect()))
}

fn end(code: Result<u8>) -> ExitCode {
    ExitCode::from(code.unwrap_or_else(|error| {
        anstream::eprintln!("error: {error:#}");
        Code::Usage.number()
    }))
}
