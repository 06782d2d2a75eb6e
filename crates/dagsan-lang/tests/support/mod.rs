//! What the tests of this crate share: the corpus, one check of a program, and what is expected of it.
//!
//! A check is what the command does: compile, run under a detector, and once more without eliminations if the
//! run failed.

#![allow(dead_code, reason = "every test file is a crate of its own, and uses its part of this")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use dagsan_core::order::Engine;
use dagsan_core::{Detector, Error};
use dagsan_lang::{CompileOptions, Counts, Diagnostic, Elimination, Eliminations, End, Limits, Program};

/// Enough for every program of the tests; one that wants more is stopped soon.
pub const LIMITS: Limits = Limits { steps: 3_000_000, words: 1 << 20 };

/// What came of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    pub end: End,
    pub output: String,
    /// The addresses of the cells that race.
    pub cells: BTreeSet<u64>,
    /// Their names.
    pub names: BTreeSet<String>,
    pub counts: Counts,
}

impl Checked {
    /// The verdict, in the words of an expectation: a race is one whatever came after it.
    pub fn verdict(&self) -> String {
        match &self.end {
            End::Refused(error) => format!("refused: {error}"),
            _ if !self.names.is_empty() => {
                format!("race {}", Vec::from_iter(self.names.iter().cloned()).join(", "))
            }
            End::Failed(failure) => format!("error {}", failure.message),
            End::Deadlock(_) => "deadlock".to_owned(),
            End::Finished => "race-free".to_owned(),
            End::Stopped => "stopped".to_owned(),
        }
    }
}

/// Checks a program as the command does.
pub fn check(
    source: &str,
    engine: &'static Engine,
    eliminations: Eliminations,
) -> Result<Checked, Vec<Diagnostic>> {
    let checked = check_once(source, engine, eliminations)?;
    match checked.end {
        End::Failed(_) if eliminations != Eliminations::none() => {
            check_once(source, engine, Eliminations::none())
        }
        _ => Ok(checked),
    }
}

/// One run, whatever comes of it.
pub fn check_once(
    source: &str,
    engine: &'static Engine,
    eliminations: Eliminations,
) -> Result<Checked, Vec<Diagnostic>> {
    let program = Program::compile(source, &CompileOptions { eliminations, checks: true, count: true })?;
    let mut detector = Detector::new(engine, Default::default());
    let run = program.run(&LIMITS, &mut detector);
    let finished = detector.finish();
    let races = detector.races();
    Ok(Checked {
        cells: races.iter().flat_map(|race| race.location.addresses()).map(|address| address & !7).collect(),
        names: races.iter().flat_map(|race| run.location_names(race.location)).collect(),
        counts: run.counts,
        output: run.output.clone(),
        end: finished.map_or_else(End::Refused, |()| run.end.clone()),
    })
}

/// All 64 sets of eliminations, none of them first.
pub fn all_sets() -> impl Iterator<Item = Eliminations> {
    (0..1 << Elimination::ALL.len()).map(|bits: u32| {
        let chosen = Elimination::ALL.into_iter().enumerate().filter(|(place, _)| bits >> place & 1 == 1);
        chosen.fold(Eliminations::none(), |set, (_, elimination)| set.with(elimination))
    })
}

/// The names of a set of eliminations.
pub fn describe(set: Eliminations) -> String {
    let names = Elimination::ALL.into_iter().filter(|&elimination| set.contains(elimination));
    Vec::from_iter(names.map(Elimination::name)).join("+")
}

/// May the engine refuse a program for this reason?
pub fn may_refuse(engine: &Engine, error: &Error) -> bool {
    match *error {
        Error::Unsupported { construct, .. } => !engine.supports(construct),
        Error::NotDepthFirst { .. } => engine.depth_first,
        _ => false,
    }
}

// ---- programs in files -------------------------------------------------------------------------------

/// A program in a file.
pub struct Case {
    pub name: String,
    pub source: String,
}

impl Case {
    /// What its first line says.
    pub fn expected(&self) -> Expected {
        let text = self.source.lines().next().and_then(|line| line.strip_prefix("// expect:"));
        let text = text.unwrap_or_else(|| panic!("{} does not start with `// expect:`", self.name));
        Expected::parse(text).unwrap_or_else(|| panic!("{}: `{text}` is not understood", self.name))
    }
}

/// The directory of the corpus.
pub fn corpus_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

/// All programs of the corpus.
pub fn corpus() -> Vec<Case> {
    programs(&corpus_directory())
}

/// Programs that were once judged wrongly.
pub fn regressions() -> Vec<Case> {
    programs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regressions"))
}

fn programs(directory: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(directory).expect("the directory of programs can be read") {
        let path = entry.expect("its entries can be read").path();
        if path.extension().is_some_and(|extension| extension == "task") {
            let source = fs::read_to_string(&path).expect("a program can be read");
            let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
            cases.push(Case { name, source });
        }
    }
    assert!(!cases.is_empty(), "no programs in {}", directory.display());
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

/// An expected verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    Race(BTreeSet<String>),
    RaceFree,
    Deadlock,
    /// Some message contains this.
    Error(String),
}

impl Expected {
    /// Understands the words after `// expect:`.
    pub fn parse(text: &str) -> Option<Expected> {
        let text = text.trim();
        match text.split_once(' ') {
            None if text == "race-free" => Some(Expected::RaceFree),
            None if text == "deadlock" => Some(Expected::Deadlock),
            Some(("error", message)) => Some(Expected::Error(message.trim().to_owned())),
            Some(("race", names)) => {
                Some(Expected::Race(names.split(',').map(|name| name.trim().to_owned()).collect()))
            }
            _ => None,
        }
    }

    /// The locations that are expected to race.
    pub fn names(&self) -> BTreeSet<String> {
        match self {
            Expected::Race(names) => names.clone(),
            _ => BTreeSet::new(),
        }
    }

    /// Is it so? If not, what was found.
    pub fn compare(&self, found: &Result<Checked, Vec<Diagnostic>>) -> Result<(), String> {
        let verdict = match found {
            Ok(checked) => checked.verdict(),
            Err(diagnostics) => {
                format!("error {}", Vec::from_iter(diagnostics.iter().map(ToString::to_string)).join("; "))
            }
        };
        let met = match self {
            Expected::Error(text) => {
                verdict.strip_prefix("error ").is_some_and(|message| message.contains(text))
            }
            expected => Expected::parse(&verdict).as_ref() == Some(expected),
        };
        if met { Ok(()) } else { Err(format!("expected {self:?}, found {verdict}")) }
    }
}

/// Fails with all the messages, if there are any.
pub fn none_of(failures: &[String]) {
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}
