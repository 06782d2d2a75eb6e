//! `dagsan`: the command.
//!
//! `cli` is what can be asked for, `inputs` which files are meant, `check` checks one of them, `expect`
//! compares with what its author expects, `command` does it for all and prints, `exit` has the exit codes.

mod check;
mod cli;
mod command;
mod exit;
mod expect;
mod inputs;

use std::process::ExitCode;

use clap::Parser;

use cli::{Action, Cli};
use exit::Code;

fn main() -> ExitCode {
    let Cli { action: Action::Check(arguments) } = Cli::parse();
    let code = command::run(&arguments).unwrap_or_else(|error| {
        anstream::eprintln!("error: {error:#}");
        Code::Usage
    });
    ExitCode::from(code.number())
}
