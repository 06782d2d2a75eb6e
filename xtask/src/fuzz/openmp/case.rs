//! One program, what came of it, and what should have.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::mem::discriminant;

use dagsan_findings::{End, Findings};
use dagsan_fuzz::openmp::{Expected, Program, Trace, place, replay};

/// A program, and the seed that it comes from.
pub struct Case {
    pub seed: u64,
    pub program: Program,
}

/// What a process has told.
pub struct Seen {
    /// Where its memory is.
    pub arena: u64,
    pub trace: Trace,
    pub findings: Box<Findings>,
}

/// The runtime and the oracle disagree.
#[derive(Debug)]
pub enum Failure {
    /// A race on this byte was not found.
    Missed(u64),
    /// This byte does not race.
    NoRace(u64),
    /// A race at an address that is none of the program's.
    Stray(u64),
    /// The program was not run as OpenMP has it.
    Impossible(String),
    /// It crashed, or hangs, or ended with something else than its end.
    Ending(String),
}

impl Failure {
    /// Is it a disagreement of the same kind?
    pub fn is_like(&self, other: &Failure) -> bool {
        discriminant(self) == discriminant(other)
    }
}

impl Case {
    /// What the oracle says, if the process has found just that.
    pub fn judge(&self, seen: &Seen) -> Result<Expected, Failure> {
        let Seen { arena, trace, findings } = seen;
        if findings.end != End::Exited {
            return Err(Failure::Ending(format!("{:?}", findings.end)));
        }
        if findings.dropped_races > 0 {
            return Err(Failure::Ending(format!("{} races were dropped", findings.dropped_races)));
        }
        let expected =
            replay(&self.program, trace).map_err(|error| Failure::Impossible(error.to_string()))?;
        let layout = place(&self.program);
        let native = |byte: &u64| arena + layout.place(*byte).1;
        let ranges = findings.races.iter().flat_map(|race| &race.bytes);
        let found: BTreeSet<u64> = ranges.flat_map(|&(start, len)| start..start + len).collect();
        if let Some(missed) = expected.racy.iter().find(|byte| !found.contains(&native(byte))) {
            return Err(Failure::Missed(*missed));
        }
        let racy: BTreeSet<u64> = expected.racy.iter().map(native).collect();
        let ranges = self.program.ranges();
        let bytes: BTreeMap<u64, u64> = ranges
            .iter()
            .flat_map(|bytes| bytes.start()..bytes.end())
            .map(|byte| (native(&byte), byte))
            .collect();
        match found.difference(&racy).next() {
            Some(at) => Err(bytes.get(at).map_or(Failure::Stray(*at), |&byte| Failure::NoRace(byte))),
            None => Ok(expected),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Missed(byte) => write!(f, "the race on byte {byte:#x} is missed"),
            Failure::NoRace(byte) => write!(f, "a race is reported on byte {byte:#x}, which has none"),
            Failure::Stray(address) => {
                write!(f, "a race is reported at {address:#x}, which is not the program's memory")
            }
            Failure::Impossible(how) => write!(f, "the run is not one of OpenMP: {how}"),
            Failure::Ending(how) => write!(f, "it ends otherwise: {how}"),
        }
    }
}
