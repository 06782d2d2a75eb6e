//! The exit codes.
//!
//! 66 says "race", as the codes of ThreadSanitizer and of Go's race detector do; 65 and 70 are the numbers
//! that sysexits.h has for bad data and for internal faults; 2 is what clap uses for bad arguments.

use dagsan_report::{End, Report, Verdict};

/// How the command ends, the best first: of several programs, the worst one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// Race-free; with `--expect`, all as expected.
    Clean,
    /// Not as expected.
    Unexpected,
    /// No race found, and not all schedules were run.
    NotExhausted,
    /// A deadlock or a run-time error.
    Failed,
    /// A race.
    Race,
    /// Bad arguments or a bad program.
    Usage,
    /// Our own fault.
    Fault,
}

impl Code {
    /// The code for a report.
    pub fn of(report: &Report) -> Code {
        match (report.verdict(), &report.end) {
            (Verdict::Race, _) => Code::Race,
            (Verdict::NotExhausted, _) => Code::NotExhausted,
            (_, End::Finished | End::CutShort(_)) => Code::Clean,
            (_, End::Failed(_) | End::Deadlock(_) | End::Aborted) => Code::Failed,
            (_, End::Rejected(_) | End::Unreadable(_) | End::Refused(_)) => Code::Usage,
            (_, End::Broken(_)) => Code::Fault,
        }
    }

    /// The number the shell sees.
    pub fn number(self) -> u8 {
        match self {
            Code::Clean => 0,
            Code::Unexpected => 1,
            Code::Usage => 2,
            Code::Failed => 65,
            Code::Race => 66,
            Code::NotExhausted => 67,
            Code::Fault => 70,
        }
    }
}

/// The code for the run of a native program that ended with `program`. It is the program's own if there is nothing to
/// say.
pub fn of_native(report: &Report, program: u8) -> u8 {
    match Code::of(report) {
        Code::Clean => program,
        // Its code tells the signal.
        Code::Failed if matches!(report.end, End::Aborted) => program,
        code => code.number(),
    }
}

/// The table for the help text.
pub const HELP: &str = "\
Exit codes:
   0  race-free, or all races are suppressed or in the baseline; with --expect: everything as expected
   1  with --expect: something not as expected
   2  bad arguments, a file that cannot be read or written, a suppression that has expired,
      a program that does not compile, or a construct that the engine does not support
  65  a deadlock or a run-time error of the program, and no race before it
  66  a race
  67  no race found, but not all schedules were run (--max-time, --max-schedules, Ctrl-C)
  70  a fault of dagsan itself
Of several files the worst code counts: 70, then 2, 66, 65, 67, 0.";

/// The table for native programs.
pub const NATIVE_HELP: &str = "\
Exit codes:
   that of the program, if it was checked to its end and has no race, or only such as are suppressed or in the baseline; otherwise
   2  bad arguments, a suppression that has expired, or a construct that the engine does not support
  65  a deadlock, and no race before it
  66  a race
  67  no race found, but not all of the run was checked (memory ran out, the program left no findings)
  70  a fault of dagsan itself
 128  and more: the program was ended by signal 1 and more, and no race was found
`cargo dagsan test` and `bench` end with 66 if there was a race, else with the code of cargo.";

#[cfg(test)]
mod tests {
    use dagsan_core::order::default_engine;
    use dagsan_report::Source;

    use super::*;

    fn code(end: End) -> Code {
        Code::of(&Report::new(Source::new("x.task", ""), default_engine(), end))
    }

    #[test]
    fn every_end_has_its_code() {
        assert_eq!(code(End::Finished).number(), 0);
        assert_eq!(code(End::Deadlock(Vec::new())).number(), 65);
        assert_eq!(code(End::Rejected(Vec::new())).number(), 2);
        assert_eq!(code(End::Unreadable(String::new())).number(), 2);
        assert_eq!(code(End::Refused(String::new())).number(), 2);
        assert_eq!(code(End::Broken(String::new())).number(), 70);
    }

    #[test]
    fn a_native_program_keeps_its_code_if_there_is_nothing_to_say() {
        let code = |end: End| of_native(&Report::new(Source::new("x", ""), default_engine(), end), 7);
        assert_eq!(code(End::Finished), 7);
        assert_eq!(code(End::Aborted), 7);
        assert_eq!(code(End::Deadlock(Vec::new())), 65);
        assert_eq!(code(End::CutShort(String::new())), 67);
        assert_eq!(code(End::Refused(String::new())), 2);
        assert_eq!(code(End::Broken(String::new())), 70);
    }

    #[test]
    fn the_worst_code_counts_in_the_order_that_the_help_gives() {
        let from_best = [Code::Clean, Code::NotExhausted, Code::Failed, Code::Race, Code::Usage, Code::Fault];
        assert!(from_best.is_sorted());
        let numbers: Vec<String> = from_best.iter().rev().map(|code| code.number().to_string()).collect();
        assert!(HELP.ends_with(&format!("{}, then {}.", numbers[0], numbers[1..].join(", "))));
    }
}
