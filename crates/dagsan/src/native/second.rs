//! The second run: a program that has races is run again, for exact places and whole call stacks.
//!
//! The first run says whether there is a race, and keeps one place for every 64 bytes, which is fast. Most programs have none, and
//! that is all. The second one keeps the place of each access, and its whole call stack. Nobody sees it: its output goes nowhere,
//! and what the first run read from standard input it reads again (`input`). What the first one has left in files, in databases,
//! or with others, it finds there. If another way is taken because of that, or of time or chance, both reports are shown, and the first
//! one decides how the command ends. `DAGSAN_OPTIONS=sites=exact` has everything in one run, `sites=line` leaves the second out.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use dagsan_findings::{Findings, Memory};
use dagsan_report::{Report, Verdict};

use crate::native::findings::{self, OPTIONS};
use crate::native::outcome::{Outcome, describe, typed};
use crate::native::session::{Action, Session};
use crate::native::{interrupt, progress, runner, status};

/// A first run that takes longer is worth a word about the second.
const LONG: Duration = Duration::from_secs(2);

/// The first run of a program.
pub struct First<'a> {
    pub session: &'a Session,
    pub executable: &'a OsStr,
    pub status: ExitStatus,
    /// Its findings.
    pub file: &'a Path,
    pub took: Duration,
}

impl First<'_> {
    /// Its outcome; with exact places, if there are races and a second run shows them too. That one is started by a command which
    /// `prepare` gives arguments and input.
    pub fn outcome(&self, prepare: impl FnOnce(&mut Command)) -> Result<Outcome> {
        let again = findings::Options::from_environment().second_run;
        let mut outcome = Outcome::read(self.status, self.file, !again)?;
        if interrupt::pressed() {
            outcome.interrupted();
            return Ok(outcome);
        }
        let asked = outcome.asked;
        let Ok(report) = &mut outcome.report else { return Ok(outcome) };
        if report.verdict() != Verdict::Race || !again {
            return Ok(outcome);
        }
        let mut line = None;
        if self.took > LONG && !self.session.quiet {
            let again = "the program has races, and runs a second time for exact places";
            let file = typed(self.file);
            status::note(
                &self.session.color,
                &format!("{again}; `dagsan report {file}` shows the first run"),
            );
            // Of tests there is a line already.
            let alone = matches!(self.session.action, Action::Run | Action::Bench);
            line = alone.then(|| progress::busy("the second run"));
        }
        let again = findings::file(&self.session.findings, self.executable);
        let mut command = runner::command(self.session, self.executable, &again);
        command.env(OPTIONS, options());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        prepare(&mut command);
        let ended = wait(&mut command, limit(self.took))?;
        drop(line);
        match ended {
            Ended::Itself(ended) if !again.exists() => report.notes.push(format!(
                "the second run, for exact places, left no findings ({ended}): places are those of the first access to 64 bytes"
            )),
            Ended::Itself(_) => {
                let (first, second) = (Findings::read(self.file)?, Findings::read(&again)?);
                let Some(differences) = differences(&first, &second) else {
                    fs::rename(&again, self.file)
                        .with_context(|| format!("cannot replace {}", self.file.display()))?;
                    let mut exact = Outcome::read(self.status, self.file, false)?;
                    exact.asked = asked;
                    return Ok(exact);
                };
                report.notes.push(differences);
                let mut second = describe(&second)?;
                second.notes.push(format!("to see the second run again: dagsan report {}", typed(&again)));
                outcome.another_way = Some(second);
            }
            Ended::Never => {
                findings::remove(&again)?;
                report.notes.push(match interrupt::pressed() {
                    true => "the second run, for exact places, was interrupted".to_owned(),
                    false => format!(
                        "the second run, for exact places, did not come to its end in {} seconds; {OPTIONS}=sites=exact has them in one run",
                        limit(self.took).as_secs()
                    ),
                });
            }
        }
        Ok(outcome)
    }
}

/// What the variable says in the second run.
pub fn options() -> String {
    match env::var(OPTIONS) {
        Ok(options) if !options.is_empty() => format!("{options}:stacks=1"),
        _ => "stacks=1".to_owned(),
    }
}

/// How long the second run may take. It is some times slower; one that waits for somebody would wait for ever.
fn limit(first: Duration) -> Duration {
    Duration::from_secs(60) + 30 * first
}

enum Ended {
    Itself(ExitStatus),
    /// It took too long, and was ended.
    Never,
}

fn wait(command: &mut Command, limit: Duration) -> Result<Ended> {
    let name = || format!("cannot run {} again", command.get_program().display());
    let name = name();
    let mut child: Child = command.spawn().with_context(|| name.clone())?;
    let (started, mut pause) = (Instant::now(), Duration::from_millis(1));
    loop {
        if let Some(ended) = child.try_wait().with_context(|| name.clone())? {
            return Ok(Ended::Itself(ended));
        }
        if started.elapsed() > limit || interrupt::pressed() {
            child.kill().and_then(|()| child.wait()).with_context(|| name.clone())?;
            return Ok(Ended::Never);
        }
        thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(50));
    }
}

/// The bytes that race, by what they are part of, in words that are the same in every run: addresses are not. Of stacks and of mapped
/// memory nothing but the number of bytes is.
fn racing(found: &Findings) -> BTreeMap<String, BTreeSet<u64>> {
    let mut racing: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for race in &found.races {
        let lowest = race.bytes.first().map_or(0, |&(start, _)| start);
        let (object, base) = match &race.memory {
            Memory::Heap { start, size, stack } => {
                let frames = stack.and_then(|stack| found.stacks.get(stack)).map(|stack| &stack.frames);
                (format!("a block of {size} bytes, {frames:?}"), *start)
            }
            Memory::Static { at } => (STATICS.to_owned(), lowest.wrapping_sub(*at)),
            Memory::Stack { task } => (format!("the stack of task {task:?}"), 0),
            Memory::Other => ("mapped memory".to_owned(), 0),
        };
        let bytes = race.bytes.iter().flat_map(|&(start, length)| start..start.saturating_add(length));
        racing.entry(object).or_default().extend(bytes.map(|byte| byte.wrapping_sub(base)));
    }
    for (object, bytes) in &mut racing {
        if !object.starts_with("a block") && object != STATICS {
            *bytes = (0..bytes.len() as u64).collect();
        }
    }
    racing
}

const STATICS: &str = "statics";

/// So many bytes are compared, one by one.
const COMPARED: u64 = 1 << 24;

/// What is not the same in both runs: the bytes that race. Places are not compared, as the first run does not know them; which two of
/// many tasks are named for a byte depends on places. If more races were found than are kept, nothing but that there are some is compared, and nothing if there are very many bytes.
pub fn differences(first: &Findings, second: &Findings) -> Option<String> {
    // More bytes than are worth comparing, or a file that was made up.
    let bytes = |found: &Findings| {
        let lengths = found.races.iter().flat_map(|race| &race.bytes).map(|&(_, length)| length);
        lengths.fold(0, u64::saturating_add)
    };
    if bytes(first).saturating_add(bytes(second)) > COMPARED {
        return None;
    }
    let [before, again] = [first, second].map(racing);
    let dropped = first.dropped_races + second.dropped_races > 0;
    if dropped && !before.is_empty() && !again.is_empty() {
        return None;
    }
    let missing = |from: &BTreeMap<String, BTreeSet<u64>>, of: &BTreeMap<String, BTreeSet<u64>>| {
        let none = BTreeSet::new();
        let missing = |(object, bytes): (&String, &BTreeSet<u64>)| {
            bytes.difference(from.get(object).unwrap_or(&none)).count()
        };
        of.iter().map(missing).sum::<usize>()
    };
    let (gone, new) = (missing(&again, &before), missing(&before, &again));
    let all: usize = before.values().map(BTreeSet::len).sum();
    (gone + new > 0).then(|| {
        format!(
            "the second run, for exact places, went another way: {gone} of {all} racing bytes do not race there, {new} others do; \
             does the program depend on time, chance, the environment or on what it has written? {OPTIONS}=sites=exact has \
             exact places in one run"
        )
    })
}

/// What stands between the reports of two runs that went different ways.
pub fn heading(second: &Report) -> String {
    let what = if second.verdict() == Verdict::Race { "found this" } else { "found no race" };
    format!("\nnote: the second run went another way, and {what}:\n\n")
}

#[cfg(test)]
mod tests {
    use dagsan_findings::{End, Kind, Process, Race, Side, Stack, Stats, Uses, VERSION};

    use super::*;

    fn found(races: &[(u64, u64, Memory)]) -> Findings {
        let side = Side {
            kind: Kind::Write,
            atomic: false,
            locked: false,
            shares_lock: false,
            task: 1,
            stack: 0,
            nearby: false,
        };
        let race = |(start, length, memory): &(u64, u64, Memory)| Race {
            bytes: vec![(*start, *length)],
            memory: memory.clone(),
            first: side.clone(),
            second: side.clone(),
            duplicates: 0,
            graph: None,
        };
        Findings {
            version: VERSION,
            process: Process { executable: "/x".into(), arguments: vec![], directory: "/".into(), id: 1 },
            engine: "dag".to_owned(),
            end: End::Exited,
            code: None,
            races: races.iter().map(race).collect(),
            dropped_races: 0,
            tasks: vec![],
            stacks: vec![Stack { frames: vec![7], complete: true }],
            uses: Uses::default(),
            threads: vec![],
            graphs: vec![],
            stats: Stats::default(),
        }
    }

    fn heap(start: u64) -> Memory {
        Memory::Heap { start, size: 80, stack: Some(0) }
    }

    #[test]
    fn the_same_bytes_elsewhere_are_the_same() {
        let first = found(&[(1072, 8, heap(1000)), (500, 4, Memory::Stack { task: Some(2) })]);
        let second = found(&[(900, 4, Memory::Stack { task: Some(2) }), (72, 4, heap(0)), (76, 4, heap(0))]);
        assert_eq!(differences(&first, &second), None);
        // Statics are where they are in the image, in one race or in two.
        let statics = |at, start, length| (start, length, Memory::Static { at });
        let two = found(&[statics(64, 264, 4), statics(60, 260, 4)]);
        assert_eq!(differences(&found(&[statics(60, 160, 8)]), &two), None);
        let text = differences(&found(&[statics(64, 164, 4)]), &two).unwrap();
        assert!(text.contains("0 of 4 racing bytes do not race there, 4 others do"), "{text}");
    }

    #[test]
    fn other_bytes_are_another_way() {
        let first = found(&[(1072, 8, heap(1000))]);
        let text = differences(&first, &found(&[(1064, 16, heap(1000))])).unwrap();
        assert!(text.contains("0 of 8 racing bytes do not race there, 8 others do"), "{text}");
        let text = differences(&first, &found(&[])).unwrap();
        assert!(text.contains("8 of 8 racing bytes do not race there, 0 others do"), "{text}");
        let mut many = found(&[(1000, 1, heap(1000))]);
        many.dropped_races = 1;
        assert_eq!(differences(&first, &many), None);
    }
}
