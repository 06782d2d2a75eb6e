//! Tables 7.1 and 7.2 of Nakade's thesis: states of all schedules, and the analysis on the fly.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use dagsan_core::order::{self, Engine};
use dagsan_core::{Bytes, Consumer, Detector, Error, Run, Step, Strand};
use dagsan_explore::Reduction;
use dagsan_lang::{End, Program};

use super::load::{self, Explored, Source, program};
use super::table::{Printer, ms};
use super::{Effort, best_ms, verdict};

/// What a tool of the table found: states, minutes and seconds, a race?
#[derive(Clone, Copy)]
struct Theirs {
    states: u64,
    time: &'static str,
    race: bool,
}

const fn theirs(states: u64, time: &'static str, race: bool) -> Theirs {
    Theirs { states, time, race }
}

/// A row of table 7.1.
struct Row {
    name: &'static str,
    source: Source,
    tasks: usize,
    graphs: Theirs,
    regions: Theirs,
    /// Missing where the table has N/A: not done within an hour, or out of memory.
    precise: Option<Theirs>,
}

const fn row(
    name: &'static str,
    (source, tasks): (Source, usize),
    graphs: Theirs,
    regions: Theirs,
    precise: Option<Theirs>,
) -> Row {
    Row { name, source, tasks, graphs, regions, precise }
}

const RACE: bool = true;
const NONE: bool = false;

const TABLE: [Row; 16] = [
    row(
        "Primitive Array No Race",
        (program!("primitive_array_no_race"), 3),
        theirs(5, "00:00", NONE),
        theirs(5, "00:00", NONE),
        Some(theirs(11_852, "00:00", NONE)),
    ),
    row(
        "Primitive Array Race",
        (program!("primitive_array_race"), 3),
        theirs(5, "00:00", RACE),
        theirs(5, "00:00", RACE),
        Some(theirs(220, "00:00", RACE)),
    ),
    row(
        "Two Dim Arrays",
        (program!("two_dim_arrays", tasks = 10), 11),
        theirs(15, "00:00", NONE),
        theirs(15, "00:00", NONE),
        Some(theirs(597, "00:00", RACE)),
    ),
    row(
        "ForAll With Iterable",
        (program!("forall_with_iterable", tasks = 1), 2),
        theirs(9, "00:00", NONE),
        theirs(9, "00:00", NONE),
        None,
    ),
    row(
        "Integer Counter Isolated",
        (program!("integer_counter_isolated", tasks = 9), 10),
        theirs(24, "00:01", NONE),
        theirs(1_013_102, "05:53", NONE),
        None,
    ),
    row(
        "Pipeline With Futures",
        (program!("pipeline_with_futures", stages = 4), 5),
        theirs(34, "00:00", NONE),
        theirs(34, "00:00", NONE),
        None,
    ),
    row(
        "Substring Search",
        (program!("substring_search"), 59),
        theirs(64, "00:03", RACE),
        theirs(8, "00:00", RACE),
        None,
    ),
    row(
        "Binary Trees",
        (program!("binary_trees"), 525),
        theirs(630, "00:25", NONE),
        theirs(632, "00:03", NONE),
        None,
    ),
    row(
        "Prime Num Counter",
        (program!("prime_num_counter", tasks = 24), 25),
        theirs(776, "00:01", NONE),
        theirs(3_542_569, "17:37", NONE),
        None,
    ),
    row(
        "Prime Num Counter ForAll",
        (program!("prime_num_counter_forall", tasks = 24), 25),
        theirs(30, "00:02", NONE),
        theirs(18, "00:01", NONE),
        None,
    ),
    row(
        "Prime Num Counter ForAsync",
        (program!("prime_num_counter_forasync", tasks = 10), 11),
        theirs(653, "00:01", NONE),
        theirs(2_528_064, "15:44", NONE),
        None,
    ),
    row(
        "Reciprocal Array Sum",
        (program!("reciprocal_array_sum_race"), 2),
        theirs(4, "00:08", RACE),
        theirs(32, "00:06", RACE),
        None,
    ),
    row(
        "Add",
        (program!("add", tasks = 2), 3),
        theirs(11, "00:01", NONE),
        theirs(62_374, "00:33", NONE),
        Some(theirs(4_930, "00:03", RACE)),
    ),
    row(
        "Scalar Multiply",
        (program!("scalar_multiply", tasks = 2), 3),
        theirs(15, "00:01", NONE),
        theirs(55_712, "00:30", NONE),
        Some(theirs(826, "00:01", RACE)),
    ),
    row(
        "Vector Add",
        (program!("vector_add", tasks = 2), 3),
        theirs(5, "00:00", NONE),
        theirs(17, "00:00", NONE),
        Some(theirs(46_394, "00:19", NONE)),
    ),
    row(
        "Clumped Access",
        (program!("clumped_access"), 3),
        theirs(5, "00:03", NONE),
        theirs(15, "00:00", NONE),
        None,
    ),
];

impl Row {
    /// An exploration of the schedules that matter.
    fn reduced(&self, program: &Program) -> anyhow::Result<Explored> {
        let reduced = load::all_schedules(program)?;
        ensure!(reduced.tasks == self.tasks, "{} tasks, not {} as in the paper", reduced.tasks, self.tasks);
        Ok(reduced)
    }

    /// At most as many states as the paper's computation graphs needed? Asked only if there are sections.
    fn bound(&self, program: &Program, reduced: &Explored) -> Option<bool> {
        program.has_choices().then_some(reduced.exploration.states <= self.graphs.states)
    }
}

/// Prints table 7.1.
pub(super) fn table_7_1(effort: &Effort) -> anyhow::Result<()> {
    println!("## Nakade, table 7.1\n");
    let mut printer = Printer::new(&[
        "program",
        "tasks",
        "CG states",
        "CG time",
        "PR states",
        "PR time",
        "PRD states",
        "PRD time",
        "PRD says",
        "CG, PR say",
        "we say",
        "our states",
        "our ms",
        "our plain states",
        "our plain ms",
        "states <= CG",
    ]);
    let (mut disagreements, mut missed) = (0, 0);
    for row in &TABLE {
        let program = row.source.compile()?;
        let reduced = row.reduced(&program).with_context(|| row.name.to_owned())?;
        let time = best_ms(effort, || Ok(row.reduced(&program)?.time))?;
        let enumerate = || load::explore(&program, order::find("cg")?, Reduction::None, effort.enumerate);
        let plain = enumerate()?;
        let plain_ms = match plain.time {
            long if long > effort.measure => super::ms(long),
            _ => best_ms(effort, || Ok(enumerate()?.time))?,
        };
        let whole = plain.exploration.stopped.is_none();
        // What has not ended has no say, unless it found a race.
        let disagree =
            reduced.race != row.graphs.race || (plain.race != row.graphs.race && (whole || plain.race));
        disagreements += u32::from(disagree);
        let bound = row.bound(&program, &reduced);
        missed += u32::from(bound == Some(false));
        let precise = |cell: fn(Theirs) -> String| row.precise.map_or("N/A".to_owned(), cell);
        let wrong = |tool: Theirs| if tool.race == row.graphs.race { "" } else { "*" };
        printer.row(vec![
            row.name.to_owned(),
            row.tasks.to_string(),
            row.graphs.states.to_string(),
            row.graphs.time.to_owned(),
            row.regions.states.to_string(),
            row.regions.time.to_owned(),
            precise(|tool| tool.states.to_string()),
            precise(|tool| tool.time.to_owned()),
            row.precise.map_or("N/A".to_owned(), |tool| format!("{}{}", verdict(tool.race), wrong(tool))),
            format!("{}{}", verdict(row.graphs.race), wrong(row.regions)),
            format!("{}{}", verdict(reduced.race), if disagree { " DISAGREES" } else { "" }),
            reduced.exploration.states.to_string(),
            ms(time),
            format!("{}{}", if whole { "" } else { "> " }, plain.exploration.states),
            format!("{}{}", if whole { "" } else { "> " }, ms(plain_ms)),
            bound.map_or("", |holds| if holds { "yes" } else { "NO" }).to_owned(),
        ]);
    }
    printer.print();
    println!("CG: computation graphs, PR: permission regions, PRD: precise race detector; *: wrong.");
    println!("Ours: the schedules that matter; plain: every schedule (Algorithm 2), judged by `cg`.\n");
    println!("Verdicts that are not the paper's: {disagreements} of {}.", TABLE.len());
    println!("Programs with sections that need more states than the paper's: {missed}.\n");
    Ok(())
}

/// Prints how long the orders of twelve sections take.
pub(super) fn twelve() -> anyhow::Result<()> {
    let explored = load::all_schedules(&program!("integer_counter_isolated", tasks = 12).compile()?)?;
    println!("A counter with 12 parallel isolated increments, 12! = 479,001,600 orders:");
    println!(
        "{} schedule(s), {} states, {} ms, {}. Under a second: {}.\n",
        explored.exploration.schedules,
        explored.exploration.states,
        ms(super::ms(explored.time)),
        verdict(explored.race),
        if explored.time < Duration::from_secs(1) { "yes" } else { "NO" },
    );
    Ok(())
}

/// Rows of table 7.2: tasks, and the states of the normal analysis with its time. On the fly it is always 5
/// states and one second.
const ON_THE_FLY: [(u64, u64, &str); 5] =
    [(5, 14, "00:01"), (50, 61, "00:03"), (100, 112, "00:05"), (500, 513, "02:25"), (1_000, 1_013, "08:34")];

/// Prints table 7.2.
pub(super) fn table_7_2(effort: &Effort) -> anyhow::Result<()> {
    println!("## Nakade, table 7.2\n");
    let mut printer = Printer::new(&[
        "tasks",
        "on the fly: states",
        "time",
        "normal: states",
        "time",
        "cg-otf to the first race: tasks",
        "ms",
        "cg-otf to the end: tasks",
        "ms",
        "cg: tasks",
        "ms",
    ]);
    for (tasks, states, time) in ON_THE_FLY {
        let program = load::compile(program!("on_the_fly").text, &[("tasks", tasks)])?;
        let mut cells =
            vec![tasks.to_string(), "5".to_owned(), "00:01".to_owned(), states.to_string(), time.to_owned()];
        for (engine, until_race) in [("cg-otf", true), ("cg-otf", false), ("cg", false)] {
            let engine = order::find(engine)?;
            let mut started = 0;
            let best = best_ms(effort, || {
                let start = Instant::now();
                started = judge(&program, engine, until_race)?;
                Ok(start.elapsed())
            })?;
            cells.extend([started.to_string(), ms(best)]);
        }
        printer.row(cells);
    }
    printer.print();
    println!("Ours: run and analysis together; the tasks that were started, main among them.\n");
    Ok(())
}

/// Runs a program that has a race, to the first one or to the end, and says how many tasks were started.
fn judge(program: &Program, engine: &'static Engine, until_race: bool) -> anyhow::Result<usize> {
    let mut watched = Watched { detector: Detector::new(engine, order::Options::default()), until_race };
    let limits = dagsan_lang::Limits::default();
    let run = program.run(&limits, &mut watched);
    let (tasks, end) = (run.tasks.len(), run.end.clone());
    drop(run);
    match end {
        End::Finished => watched.detector.finish()?,
        End::Refused(Error::Stopped) if until_race => {}
        other => anyhow::bail!("the program did not finish: {other:?}"),
    }
    ensure!(!watched.detector.races().is_empty(), "`{}` missed the race", engine.name);
    Ok(tasks)
}

/// A detector that refuses to go on after the first race, if it is to stop there.
struct Watched {
    detector: Detector,
    until_race: bool,
}

impl Consumer for Watched {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        self.detector.accesses(strand, runs)
    }

    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.detector.event(step)?;
        if self.until_race && !self.detector.races().is_empty() {
            return Err(Error::Stopped);
        }
        Ok(())
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.detector.erase(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_those_of_the_thesis_and_states_no_more() {
        for row in &TABLE {
            let program = row.source.compile().unwrap();
            let reduced = row.reduced(&program).unwrap();
            assert_eq!(reduced.race, row.graphs.race, "{}", row.name);
            assert_ne!(row.bound(&program, &reduced), Some(false), "{}", row.name);
        }
    }

    #[test]
    fn the_first_race_ends_the_program_on_the_fly() {
        let program = program!("on_the_fly", tasks = 50).compile().unwrap();
        let otf = order::find("cg-otf").unwrap();
        assert_eq!(judge(&program, otf, true).unwrap(), 3);
        assert_eq!(judge(&program, otf, false).unwrap(), 53);
    }
}
