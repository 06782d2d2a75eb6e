//! A stream without shared reads (`dagsan_core::shared`): a consumer that tells another one fewer accesses, and races that must be
//! the same.

use std::collections::HashMap;
use std::ops::Range;

use dagsan_core::contract::Opened;
use dagsan_core::shared::{Forget, SharedReads};
use dagsan_core::{
    AccessKind, Bytes, Consumer, Detector, Dropped, Error, Event, Location, Phase, Run, Step, Strand, TaskId,
};

/// Leaves out of what it gets the reads for which others stand, as the runtime of native programs does.
pub(crate) struct Sharing {
    shared: SharedReads<TaskId, Kept>,
    detector: Detector,
}

/// The bytes that are kept, by their lines.
#[derive(Default)]
struct Kept(HashMap<u64, u64>);

impl Forget for Kept {
    fn forget(&mut self, lines: Range<u64>) {
        self.0.retain(|line, _| !lines.contains(line));
    }
}

impl Kept {
    fn of(&self, line: u64) -> u64 {
        self.0.get(&line).copied().unwrap_or(0)
    }

    fn remove(&mut self, line: u64, mask: u64) {
        self.0.entry(line).and_modify(|kept| *kept &= !mask);
    }
}

impl Sharing {
    /// Keeps at most so many stretches of lines.
    pub(crate) fn new(detector: Detector, room: usize) -> Sharing {
        let shared = SharedReads::new(TaskId::MAIN, Kept::default(), room);
        Sharing { shared, detector }
    }

    pub(crate) fn into_detector(self) -> Detector {
        self.detector
    }

    fn keep(&mut self, at: Location) {
        let mask = self.detector.unwritten(at);
        if mask != 0 {
            *self.shared.bits.0.entry(at.line).or_default() |= mask;
            self.shared.keep(at.line..at.line + 1);
        }
    }
}

impl Consumer for Sharing {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        self.shared.turn(strand.task);
        let mut rest = runs.to_vec();
        for run in &mut rest {
            if run.kind == AccessKind::Read && !run.atomic {
                run.at.mask &= !self.shared.bits.of(run.at.line);
            }
        }
        rest.retain(|run| run.at.mask != 0);
        for run in rest.iter().filter(|run| run.kind == AccessKind::Write) {
            self.shared.bits.remove(run.at.line, run.at.mask);
        }
        self.detector.accesses(strand, &rest)?;
        if self.shared.is_on() && strand.locks.is_empty() && !strand.isolated && !strand.quiescent {
            for run in rest.iter().filter(|run| run.kind == AccessKind::Read && !run.atomic) {
                self.keep(run.at);
            }
        }
        Ok(())
    }

    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        let shared = &mut self.shared;
        shared.turn(step.event.task());
        match step.event {
            Event::Spawn { child, kind, .. } => shared.spawn(kind, child),
            Event::TaskEnd { .. } => shared.task_end(),
            Event::FinishBegin { .. } => shared.open(Opened::Finish),
            Event::FrameBegin { .. } => shared.open(Opened::Frame),
            Event::FinishEnd { .. } | Event::FrameEnd { .. } => shared.close(),
            Event::Sync { .. } => shared.sync(),
            other => shared.event(&other),
        }
        if step.phase == Phase::Quiesced {
            shared.quiesce(TaskId::MAIN);
        }
        self.detector.event(step)
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        bytes.lines().for_each(|(line, mask)| self.shared.bits.remove(line, mask));
        self.detector.erase(bytes)
    }

    fn dropped(&mut self, what: Dropped) -> Result<(), Error> {
        self.detector.dropped(what)
    }
}
