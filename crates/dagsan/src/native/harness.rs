//! Test binaries: each test in a process of its own, several at a time, told in the order of the list.
//!
//! A test that runs alone starts from a fresh detector, and its verdict is about it and nothing else. The binary's own
//! command line (that of libtest) lists the tests and runs them; what it prints about its one test is taken apart
//! again. A command line that asks for something unusual is left to the binary, which then runs as one program.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::Read;
use std::num::NonZero;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result, anyhow};
use dagsan_report::native::program_name;
use dagsan_report::{Format, Verdict, text};

use crate::accept::{Accepting, Met};
use crate::exit::Code;
use crate::native::outcome::Outcome;
use crate::native::second::First;
use crate::native::session::{Action, Session};
use crate::native::{findings, interrupt, progress, runner, status, told};

/// The exit code of libtest when a test fails.
const FAILED: u8 = 101;

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    /// What chooses tests: filters, `--exact`, `--skip`.
    chosen: Vec<String>,
    ignored: bool,
    include_ignored: bool,
    nocapture: bool,
    show_output: bool,
    quiet: bool,
    threads: Option<usize>,
}

impl Request {
    /// None if it asks for more than we can do test by test.
    fn read(arguments: &[OsString]) -> Option<Request> {
        let mut request = Request::default();
        let mut rest = arguments.iter().map(|argument| argument.to_str());
        while let Some(argument) = rest.next() {
            let argument = argument?;
            let (name, joined) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value)),
                _ => (argument, None),
            };
            let mut value = || joined.or_else(|| rest.next().flatten());
            match name {
                "--exact" => request.chosen.push(name.to_owned()),
                "--skip" => request.chosen.push(format!("--skip={}", value()?)),
                "--ignored" => request.ignored = true,
                "--include-ignored" => request.include_ignored = true,
                "--nocapture" | "--no-capture" => request.nocapture = true,
                "--show-output" => request.show_output = true,
                "--quiet" | "-q" => request.quiet = true,
                "--test-threads" => {
                    request.threads = Some(value()?.parse().ok().filter(|&threads| threads > 0)?);
                }
                // Colours are the session's.
                "--color" => {
                    value()?;
                }
                _ if name.starts_with('-') => return None,
                filter => request.chosen.push(filter.to_owned()),
            }
        }
        Some(request)
    }
}

/// A test that was run.
struct Ran {
    outcome: Outcome,
    met: Met,
    /// What it printed.
    printed: String,
}

/// What is said of it in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Ok,
    Failed,
    Race,
    Deadlock,
}

impl Ran {
    fn word(&self) -> Word {
        match self.outcome.verdict() {
            Some(Verdict::Race) => Word::Race,
            Some(Verdict::Deadlock) => Word::Deadlock,
            _ if self.outcome.code == 0 => Word::Ok,
            _ => Word::Failed,
        }
    }

    /// The verdict, to be put in brackets.
    fn verdict(&self) -> String {
        match &self.outcome.report {
            Ok(report) if report.verdict() == Verdict::NotChecked => "no tasks".to_owned(),
            Ok(report) if report.verdict() == Verdict::RaceFree => {
                format!("race-free: {}", text::verdict(report))
            }
            Ok(report) if report.verdict() == Verdict::Accepted => {
                format!("accepted: {}", text::verdict(report))
            }
            Ok(report) => text::verdict(report),
            Err(_) => "no findings".to_owned(),
        }
    }
}

/// Runs the tests that the arguments choose.
pub fn run(session: &Session, executable: &OsStr, arguments: &[OsString]) -> Result<u8> {
    let Some(request) = Request::read(arguments) else {
        return runner::run_whole(session, executable, arguments);
    };
    let accepting = runner::accepting(session)?;
    let harness = Harness { session, executable, request, accepting };
    // Who runs one test by its name has listed them before.
    if session.action == Action::Nextest {
        let (exact, names): (Vec<_>, Vec<_>) =
            harness.request.chosen.iter().partition(|one| *one == "--exact");
        if let ([_], [name]) = (&exact[..], &names[..]) {
            return harness.run_all(std::slice::from_ref(*name), &[]);
        }
    }
    let ignored: HashSet<String> = harness.list("--ignored")?.into_iter().collect();
    let mut names = harness.list(if harness.request.ignored { "--ignored" } else { "--include-ignored" })?;
    let run_ignored = harness.request.ignored || harness.request.include_ignored;
    let skipped: Vec<String> =
        if run_ignored { Vec::new() } else { names.extract_if(.., |name| ignored.contains(name)).collect() };
    harness.run_all(&names, &skipped)
}

struct Harness<'a> {
    session: &'a Session,
    executable: &'a OsStr,
    request: Request,
    accepting: Accepting,
}

impl Harness<'_> {
    /// Starts the binary, and waits for it. Its findings are in the file.
    fn start(&self, arguments: &[&str], file: &Path) -> Result<Output> {
        let mut command = runner::command(self.session, self.executable, file);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let cannot = || format!("cannot start {}", self.executable.display());
        let mut child = interrupt::spawn(&mut command).with_context(cannot)?;
        // What is printed must be read while the program runs, and its end be seen before it is waited for.
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let streams = (child.stdout.take(), child.stderr.take());
        thread::scope(|scope| {
            let errors =
                scope.spawn(|| streams.1.map_or(Ok(0), |mut stream| stream.read_to_end(&mut stderr)));
            let printed = streams.0.map_or(Ok(0), |mut stream| stream.read_to_end(&mut stdout));
            let errors = errors.join().unwrap_or_else(|_| Err(std::io::Error::other("a thread panicked")));
            printed.and(errors)
        })
        .with_context(cannot)?;
        interrupt::until_end(&child).with_context(cannot)?;
        Ok(Output { status: child.wait().with_context(cannot)?, stdout, stderr })
    }

    /// The names of the chosen tests.
    fn list(&self, which: &str) -> Result<Vec<String>> {
        let file = findings::file(&self.session.findings, self.executable);
        let mut arguments = vec!["--list", "--format=terse", which];
        arguments.extend(self.request.chosen.iter().map(String::as_str));
        let output = self.start(&arguments, &file)?;
        findings::remove(&file)?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
            return Err(anyhow!("{} does not list its tests: {why}", self.executable.display()));
        }
        let names = String::from_utf8_lossy(&output.stdout);
        Ok(names.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }

    fn run_one(&self, name: &str) -> Result<Ran> {
        let file = findings::file(&self.session.findings, self.executable);
        let mut arguments = vec![name, "--exact", "--include-ignored", "--test-threads=1", "--color=never"];
        if self.request.nocapture {
            arguments.push("--nocapture");
        } else if self.request.show_output {
            arguments.push("--show-output");
        }
        let started = Instant::now();
        let output = self.start(&arguments, &file)?;
        let (session, executable, status) = (self.session, self.executable, output.status);
        let first = First { session, executable, status, file: &file, took: started.elapsed() };
        let mut outcome = first.outcome(|command| _ = command.args(&arguments))?;
        for report in outcome.report.iter_mut().chain(&mut outcome.another_way) {
            // Tests of several crates may have one name.
            report.rename(&format!("{}::{name}", program_name(Path::new(self.executable))));
        }
        let stdout = String::from_utf8_lossy(&output.stdout);
        let met = outcome.accept(&self.accepting);
        // The exit code was that of the races; libtest has said how the test ended.
        if outcome.verdict() == Some(Verdict::Accepted) && !stdout.contains("\ntest result: ok.") {
            outcome.code = FAILED;
        }
        let mut printed = taken_apart(&stdout, name);
        printed.push_str(&String::from_utf8_lossy(&output.stderr));
        Ok(Ran { outcome, met, printed })
    }

    fn run_all(&self, names: &[String], skipped: &[String]) -> Result<u8> {
        let mut told = Told::new(self);
        told.say(&format!("\nrunning {} test{}\n", names.len(), if names.len() == 1 { "" } else { "s" }))?;
        let threads = match (self.request.threads.or(self.session.jobs), self.request.nocapture) {
            (Some(threads), _) => threads,
            // What tests print should not have to wait.
            (None, true) => 1,
            (None, false) => thread::available_parallelism().map_or(1, NonZero::get),
        };
        let next = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..threads.min(names.len()) {
                let sender = sender.clone();
                let next = &next;
                scope.spawn(move || {
                    // The counter hands out each number once; nothing else is shared by it.
                    while let Some((at, name)) =
                        Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, names.get(at)?)))
                    {
                        // Nobody listens any more after an error: there is nothing left to do.
                        if sender.send((at, self.run_one(name))).is_err() || interrupt::pressed() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let line = progress::counted(names.len(), "tests");
            let mut early: Vec<Option<Ran>> = names.iter().map(|_| None).collect();
            let mut done = 0;
            for (at, ran) in receiver {
                early[at] = Some(ran?);
                while let Some(ran) = early.get_mut(done).and_then(Option::take) {
                    line.done(|| told.test(&names[done], ran))?;
                    done += 1;
                }
            }
            drop(line);
            // After Ctrl-C, those that ended before others that come first in the list.
            for (at, ran) in early.into_iter().enumerate().filter_map(|(at, ran)| Some((at, ran?))) {
                told.test(&names[at], ran)?;
                done += 1;
            }
            match names.len() - done {
                0 => {}
                1 => told.say("interrupted: 1 test was not run\n")?,
                left => told.say(&format!("interrupted: {left} tests were not run\n"))?,
            }
            Ok::<(), anyhow::Error>(())
        })?;
        for name in skipped {
            told.ignored(name)?;
        }
        told.finish(skipped.len())
    }
}

/// What has been told so far.
struct Told<'a> {
    session: &'a Session,
    request: &'a Request,
    /// Passed, failed, racy, deadlocked.
    counts: [usize; 4],
    race_free: usize,
    /// Those with something to show.
    shown: Vec<(String, Ran)>,
}

impl<'a> Told<'a> {
    fn new(harness: &'a Harness<'_>) -> Told<'a> {
        Told {
            session: harness.session,
            request: &harness.request,
            counts: [0; 4],
            race_free: 0,
            shown: Vec::new(),
        }
    }

    /// Like libtest, on standard output, unless reports for programs are to go there.
    fn say(&self, text: &str) -> Result<()> {
        match &self.session.output {
            None if !self.session.format.is_for_terminals() => {
                runner::put(status::stderr(&self.session.color), text)
            }
            _ => runner::put(status::stdout(&self.session.color), text),
        }
    }

    fn test(&mut self, name: &str, ran: Ran) -> Result<()> {
        let word = ran.word();
        let (at, text, colour) = match word {
            Word::Ok => (0, "ok", AnsiColor::Green),
            Word::Failed => (1, "FAILED", AnsiColor::Red),
            Word::Race => (2, "RACE", AnsiColor::Red),
            Word::Deadlock => (3, "DEADLOCK", AnsiColor::Red),
        };
        self.counts[at] += 1;
        self.race_free += usize::from(word == Word::Ok && ran.outcome.verdict() == Some(Verdict::RaceFree));
        if !self.request.quiet {
            let (style, dim) = (Style::new().fg_color(Some(colour.into())), Style::new().dimmed());
            let verdict = ran.verdict();
            self.say(&format!("test {name} ... {style}{text}{style:#} {dim}({verdict}){dim:#}\n"))?;
        }
        if self.request.nocapture {
            self.say(&ran.printed)?;
        }
        told::tell(self.session, &told::Told::Met(ran.met.clone()))?;
        runner::collect(self.session, &ran.outcome, name)?;
        if self.session.format != Format::Text || self.session.output.is_some() {
            runner::show(self.session, &ran.outcome)?;
        }
        if word != Word::Ok || self.request.show_output {
            self.shown.push((name.to_owned(), ran));
        }
        Ok(())
    }

    fn ignored(&self, name: &str) -> Result<()> {
        let style = Style::new().fg_color(Some(AnsiColor::Yellow.into()));
        if self.request.quiet {
            Ok(())
        } else {
            self.say(&format!("test {name} ... {style}ignored{style:#}\n"))
        }
    }

    fn finish(self, ignored: usize) -> Result<u8> {
        let mut out = String::new();
        for (good, heading) in [(true, "successes"), (false, "failures")] {
            let of_kind = || self.shown.iter().filter(|(_, ran)| (ran.word() == Word::Ok) == good);
            if of_kind().next().is_none() {
                continue;
            }
            let _ = writeln!(out, "\n{heading}:");
            for (name, ran) in of_kind() {
                self.details(&mut out, name, ran);
            }
            let _ = writeln!(out, "\n{heading}:");
            for (name, _) in of_kind() {
                let _ = writeln!(out, "    {name}");
            }
        }
        let _ = writeln!(out, "\n{}\n", summary(self.counts, self.race_free, ignored));
        self.say(&out)?;
        let [_, failed, racy, deadlocked] = self.counts;
        Ok(match (racy, deadlocked, failed) {
            (0, 0, 0) => Code::Clean.number(),
            (0, 0, _) => FAILED,
            (0, ..) => Code::Failed.number(),
            _ => Code::Race.number(),
        })
    }

    /// What a test printed, and what was found in it.
    fn details(&self, out: &mut String, name: &str, ran: &Ran) {
        if !ran.printed.trim().is_empty() && !self.request.nocapture {
            let _ = writeln!(out, "\n---- {name} output ----\n{}", ran.printed.trim_end());
        }
        match &ran.outcome.report {
            // The line of the test has said it.
            Ok(report)
                if matches!(
                    report.verdict(),
                    Verdict::RaceFree | Verdict::NotChecked | Verdict::Accepted
                ) => {}
            Ok(_) if self.session.format == Format::Text && self.session.output.is_none() => {
                let text = ran.outcome.text().unwrap_or_default();
                let _ = writeln!(out, "\n---- {name} dagsan ----\n{}", text.trim_end());
            }
            Ok(_) => {}
            Err(why) => {
                let _ = writeln!(out, "\n---- {name} dagsan ----\n{why}");
            }
        }
    }
}

/// The last line.
fn summary([passed, failed, racy, deadlocked]: [usize; 4], race_free: usize, ignored: usize) -> String {
    let good = failed + racy + deadlocked == 0;
    let (word, colour) = if good { ("ok", AnsiColor::Green) } else { ("FAILED", AnsiColor::Red) };
    let style = Style::new().fg_color(Some(colour.into()));
    format!(
        "test result: {style}{word}{style:#}. {passed} passed; {failed} failed; {racy} racy; {deadlocked} deadlocked; \
         {ignored} ignored; race-free with tasks: {race_free} of {passed} passed"
    )
}

/// What the test printed, out of what libtest has printed about it.
///
/// ```text
/// running 1 test                          running 1 test
/// test a ... FAILED                       test a ... WHAT IT PRINTED (--nocapture)
///                                         ok
/// failures:
/// ---- a stdout ----
/// WHAT IT PRINTED
///
/// failures:
///     a
/// test result: …                          test result: …
/// ```
fn taken_apart(stdout: &str, name: &str) -> String {
    let section = format!("---- {name} stdout ----\n");
    if let Some((_, printed)) = stdout.split_once(&section) {
        let ends = ["\n\nfailures:\n    ", "\n\nsuccesses:\n    "];
        let end = ends.iter().filter_map(|end| printed.rfind(end)).max().unwrap_or(printed.len());
        return printed[..end].trim_end().to_owned() + "\n";
    }
    let begin = format!("test {name} ... ");
    let Some((_, printed)) = stdout.split_once(&begin) else {
        return stdout.to_owned();
    };
    let end = printed.rfind("\ntest result: ").unwrap_or(printed.len());
    let printed = printed[..end].trim_end();
    let printed = printed.split("\n\nfailures:\n").next().unwrap_or_default().trim_end();
    let verdicts = ["ok", "FAILED"];
    let printed = verdicts.iter().find_map(|word| printed.strip_suffix(word)).unwrap_or(printed);
    if printed.is_empty() { String::new() } else { printed.trim_end_matches('\n').to_owned() + "\n" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<Request> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        Request::read(&arguments)
    }

    #[test]
    fn common_arguments_are_understood_and_others_left_to_the_binary() {
        let request = read("sort --exact --skip slow -q --test-threads 3 --nocapture").unwrap();
        assert_eq!(request.chosen, ["sort", "--exact", "--skip=slow"]);
        assert!(request.quiet && request.nocapture && !request.ignored);
        assert_eq!(request.threads, Some(3));
        assert_eq!(read("--test-threads=2").unwrap().threads, Some(2));
        for unusual in ["--list", "--help", "--format json", "--bench", "--test-threads 0", "--skip", "-Z x"]
        {
            assert_eq!(read(unusual), None, "{unusual}");
        }
    }

    #[test]
    fn what_a_test_printed_is_found_again() {
        let failed = "\nrunning 1 test\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\none\n\nfailures:\ntwo\n\n\n\
                      failures:\n    a\n\ntest result: FAILED. 0 passed\n\n";
        assert_eq!(taken_apart(failed, "a"), "one\n\nfailures:\ntwo\n");
        let plain = "\nrunning 1 test\ntest a ... ok\n\ntest result: ok. 1 passed\n\n";
        assert_eq!(taken_apart(plain, "a"), "");
        let direct = "\nrunning 1 test\ntest a ... one\ntwo\nok\n\ntest result: ok. 1 passed\n\n";
        assert_eq!(taken_apart(direct, "a"), "one\ntwo\n");
        let direct = "\nrunning 1 test\ntest a ... one\nFAILED\n\nfailures:\n\nfailures:\n    a\n\ntest result: FAILED.\n";
        assert_eq!(taken_apart(direct, "a"), "one\n");
        assert_eq!(taken_apart("\nrunning 1 test\ntest a ... one\n", "a"), "one\n", "it crashed");
        assert_eq!(taken_apart("odd\n", "a"), "odd\n");
    }

    #[test]
    fn the_summary_counts_and_claims_no_more() {
        let plain =
            |counts, free, ignored| anstream::adapter::strip_str(&summary(counts, free, ignored)).to_string();
        assert_eq!(
            plain([3, 0, 1, 0], 2, 0),
            "test result: FAILED. 3 passed; 0 failed; 1 racy; 0 deadlocked; 0 ignored; race-free with tasks: 2 of 3 passed"
        );
        assert!(plain([3, 0, 0, 0], 3, 1).starts_with("test result: ok. 3 passed; 0 failed; 0 racy;"));
    }
}
