//! `dagsan check`: every file, and what is printed about it.
//!
//! What was found goes to standard output; what keeps a file from being read, and the arguments from being
//! understood, to standard error. One file gets a full report, several get a line each and a summary.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result, ensure};
use dagsan_lang::Limits;
use dagsan_report::{End, Expectation, Format, Project, Report, Source, Verdict, clean_message, text};

use crate::accept::{Accepting, Met};
use crate::check::{self, Checked, Options};
use crate::cli::CheckArguments;
use crate::exit::Code;
use crate::expect::{self, Exceptions, Expected};
use crate::inputs;
use crate::reports::ReportFiles;
use crate::schedules;
use crate::tell_error;

/// Does what was asked, and says how to end.
pub fn run(arguments: &CheckArguments) -> Result<Code> {
    let inputs = inputs::collect(&arguments.paths)?;
    let graph = arguments.graph.as_ref().map(|file| file.path.as_path());
    let current = std::env::current_dir().context("cannot tell the current directory")?;
    let accept = arguments.accept.absolute(&current, &[])?;
    arguments.reports.check_files(&accept, graph, inputs.files.iter().map(PathBuf::as_path))?;
    ensure!(
        arguments.graph.is_none() || inputs.files.len() == 1,
        "--graph draws one program, and there are {}: name a single file",
        inputs.files.len()
    );
    let options = Options {
        engine: arguments.engine,
        eliminations: arguments.eliminations(),
        limits: Limits { steps: arguments.max_steps, ..Limits::default() },
        schedules: arguments.schedules(),
        max_time: Duration::from_secs(arguments.max_time),
        stats: arguments.stats,
        graph: arguments.graph.is_some(),
        around: arguments.reports.has(Format::Html),
        witness: arguments.witness,
    };
    let mut exceptions = ExceptionFiles::default();
    let project = Project::around(&current);
    let accepting = Accepting::load(&accept, project.clone())?;
    let mut met = Met::default();
    let mut files = ReportFiles::new(project.clone(), &arguments.reports.files);
    let mut out = Output::new(arguments, inputs.several, project);
    let mut code = Code::Clean;
    let mut checked = 0;
    for path in &inputs.files {
        let Checked { mut report, picture, .. } = check_file(path, &options);
        if arguments.expect {
            report.expectation = Some(exceptions.compare(path, &report)?);
        }
        met.add(&accepting.apply(&mut report));
        code = code.max(match &report.expectation {
            _ if matches!(report.end, End::Broken(_)) => Code::Fault,
            _ if matches!(report.end, End::Unreadable(_)) => Code::Usage,
            None => Code::of(&report),
            Some(Expectation { met: Some(false), .. }) => Code::Unexpected,
            Some(_) => Code::Clean,
        });
        if let (Some(file), Some(picture)) = (&arguments.graph, picture) {
            match file.write(&picture) {
                Ok(()) => report.notes.push(format!("the computation graph is in {}", file.path.display())),
                // The verdict stands without its picture.
                Err(error) => {
                    tell_error(&error);
                    code = code.max(Code::Usage);
                }
            }
        }
        if arguments.graph.is_none() && report.is_entangled() {
            report.notes.push("`--graph FILE.svg` draws which strand precedes which".to_owned());
        }
        files.add(&report)?;
        out.report(report)?;
        checked += 1;
        if schedules::interrupted() {
            break;
        }
    }
    if checked < inputs.files.len() {
        anstream::eprintln!("interrupted: {} files were not checked", inputs.files.len() - checked);
    }
    out.finish()?;
    let warnings = accepting.finish(&met);
    for warning in warnings.iter().flatten() {
        anstream::eprintln!("warning: {}", clean_message(warning));
    }
    for error in [files.write().err(), warnings.err()].into_iter().flatten() {
        tell_error(&error);
        code = code.max(Code::Usage);
    }
    Ok(code)
}

fn check_file(path: &Path, options: &Options) -> Checked {
    match inputs::read(path) {
        Ok(source) => check::check(&source, options),
        Err(why) => {
            let source = Source::new(path.display().to_string(), "");
            Checked::only(Report::new(source, options.engine, End::Unreadable(why)))
        }
    }
}

/// The word for a verdict, said of several programs.
fn plural(word: &str) -> &str {
    match word {
        "race" => "with races",
        "deadlock" => "with deadlocks",
        "error" => "with errors",
        "not-exhausted" => "not exhausted",
        "accepted" => "with accepted races only",
        other => other,
    }
}

/// The exceptions of every directory met so far.
#[derive(Default)]
struct ExceptionFiles {
    directories: HashMap<PathBuf, Exceptions>,
}

impl ExceptionFiles {
    /// What is expected of the program, and whether it is so.
    fn compare(&mut self, path: &Path, report: &Report) -> Result<Expectation> {
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        if !self.directories.contains_key(&directory) {
            self.directories.insert(directory.clone(), Exceptions::load(&directory)?);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let exception = self.directories[&directory].find(&name, report.engine);
        let source = report.sources.first().map_or("", Source::text);
        let Some(text) = exception.or_else(|| expect::first_line(source)) else {
            return Ok(Expectation { text: "a first line `// expect: …`".to_owned(), met: Some(false) });
        };
        let met = match (&report.end, Expected::parse(text)) {
            (End::Refused(_), _) => None,
            (_, Ok(expected)) => Some(expected.is_met(report)),
            (_, Err(error)) => {
                return Ok(Expectation { text: format!("{error:#}"), met: Some(false) });
            }
        };
        Ok(Expectation { text: text.to_owned(), met })
    }
}

/// Where reports go.
struct Output {
    stream: AutoStream<io::StdoutLock<'static>>,
    format: Format,
    several: bool,
    project: Project,
    /// Kept for the end, if it is not text.
    parts: Vec<String>,
    /// How many of each word, in the order of their first.
    counts: Vec<(&'static str, u64)>,
}

impl Output {
    fn new(arguments: &CheckArguments, several: bool, project: Project) -> Output {
        let choice = match arguments.color {
            clap::ColorChoice::Auto => ColorChoice::Auto,
            clap::ColorChoice::Always => ColorChoice::Always,
            clap::ColorChoice::Never => ColorChoice::Never,
        };
        let stream = AutoStream::new(io::stdout().lock(), choice);
        let format = arguments.reports.format.unwrap_or(Format::Text);
        Output { stream, format, several, project, parts: Vec::new(), counts: Vec::new() }
    }

    fn report(&mut self, report: Report) -> Result<()> {
        if self.format != Format::Text {
            let part = self.format.part(&report, &self.project)?;
            // What is whole by itself need not wait for the others.
            match self.format {
                Format::Short | Format::Github => return self.write(&part),
                _ => self.parts.push(part),
            }
            return Ok(());
        }
        let word = match &report.expectation {
            None => report.verdict().name(),
            Some(Expectation { met: Some(true), .. }) => "as expected",
            Some(Expectation { met: Some(false), .. }) => "unexpected",
            Some(Expectation { met: None, .. }) => "skipped",
        };
        match self.counts.iter_mut().find(|(counted, _)| *counted == word) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((word, 1)),
        }
        if report.expectation.is_none() && !self.several {
            return match report.end {
                End::Unreadable(_) => {
                    anstream::eprintln!("{}", text::headline(&report));
                    Ok(())
                }
                _ => self.write(&text::render(&report)),
            };
        }
        self.line(word, &report)
    }

    /// One line about a program, and what must not be missed below it.
    fn line(&mut self, word: &str, report: &Report) -> Result<()> {
        let name = report.name();
        let (good, rest) = match &report.expectation {
            None => {
                let good = matches!(report.verdict(), Verdict::RaceFree | Verdict::Accepted);
                (good, text::verdict(report))
            }
            Some(Expectation { text, met: Some(true) }) => (true, text.clone()),
            Some(Expectation { met: None, .. }) => (true, text::verdict(report)),
            Some(Expectation { text, met: Some(false) }) => {
                (false, format!("\n    expected: {text}\n    found:    {}", expect::found(report)))
            }
        };
        let style = text::verdict_style(if good { Verdict::RaceFree } else { Verdict::Error });
        let separator = if rest.starts_with('\n') { "" } else { ": " };
        self.write(&format!("{style}{word:<13}{style:#} {name}{separator}{rest}\n"))?;
        match &report.stats {
            Some(stats) => self.write(&text::table(stats)),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> Result<()> {
        match (self.format, self.several) {
            (Format::Json, false) => {
                let text = self.parts.concat();
                self.write(&text)
            }
            (Format::Text, true) => {
                let all: u64 = self.counts.iter().map(|(_, count)| count).sum();
                let counts: Vec<String> =
                    self.counts.iter().map(|(word, count)| format!("{count} {}", plural(word))).collect();
                let files = if all == 1 { "file" } else { "files" };
                self.write(&format!("{all} {files}: {}\n", counts.join(", ")))
            }
            (Format::Text, false) | (Format::Short | Format::Github, _) => Ok(()),
            (format, _) => {
                let text = format.whole(&self.parts);
                self.write(&text)
            }
        }
    }

    /// Writes; a reader that has gone away is no error.
    fn write(&mut self, text: &str) -> Result<()> {
        let written = self.stream.write_all(text.as_bytes()).and_then(|()| self.stream.flush());
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other.context("cannot write to standard output"),
        }
    }
}
