//! The readers, and what must hold of what they make of a file that they take.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dagsan::accept::{AcceptArguments, Accepting};
use dagsan_findings::Findings;
use dagsan_report::native::{self, Files};
use dagsan_report::symbols::Symbols;
use dagsan_report::{Format, Project, Report};

use super::Reader;
use super::samples;

/// What a reader says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Taken,
    Refused,
}

/// A reader.
pub struct Target {
    reader: Reader,
    /// The file that it reads.
    path: PathBuf,
    project: Project,
    /// Findings, whose races suppressions and baselines are asked about.
    report: Report,
}

impl Target {
    /// Reads what is written to `path`.
    pub fn new(directory: &Path, reader: Reader, path: PathBuf) -> Result<Target> {
        let (findings, executable) = samples::example(directory)?;
        let found = Findings::read(&findings)?;
        let files = Files::new(directory, &found.process);
        let report = native::report(&found, &mut Symbols::open(&executable)?, &files)?;
        Ok(Target { reader, path, project: Project::new(directory, directory), report })
    }

    /// Reads these bytes.
    pub fn read(&self, bytes: &[u8]) -> Result<Answer> {
        fs::write(&self.path, bytes).with_context(|| format!("cannot write {}", self.path.display()))?;
        let taken = match self.reader {
            Reader::Findings => Findings::read(&self.path).is_ok_and(|found| self.show(&found)),
            Reader::Debug => self.look_up(bytes),
            Reader::Suppressions => self.accept(AcceptArguments {
                suppressions: vec![self.path.clone()],
                ..AcceptArguments::default()
            }),
            Reader::Baseline => self
                .accept(AcceptArguments { baseline: Some(self.path.clone()), ..AcceptArguments::default() }),
        };
        Ok(if taken { Answer::Taken } else { Answer::Refused })
    }

    /// Shows findings in every format.
    fn show(&self, found: &Findings) -> bool {
        let files = Files::new(self.project.root(), &found.process);
        let mut symbols = Symbols::open(&found.process.executable).unwrap_or_else(|_| Symbols::none());
        let Ok(report) = native::report(found, &mut symbols, &files) else { return false };
        for format in Format::ALL {
            let part = format.part(&report, &self.project).expect("a report has a text in every format");
            let text = format.whole(&[part]);
            if matches!(format, Format::Json | Format::Sarif) {
                serde_json::from_str::<serde::de::IgnoredAny>(&text).expect("JSON is JSON");
            }
            let harmful = |c: char| {
                c != '\n' && c != '\u{1b}' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c))
            };
            assert!(!text.contains(harmful), "{format:?} has control characters");
        }
        true
    }

    /// Asks for addresses all over the file, which are those of its code in a program that can be loaded anywhere, and for some beyond.
    fn look_up(&self, bytes: &[u8]) -> bool {
        let Ok(mut symbols) = Symbols::open(&self.path) else { return false };
        let length = bytes.len() as u64;
        let code = (0..length).step_by(bytes.len() / 256 + 1).chain([u64::MAX, 1 << 40, length]);
        for address in code {
            assert!(!symbols.code(address).is_empty(), "an address has at least a name that is not known");
            symbols.data(address);
        }
        true
    }

    /// Decides which races of the report count.
    fn accept(&self, arguments: AcceptArguments) -> bool {
        let Ok(accepting) = Accepting::load(&arguments, self.project.clone()) else { return false };
        let mut report = self.report.clone();
        let met = accepting.apply(&mut report);
        accepting.finish(&met).is_ok()
    }
}
