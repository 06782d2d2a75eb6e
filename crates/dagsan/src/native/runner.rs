//! What stands in front of a checked program: runs it, and says what was found.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use dagsan_findings::{FINDINGS_FILE, output};
use dagsan_report::native::program_name;
use dagsan_report::{End, Format, Project, Report, Source};

use crate::accept::Accepting;
use crate::native::input::Input;
use crate::native::outcome::{Outcome, program_code};
use crate::native::second::First;
use crate::native::session::{Action, Session};
use crate::native::told::{self, Told};
use crate::native::{findings, harness, interrupt, status, wrapper};

/// Runs a program and its arguments.
pub fn run(session: &Session, program: &[OsString]) -> Result<u8> {
    let (executable, arguments) = program.split_first().context("there is no program to run")?;
    let path = std::path::absolute(executable).context("cannot tell the current directory")?;
    told::tell(session, &Told::Started)?;
    interrupt::listen()?;
    let is_libtest = wrapper::libtest_mark(&path).exists();
    let code = if findings::Options::from_environment().help {
        run_without_findings(session, executable, arguments)?
    } else if !path.starts_with(&session.programs) {
        if !session.quiet {
            let name = executable.display();
            status::note(&session.color, &format!("{name} is not checked: macros run in the compiler"));
        }
        run_without_findings(session, executable, arguments)?
    } else if session.action == Action::Nextest && arguments.iter().any(|argument| argument == "--list") {
        // Which tests there are is no run of them.
        run_without_findings(session, executable, arguments)?
    } else if matches!(session.action, Action::Test | Action::Nextest) && is_libtest {
        harness::run(session, executable, arguments)?
    } else {
        run_whole(session, executable, arguments)?
    };
    told::tell(session, &Told::Code(code))?;
    Ok(code)
}

/// Runs it as one program, with the terminal for itself.
pub fn run_whole(session: &Session, executable: &OsStr, arguments: &[OsString]) -> Result<u8> {
    let file = findings::file(&session.findings, executable);
    let input = match findings::Options::from_environment().second_run {
        true => Input::of_this_process(&file.with_extension("input"))?,
        false => Input::Once,
    };
    let cannot = || format!("cannot start {}", executable.display());
    let started = Instant::now();
    let mut command = command(session, executable, &file);
    command.args(arguments).stdin(input.first());
    let mut child = interrupt::spawn(&mut command).with_context(cannot)?;
    input.flow(child.stdin.take())?;
    interrupt::until_end(&child).with_context(cannot)?;
    let status = child.wait().with_context(cannot)?;
    let first = First { session, executable, status, file: &file, took: started.elapsed() };
    let mut outcome = first.outcome(|command| _ = command.args(arguments).stdin(input.second()))?;
    told::tell(session, &Told::Met(outcome.accept(&accepting(session)?)))?;
    let drawn = match (&session.graph, &mut outcome.report) {
        (Some(file), Ok(report)) => file.write_around(report),
        _ => Ok(()),
    };
    collect(session, &outcome, &program_name(Path::new(executable)))?;
    show(session, &outcome)?;
    // The verdict stands without its picture.
    drawn.map(|()| outcome.code)
}

/// Runs a program that tells nothing: it was compiled for the host, without hooks (tests of a crate of macros), or was
/// asked for the options of the runtime.
fn run_without_findings(session: &Session, executable: &OsStr, arguments: &[OsString]) -> Result<u8> {
    let file = findings::file(&session.findings, executable);
    let mut command = command(session, executable, &file);
    let status = command.args(arguments).status();
    Ok(program_code(status.with_context(|| format!("cannot start {}", executable.display()))?))
}

/// The program, with the variables that the user's programs see, and behind the user's own runner.
pub fn command(session: &Session, executable: &OsStr, findings: &Path) -> Command {
    let mut command = match session.runner.split_first() {
        Some((runner, arguments)) => {
            let mut command = Command::new(runner);
            command.args(arguments).arg(executable);
            command
        }
        None => Command::new(executable),
    };
    for (name, value) in &session.environment {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env(FINDINGS_FILE, findings);
    command
}

/// The project that the program was started in.
fn project() -> Result<Project> {
    Ok(Project::around(&std::env::current_dir().context("cannot tell the current directory")?))
}

/// What decides which races count.
pub fn accepting(session: &Session) -> Result<Accepting> {
    Accepting::load(&session.accept, project()?)
}

/// Hands the parts of the reports that are put together at the end to the command.
pub fn collect(session: &Session, outcome: &Outcome, name: &str) -> Result<()> {
    if session.collected.is_empty() {
        return Ok(());
    }
    let project = project()?;
    // What has left no findings is no race-free program.
    let none;
    let report = match &outcome.report {
        Ok(report) => report,
        Err(why) => {
            let source = Source::absent(dagsan_report::clean(name));
            none = Report::new(source, dagsan_core::order::default_engine(), End::CutShort(why.clone()));
            &none
        }
    };
    for (of, format) in session.collected.iter().enumerate() {
        for report in [Some(report), outcome.another_way.as_ref()].into_iter().flatten() {
            told::tell(session, &Told::Part { of, text: format.part(report, &project)? })?;
        }
    }
    Ok(())
}

/// Prints a report where it was asked for.
pub fn show(session: &Session, outcome: &Outcome) -> Result<()> {
    let text = match (&outcome.report, session.format) {
        (Err(why), _) => {
            status::warning(&session.color, why);
            return Ok(());
        }
        (Ok(_), format) if format.is_document() => return Ok(()),
        (Ok(_), Format::Text) => outcome.text().unwrap_or_default(),
        (Ok(report), format) => format.part(report, &project()?)?,
    };
    match &session.output {
        Some(path) => {
            let plain = anstream::adapter::strip_str(&text).to_string();
            output::append(path, plain.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
        }
        None if session.format.is_for_terminals() => put(status::stderr(&session.color), &text),
        None => put(status::stdout("never"), &text),
    }
}

/// Writes; a reader that has gone away is no error.
pub fn put(mut stream: impl Write, text: impl AsRef<[u8]>) -> Result<()> {
    match stream.write_all(text.as_ref()).and_then(|()| stream.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write the report"),
    }
}
