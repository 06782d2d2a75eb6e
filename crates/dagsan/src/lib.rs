//! DagSan's commands: `dagsan` and `cargo dagsan`.
//!
//! For the task language, `dagsan check`: `cli` is what can be asked for, `inputs` which files are meant, `check` checks
//! one of them, in one run or in all `schedules`, `describe` says what a run was in the words of a report, `expect`
//! compares with what its author expects, `command` does it for all and prints.
//!
//! For native programs, `cargo dagsan`, `dagsan report` and `dagsan explain`: `native`.
//!
//! `manual` makes completions and manual pages. `accept` says which races do not count, `reports` has the files that reports are written to, `files` whether they can be, `exit` the exit codes of all.

/// Public for `cargo xtask fuzz-readers`, and for nobody else.
#[doc(hidden)]
pub mod accept;
mod check;
mod cli;
mod command;
mod describe;
mod exit;
mod expect;
mod files;
mod inputs;
mod manual;
mod native;
mod reports;
mod schedules;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use dagsan_report::clean_message;

use cli::{Action, Cli, CompilerArguments};
use exit::Code;
use native::cc::Language;

/// The command `dagsan`.
pub fn dagsan() -> ExitCode {
    if let Some((language, arguments)) = compiler() {
        return end(native::cc::run(language, arguments));
    }
    let Cli { action } = Cli::parse();
    end(match action {
        Action::Check(arguments) => schedules::listen_for_interrupts()
            .map_err(Into::into)
            .and_then(|()| command::run(&arguments))
            .map(Code::number),
        Action::Cc(CompilerArguments { arguments }) => native::cc::run(Language::C, arguments),
        Action::Cxx(CompilerArguments { arguments }) => native::cc::run(Language::Cxx, arguments),
        Action::Run(arguments) => native::run(&arguments),
        Action::Report(arguments) => native::report(&arguments),
        Action::Explain(arguments) => native::explain(&arguments),
        Action::Completions(arguments) => {
            native::put(std::io::stdout(), manual::completions(&arguments)).map(|()| Code::Clean.number())
        }
        Action::Man(arguments) => manual::man(&arguments).map(|()| Code::Clean.number()),
    })
}

/// Is this a compiler, by its name or its first argument? What follows is then not for us to read, `--help` and `--version` included.
fn compiler() -> Option<(Language, Vec<OsString>)> {
    let mut arguments = std::env::args_os();
    let name = arguments.next()?;
    let name = Path::new(&name).file_name()?.to_str()?;
    if let Some(language) = Language::of(name) {
        return Some((language, arguments.collect()));
    }
    let language = Language::of(arguments.next()?.to_str()?)?;
    Some((language, arguments.collect()))
}

/// The command `cargo dagsan`, which cargo finds by the name of this program.
pub fn cargo_dagsan() -> ExitCode {
    end(native::cargo_dagsan(std::env::args_os().skip(1).collect()))
}

/// Says what went wrong. Names in it may come from files that somebody else has written.
fn tell_error(error: &anyhow::Error) {
    anstream::eprintln!("error: {}", clean_message(&format!("{error:#}")));
}

fn end(code: Result<u8>) -> ExitCode {
    ExitCode::from(code.unwrap_or_else(|error| {
        tell_error(&error);
        Code::Usage.number()
    }))
}
