//! How many marks there are, and what became of the others, for those who ask: `DAGSAN_COUNTS` names a file.
//!
//! For each function that is compiled a line is added to it: the numbers of [`Counted`], in their order, and the function's name.
//! And the program counts the same while it runs, as long as something can be parallel, in an array of the runtime.
//!
//! What the original puts hooks on, long copies and atomic operations, is not counted, nor are comparisons.

use std::cell::Cell;
use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;

use crate::emit::Emitter;
use crate::plan::Plan;
use crate::read::Found;

#[path = "../../dagsan-rt/src/counted.rs"]
mod counted;

use counted::COUNTED;
pub use counted::Counted;

/// The variable that names the file.
const VARIABLE: &str = "DAGSAN_COUNTS";

/// Why counts cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{VARIABLE}={0}: give an absolute path: crates are compiled in several directories")]
    Relative(PathBuf),
    #[error("{VARIABLE}={0}: {1}")]
    File(PathBuf, io::Error),
}

/// The counts of a function.
#[derive(Debug)]
pub struct Counts {
    file: PathBuf,
    numbers: Cell<[u64; COUNTED]>,
}

impl Counts {
    /// None if nobody asks.
    pub fn wanted() -> Result<Option<Counts>, Error> {
        Counts::in_file(env::var_os(VARIABLE).map(PathBuf::from))
    }

    fn in_file(file: Option<PathBuf>) -> Result<Option<Counts>, Error> {
        match file.filter(|file| !file.as_os_str().is_empty()) {
            Some(file) if file.is_relative() => Err(Error::Relative(file)),
            Some(file) => Ok(Some(Counts { file, numbers: Cell::default() })),
            None => Ok(None),
        }
    }

    fn note(&self, what: Counted) {
        let mut numbers = self.numbers.get();
        numbers[what as usize] += 1;
        self.numbers.set(numbers);
    }

    /// Adds the line of a function to the file, unless there is nothing to tell.
    fn tell(&self, function: &str) -> Result<(), Error> {
        let numbers = self.numbers.get();
        if numbers == [0; COUNTED] {
            return Ok(());
        }
        let line = format!("{} {function}\n", numbers.map(|number| number.to_string()).join(" "));
        // One write: other compilers add to the file too.
        let file = OpenOptions::new().create(true).append(true).open(&self.file);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(|error| Error::File(self.file.clone(), error))
    }
}

/// What becomes of each mark.
fn fates(plan: &Plan) -> Vec<Counted> {
    let fate = |&gone| if gone { Counted::Covered } else { Counted::InPlace };
    let mut fates: Vec<Counted> = plan.gone.iter().map(fate).collect();
    for &mark in plan.sunk.iter().flat_map(|one| &one.members) {
        fates[mark] = Counted::Sunk;
    }
    for &mark in plan.merged.iter().flat_map(|one| &one.members) {
        fates[mark] = Counted::Merged;
    }
    fates
}

impl Emitter {
    /// Counts all accesses of the model. To be called before anything else is written.
    pub fn count_accesses(&self, found: &Found, plan: &Plan) {
        if self.counts.is_some() {
            for (simple, fate) in found.simple.iter().zip(fates(plan)) {
                self.before(simple.instruction);
                self.count(fate);
            }
        }
    }

    /// Counts what is executed where the builder stands, if somebody asks.
    pub(crate) fn count(&self, what: Counted) {
        let Some(counts) = &self.counts else { return };
        counts.note(what);
        let (llvm, builder) = (self.llvm, self.builder);
        let all = llvm.global(self.module, c"__dagsan_counts", llvm.array(self.word, COUNTED as u64));
        let number = self.offset(all, self.word(8 * what as u64));
        // The word is 0 or 1.
        let active = self.hidden_load(llvm.integer(self.context, 8), self.active());
        let by = llvm.extend(builder, active, self.word);
        let sum = llvm.add(builder, self.hidden_load(self.word, number), by);
        self.settle(llvm.store(builder, sum, number));
    }

    /// Tells what was counted in the function.
    pub fn tell_counts(&self) -> Result<(), Error> {
        match &self.counts {
            Some(counts) => counts.tell(&self.llvm.name(self.function)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::merge::Merged;
    use crate::model::{Kind, Mark};
    use crate::sum::Sum;

    #[test]
    fn a_mark_is_merged_or_covered_or_in_place() {
        let mark = Mark { kind: Kind::Read, at: Sum::constant(0), bytes: 8, alignment: 8, place: 0 };
        let merged = vec![Merged { last: 3, members: vec![1, 3], mark }];
        let plan = Plan { gone: vec![true, true, false, true], merged, sunk: Vec::new() };
        let expected = [Counted::Covered, Counted::Merged, Counted::InPlace, Counted::Merged];
        assert_eq!(fates(&plan), expected);
    }

    #[test]
    fn the_file_gets_a_line_for_each_function_with_accesses() {
        let file = env::temp_dir().join(format!("dagsan-counts-{}", std::process::id()));
        for name in ["first", "second"] {
            let counts = Counts::in_file(Some(file.clone())).unwrap().unwrap();
            counts.tell("nothing").unwrap();
            counts.note(Counted::Sunk);
            counts.note(Counted::Range);
            counts.note(Counted::Range);
            counts.tell(name).unwrap();
        }
        let told = fs::read_to_string(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!(told, "0 0 0 1 0 0 2 first\n0 0 0 1 0 0 2 second\n");
    }

    #[test]
    fn only_absolute_files_are_taken() {
        assert!(Counts::in_file(None).unwrap().is_none());
        assert!(Counts::in_file(Some(PathBuf::new())).unwrap().is_none());
        assert!(Counts::in_file(Some("counts".into())).is_err());
        let counts = Counts::in_file(Some("/no/such/directory/counts".into())).unwrap().unwrap();
        counts.note(Counted::InLine);
        assert!(counts.tell("a").is_err());
    }
}
