//! Spans mean what their runs mean: random strands, delivered both ways, have races on the same bytes.

use std::collections::BTreeMap;

use dagsan_core::order::{self, Options};
use dagsan_core::{AccessKind, Detector, Event, Location, Run, SiteId, Span, Stream, TaskId, TaskKind};

/// A small generator of numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }
}

/// A stretch over several pages, most often of whole lines.
fn span(random: &mut Random, kind: AccessKind) -> Span {
    let mask = [u64::MAX, u64::MAX, 0xff, 0xffff_0000][random.below(4) as usize];
    let at = Location { line: random.below(2000), mask };
    let site = SiteId::new(random.below(3) as u32 * 2).unwrap();
    Span { first: Run { at, kind, site, atomic: false }, more: random.below(200) as u32 }
}

fn deliver(stream: &mut Stream<Detector>, task: TaskId, spans: &[Span], as_spans: bool) {
    let result = if as_spans {
        stream.spans(task, spans)
    } else {
        let runs: Vec<Run> = spans.iter().flat_map(|span| span.runs()).collect();
        stream.runs(task, &runs)
    };
    result.unwrap();
}

/// Parallel tasks inside of parallel tasks, each with a read and a write here and there: the bytes of each line that
/// race, and the number of checks.
fn racy_bytes(seed: u64, as_spans: bool) -> (BTreeMap<u64, u64>, u64) {
    let mut random = Random(seed);
    let mut stream = Stream::new(Detector::new(order::default_engine(), Options::default()));
    let mut open = vec![TaskId::MAIN];
    for _ in 0..24 {
        let task = *open.last().unwrap();
        if random.below(3) == 0 {
            let spans = [AccessKind::Read, AccessKind::Write].map(|kind| span(&mut random, kind));
            deliver(&mut stream, task, &spans, as_spans);
        }
        if open.len() > 1 && random.below(2) == 0 {
            stream.event(Event::TaskEnd { task }).unwrap();
            open.pop();
        } else {
            let child = TaskId(stream.structure().task_count());
            stream.event(Event::Spawn { parent: task, child, kind: TaskKind::Async }).unwrap();
            open.push(child);
        }
    }
    let mut racy = BTreeMap::new();
    for race in stream.consumer().races() {
        *racy.entry(race.location.line).or_default() |= race.location.mask;
    }
    (racy, stream.consumer().stats().checks)
}

#[test]
fn spans_are_their_runs() {
    let mut racy = 0;
    for seed in 0..200 {
        let (as_spans, as_runs) = (racy_bytes(seed, true), racy_bytes(seed, false));
        assert_eq!(as_spans, as_runs, "seed {seed}");
        racy += usize::from(!as_spans.0.is_empty());
    }
    assert!((20..200).contains(&racy), "{racy} of the programs were racy");
}
