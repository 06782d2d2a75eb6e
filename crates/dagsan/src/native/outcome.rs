//! How the run of a native program ended, from its exit status and from what it left.

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use anyhow::{Context, Result};
use dagsan_findings::{Error, Findings};
use dagsan_report::native::{self, Files};
use dagsan_report::symbols::Symbols;
use dagsan_report::{Report, Verdict, text, word};

use crate::accept::{Accepting, Met};
use crate::exit::{self, Code};
use crate::native::{findings, interrupt, second};

/// A run that is over.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code: ours if there is something to say, otherwise the program's.
    pub code: u8,
    /// The code that the process ended with.
    program: u8,
    /// The code that the program asked for, if it came to its end.
    pub asked: Option<u8>,
    /// What there is to say about it, or why nothing can be said.
    pub report: Result<Report, String>,
    /// What a second run has found that went another way.
    pub another_way: Option<Report>,
}

impl Outcome {
    /// Reads the findings of a program, and removes them if there is no race. Is it the `only` run? Then another one may show more.
    pub fn read(status: ExitStatus, file: &Path, only: bool) -> Result<Outcome> {
        let found = match Findings::read(file) {
            Ok(found) => found,
            Err(Error::File { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(without_findings(status));
            }
            Err(error) => return Err(error.into()),
        };
        let mut report = describe(&found)?;
        if report.verdict() == Verdict::Race {
            let file = typed(file);
            report.notes.push(format!("to see this again: dagsan report {file}"));
            let nearby = found.races.iter().any(|race| race.first.nearby || race.second.nearby);
            if only && (nearby || found.stacks.iter().any(|stack| !stack.complete)) {
                report.notes.push(format!(
                    "to see exact places and whole call stacks, from a second run: dagsan explain {file}"
                ));
            }
        } else {
            findings::remove(file)?;
        }
        let program = program_code(status);
        let code = exit::of_native(&report, program);
        // Of the number, the system hands on the last eight bits.
        let asked = found.code.map(|code| code as u8);
        Ok(Outcome { code, program, asked, report: Ok(report), another_way: None })
    }

    /// Says that the program was ended after Ctrl-C.
    pub fn interrupted(&mut self) {
        if let Ok(report) = &mut self.report {
            let until = "interrupted: the program was ended, and this is what was found until then";
            report.notes.push(until.to_owned());
        }
        if self.code != Code::Race.number() {
            self.code = interrupt::CODE;
            self.program = interrupt::CODE;
        }
    }

    /// Puts accepted races apart, and says what was met.
    pub fn accept(&mut self, accepting: &Accepting) -> Met {
        let mut met = Met::default();
        if let Some(report) = &mut self.another_way {
            met.add(&accepting.apply(report));
        }
        if let Ok(report) = &mut self.report {
            met.add(&accepting.apply(report));
            // Has the code of races, which do not count any more, taken the place of the program's own?
            let of_races = findings::Options::from_environment().exit_code;
            if report.verdict() == Verdict::Accepted && self.program == of_races {
                self.program = self.asked.unwrap_or(self.program);
            }
            self.code = exit::of_native(report, self.program);
        }
        met
    }

    /// The report as text, if there is one; of two runs, one after the other.
    pub fn text(&self) -> Option<String> {
        let mut text = text::render(self.report.as_ref().ok()?);
        if let Some(second) = &self.another_way {
            text += &second::heading(second);
            text += &text::render(second);
        }
        Some(text)
    }

    /// The verdict, if there is one.
    pub fn verdict(&self) -> Option<Verdict> {
        self.report.as_ref().ok().map(Report::verdict)
    }
}

/// The report on findings. A program whose symbols cannot be read has races all the same.
pub fn describe(found: &Findings) -> Result<Report> {
    let current = env::current_dir().context("cannot tell the current directory")?;
    let files = Files::new(&current, &found.process);
    let (mut symbols, trouble) = match Symbols::open(&found.process.executable) {
        Ok(symbols) => (symbols, None),
        Err(error) => (Symbols::none(), Some(format!("there are no names of functions: {error}"))),
    };
    let mut report = native::report(found, &mut symbols, &files)?;
    report.notes.extend(trouble.or_else(|| symbols.trouble()));
    Ok(report)
}

/// A path as it is best read.
pub fn shown(path: &Path) -> String {
    let current = env::current_dir().unwrap_or_default();
    path.strip_prefix(&current).unwrap_or(path).display().to_string()
}

/// A path as a shell takes it for one word.
pub fn typed(path: &Path) -> String {
    word(&shown(path)).into_owned()
}

fn without_findings(status: ExitStatus) -> Outcome {
    let (how, code) = match status.signal() {
        Some(signal) => (format!("was ended by {}", signal_name(signal)), program_code(status)),
        None => {
            let code = program_code(status);
            // Success is not what it was.
            let known = if code == 0 { Code::NotExhausted.number() } else { code };
            (format!("ended with code {code}"), known)
        }
    };
    // What ends by itself tells, if it was built to. A race may be the end of a program whose tasks run at once.
    let hint = match status.signal() {
        None => "; was it built by `cargo dagsan` or `dagsan cc`?",
        Some(libc::SIGILL | libc::SIGABRT | libc::SIGBUS | libc::SIGFPE | libc::SIGSEGV) => {
            "; DAGSAN_OPTIONS=workers=1 runs rayon's tasks one after the other, which may get further"
        }
        Some(_) => "",
    };
    let why = format!("the program {how} and left no findings: nothing can be said about races{hint}");
    Outcome { code, program: program_code(status), asked: None, report: Err(why), another_way: None }
}

/// The exit code as a shell has it.
pub fn program_code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_findings_nothing_is_claimed() {
        let outcome =
            |raw| Outcome::read(ExitStatus::from_raw(raw), Path::new("/no/such/file"), true).unwrap();
        let killed = outcome(11);
        assert_eq!(killed.code, 139);
        assert!(
            killed.report.unwrap_err().starts_with("the program was ended by signal 11 (SIGSEGV) and left")
        );
        assert!(outcome(11).report.unwrap_err().contains("workers=1"));
        assert!(!outcome(9).report.unwrap_err().contains("workers=1"));
        assert_eq!(outcome(3 << 8).code, 3);
        assert_eq!(outcome(0).code, 67);
        assert_eq!(outcome(0).verdict(), None);
    }
}
