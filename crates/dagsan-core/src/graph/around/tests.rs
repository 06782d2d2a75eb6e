//! Neighbourhoods of small programs.

use super::EdgeKind::{Continue, Join, Promise, Spawn};
use super::*;
use crate::{
    AccessKind, AccessSet, Bytes, Consumer, Detector, Error, Event, PromiseId, Run, SiteId, Stream, TaskKind,
    order,
};

/// A detector, and what is around its races.
struct Both(Detector, Around);

impl Consumer for Both {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        self.0.accesses(strand, runs)?;
        self.1.strand(strand);
        Ok(())
    }
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.0.event(step)?;
        self.1.step(step, self.0.races());
        Ok(())
    }
    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.0.erase(bytes)
    }
}

const MAIN: TaskId = TaskId::MAIN;

fn watched(limit: usize) -> Stream<Both> {
    let detector = Detector::new(order::default_engine(), order::Options::default());
    Stream::new(Both(detector, Around::new(limit)))
}

fn write(stream: &mut Stream<Both>, task: TaskId) {
    let mut set = AccessSet::new();
    set.record(Bytes::new(64, 8).unwrap(), AccessKind::Write, SiteId::new(1).unwrap());
    stream.accesses(task, &set).unwrap();
}

fn send(stream: &mut Stream<Both>, events: &[Event]) {
    events.iter().for_each(|&event| stream.event(event).unwrap());
}

fn all(stream: Stream<Both>) -> Vec<Neighbourhood> {
    let Both(detector, mut around) = stream.into_consumer();
    around.look(detector.races());
    around.all().cloned().collect()
}

fn step(kind: EdgeKind, task: u32, left_out: u32) -> PathStep {
    PathStep { kind, task: TaskId(task), left_out }
}

fn spawn(parent: u32, child: u32) -> Event {
    Event::Spawn { parent: TaskId(parent), child: TaskId(child), kind: TaskKind::Async }
}

fn end(task: u32) -> Event {
    Event::TaskEnd { task: TaskId(task) }
}

#[test]
fn two_tasks_of_a_finish() {
    let mut stream = watched(1000);
    send(&mut stream, &[Event::FinishBegin { task: MAIN }, spawn(0, 1)]);
    write(&mut stream, TaskId(1));
    send(&mut stream, &[end(1), spawn(0, 2), end(2), spawn(0, 3)]);
    write(&mut stream, TaskId(3));
    send(&mut stream, &[end(3), Event::FinishEnd { task: MAIN }]);
    // Main spawns 1, goes on, passes the spawn of 2, and spawns 3.
    let found = Neighbourhood {
        start: MAIN,
        down: [vec![step(Spawn, 1, 0)], vec![step(Continue, 0, 1), step(Spawn, 3, 0)]],
        up: Some([vec![step(Join, 0, 0)], vec![step(Join, 0, 0)]]),
    };
    assert_eq!(all(stream), [found]);
}

#[test]
fn a_way_may_lead_over_a_promise_and_the_end_may_not_come() {
    let mut stream = watched(1000);
    let promise = PromiseId(0);
    send(
        &mut stream,
        &[
            Event::PromiseNew { task: MAIN, promise },
            Event::FinishBegin { task: MAIN },
            spawn(0, 1),
            Event::PromiseSet { task: TaskId(1), promise },
        ],
    );
    write(&mut stream, TaskId(1));
    send(&mut stream, &[end(1), spawn(0, 2), Event::PromiseGet { task: TaskId(2), promise }]);
    write(&mut stream, TaskId(2));
    let found = all(stream);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].start, TaskId(1), "the strand that sets the promise");
    assert_eq!(found[0].down, [vec![step(Continue, 1, 0)], vec![step(Promise, 2, 0)]]);
    assert_eq!(found[0].up, None);
}

#[test]
fn long_ways_keep_their_ends_and_too_many_strands_are_not_kept() {
    let deep = |limit| {
        let mut stream = watched(limit);
        send(&mut stream, &[Event::FinishBegin { task: MAIN }]);
        (0..100).for_each(|task| send(&mut stream, &[spawn(task, task + 1)]));
        write(&mut stream, TaskId(100));
        (1..=100).rev().for_each(|task| send(&mut stream, &[end(task)]));
        write(&mut stream, MAIN);
        send(&mut stream, &[Event::FinishEnd { task: MAIN }]);
        stream
    };
    let found = all(deep(1000));
    let way = &found[0].down[0];
    assert_eq!((way.len(), way[0], way[31]), (2 * STEPS, step(Spawn, 1, 0), step(Spawn, 100, 0)));
    assert_eq!(way[STEPS].left_out, 100 - 2 * STEPS as u32);
    let small = deep(50).into_consumer().1;
    assert_eq!((small.all().count(), small.left_out()), (0, true));
}

#[test]
fn what_a_quiescent_point_ends_is_forgotten() {
    let mut stream = watched(30);
    for round in 0..100 {
        let child = 2 * round + 1;
        send(&mut stream, &[Event::FinishBegin { task: MAIN }, spawn(0, child)]);
        write(&mut stream, TaskId(child));
        send(&mut stream, &[end(child), spawn(0, child + 1)]);
        if round == 50 {
            write(&mut stream, TaskId(child + 1));
        }
        send(&mut stream, &[end(child + 1), Event::FinishEnd { task: MAIN }]);
    }
    let found = all(stream);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].down[0], [step(Spawn, 101, 0)]);
}
