//! `dagsan`: the command.
//!
//! `cli` is what can be asked for, `inputs` which files are meant, `check` checks one of them, in one run or in
//! all `schedules`, `describe` says what a run was in the words of a report, `expect` compares with what its author
//! expects, `command` does it for all and prints, `exit` has the exit codes.

mod check;
mod cli;
mod command;
mod describe;
mod exit;
mod expect;
mod inputs;
mod schedules;

use std::process::ExitCode;

use clap::Parser;

use cli::{Action, Cli};
use exit::Code;

fn main() -> ExitCode {
    let Cli { action: Action::Check(arguments) } = Cli::parse();
    let code = schedules::listen_for_interrupts().map_err(Into::into).and_then(|()| command::run(&arguments));
    let code = code.unwrap_or_else(|error| {
        anstream::eprintln!("error: {error:#}");
        Code::Usage
    });
    ExitCode::from(code.number())
}
