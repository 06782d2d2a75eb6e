//! The programs: their texts with other sizes, explorations and recordings of them.

use std::num::NonZero;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use dagsan_core::graph::GraphBuilder;
use dagsan_core::order::{self, Engine};
use dagsan_core::{Bytes, Consumer, Detector, Error, Event, Recording, Run, Step, Strand, Stream};
use dagsan_explore::{Exploration, Limits, Reduction, Seen};
use dagsan_lang::{CompileOptions, Eliminations, End, Program};

/// Plain enumeration may keep so many states; some 100 bytes each.
const MOST_MEMORY: usize = 4 << 30;

/// The text of a program and the sizes that are not those of the file: the name of a `let` and its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    pub(super) text: &'static str,
    pub(super) sizes: &'static [(&'static str, u64)],
}

/// A program of `papers/programs`, by the name of its file.
macro_rules! program {
    ($name:literal $(, $size:ident = $value:literal)*) => {
        $crate::bench::papers::load::Source {
            text: include_str!(concat!("programs/", $name, ".task")),
            sizes: &[$((stringify!($size), $value)),*],
        }
    };
}
pub(super) use program;

impl Source {
    /// Compiles it. All accesses are to be seen, as in the papers, so nothing is eliminated.
    pub(super) fn compile(&self) -> anyhow::Result<Program> {
        compile(self.text, self.sizes)
    }
}

/// Compiles `text` with other sizes.
pub(super) fn compile(text: &str, sizes: &[(&str, u64)]) -> anyhow::Result<Program> {
    let text = resize(text, sizes)?;
    let options = CompileOptions { eliminations: Eliminations::none(), checks: true, count: false };
    Program::compile(&text, &options).map_err(|diagnostics| anyhow::anyhow!("{}", diagnostics[0]))
}

/// Replaces the lines `let NAME = …;`.
fn resize(text: &str, sizes: &[(&str, u64)]) -> anyhow::Result<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (name, value) in sizes {
        let start = format!("let {name} = ");
        let line = lines.iter_mut().find(|line| line.starts_with(&start));
        *line.with_context(|| format!("the program has no line `{start}…`"))? = format!("{start}{value};");
    }
    Ok(lines.join("\n"))
}

/// What an exploration found.
#[derive(Debug)]
pub(super) struct Explored {
    pub(super) exploration: Exploration,
    pub(super) race: bool,
    pub(super) tasks: usize,
    pub(super) time: Duration,
}

/// Explores the schedules that matter. All of them: it is an error if that takes too long.
pub(super) fn all_schedules(program: &Program) -> anyhow::Result<Explored> {
    let dag = order::default_engine();
    let explored = explore(program, dag, Reduction::PartialOrder, Duration::from_secs(60))?;
    ensure!(explored.exploration.stopped.is_none(), "not all schedules were run: {:?}", explored.exploration);
    Ok(explored)
}

/// Explores schedules for some time, each judged by `engine` unless the exploration is reduced. A run that does
/// not finish is an error.
pub(super) fn explore(
    program: &Program,
    engine: &'static Engine,
    reduction: Reduction,
    time: Duration,
) -> anyhow::Result<Explored> {
    let limits = Limits {
        run: dagsan_lang::Limits::default(),
        schedules: u64::MAX,
        time,
        memory: MOST_MEMORY,
        stop: &AtomicBool::new(false),
        threads: thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN),
    };
    let (mut race, mut tasks, mut unfinished) = (false, 0, None);
    let mut seen = |seen: Seen<'_, '_>| {
        race |= !seen.detector.races().is_empty();
        tasks = tasks.max(seen.run.tasks.len());
        if seen.run.end != End::Finished {
            unfinished.get_or_insert_with(|| format!("{:?}", seen.run.end));
        }
    };
    let start = Instant::now();
    let exploration = dagsan_explore::explore(program, engine, reduction, &limits, &mut seen)?;
    let time = start.elapsed();
    ensure!(unfinished.is_none(), "a run did not finish: {unfinished:?}");
    Ok(Explored { exploration, race, tasks, time })
}

/// A recorded run, in which the sections come in the order of the serial run.
pub(super) struct Recorded {
    recording: Recording,
    /// Nodes of its computation graph.
    pub(super) nodes: usize,
    /// Isolated sections.
    pub(super) sections: usize,
}

impl Recorded {
    /// Runs and records.
    pub(super) fn new(program: &Program) -> anyhow::Result<Recorded> {
        let mut recording = Recording::new();
        let run = program.run(&dagsan_lang::Limits::default(), &mut recording);
        ensure!(run.end == End::Finished, "the program did not finish: {:?}", run.end);
        drop(run);
        let mut stream = Stream::new((GraphBuilder::new(), Sections(0)));
        recording.replay(&mut stream)?;
        let (graph, Sections(sections)) = stream.into_consumer();
        Ok(Recorded { nodes: graph.graph().nodes.len(), sections, recording })
    }

    /// Replays the run to `engine`, and finishes. The time is that of the last step alone, in which `cg` and
    /// `zipper` look at the graph; up to it they only collect.
    pub(super) fn judge(&self, engine: &'static Engine) -> Result<(Duration, Detector), Error> {
        let mut stream = Stream::new(Detector::new(engine, order::Options::default()));
        self.recording.replay(&mut stream)?;
        let mut detector = stream.into_consumer();
        let start = Instant::now();
        detector.finish()?;
        Ok((start.elapsed(), detector))
    }
}

/// Counts isolated sections.
struct Sections(usize);

impl Consumer for Sections {
    fn accesses(&mut self, _: &Strand, _: &[Run]) -> Result<(), Error> {
        Ok(())
    }

    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.0 += usize::from(matches!(step.event, Event::IsolatedBegin { .. }));
        Ok(())
    }

    fn erase(&mut self, _: Bytes) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;

    /// What an exploration finds, in the words of an expectation.
    fn found(program: &Program) -> String {
        let mut names = BTreeSet::new();
        let limits = Limits {
            run: dagsan_lang::Limits::default(),
            schedules: 1_000,
            time: Duration::from_secs(60),
            memory: MOST_MEMORY,
            stop: &AtomicBool::new(false),
            threads: NonZero::<usize>::MIN,
        };
        let mut seen = |seen: Seen<'_, '_>| {
            names
                .extend(seen.detector.races().iter().flat_map(|race| seen.run.location_names(race.location)));
        };
        let dag = order::default_engine();
        dagsan_explore::explore(program, dag, Reduction::PartialOrder, &limits, &mut seen).unwrap();
        match names.len() {
            0 => "race-free".to_owned(),
            _ => format!("race {}", names.into_iter().collect::<Vec<_>>().join(", ")),
        }
    }

    #[test]
    fn every_program_is_as_its_first_line_says() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bench/papers/programs");
        let files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(!files.is_empty());
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let expected = text.lines().next().and_then(|line| line.strip_prefix("// expect: "));
            assert_eq!(Some(&*found(&compile(&text, &[]).unwrap())), expected, "{}", file.display());
        }
    }

    #[test]
    fn a_size_is_replaced_where_it_is_defined() {
        let text = "let n = 5;\nshared a[n];\nlet nn = n;";
        assert_eq!(resize(text, &[("n", 70)]).unwrap(), "let n = 70;\nshared a[n];\nlet nn = n;");
        assert!(resize(text, &[("m", 1)]).is_err());
    }

    #[test]
    fn sections_and_nodes_are_counted() {
        let program = program!("integer_counter_isolated", tasks = 2).compile().unwrap();
        let recorded = Recorded::new(&program).unwrap();
        // The start of main, its finish begun and ended, two nodes per task started, two per section.
        assert_eq!((recorded.nodes, recorded.sections), (1 + 2 + 2 * 2 + 2 * 2, 2));
    }
}
