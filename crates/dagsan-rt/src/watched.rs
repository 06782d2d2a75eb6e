//! The detector, and what is around its races (`graph::Around`), where that was asked for.
//!
//! A run for the verdict has the detector alone: the graph is of use to those who look at a race, and is kept by the run that has exact places.

use std::ops::{Deref, DerefMut};

use dagsan_core::graph::Around;
use dagsan_core::{Bytes, Consumer, Detector, Dropped, Error, Run, Span, Step, Strand};

use crate::session::Session;

/// See the module's documentation. To all who ask it is the detector.
pub struct Watched {
    detector: Detector,
    around: Option<Box<Around>>,
}

impl Watched {
    /// Keeps at most `strands` of the graph at a time; none without a graph.
    pub fn new(detector: Detector, strands: usize) -> Watched {
        Watched { detector, around: (strands > 0).then(|| Box::new(Around::new(strands))) }
    }

    /// What is around the races.
    pub fn around(&self) -> Option<&Around> {
        self.around.as_deref()
    }

    /// The program is over.
    pub fn finish(&mut self) -> Result<(), Error> {
        let finished = self.detector.finish();
        if let Some(around) = &mut self.around {
            around.look(self.detector.races());
        }
        finished
    }
}

impl Deref for Watched {
    type Target = Detector;
    #[inline]
    fn deref(&self) -> &Detector {
        &self.detector
    }
}

impl DerefMut for Watched {
    #[inline]
    fn deref_mut(&mut self) -> &mut Detector {
        &mut self.detector
    }
}

impl Consumer for Watched {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        self.detector.accesses(strand, runs)?;
        if let Some(around) = &mut self.around {
            around.strand(strand);
        }
        Ok(())
    }

    fn spans(&mut self, strand: &Strand, spans: &[Span]) -> Result<(), Error> {
        self.detector.spans(strand, spans)?;
        if let Some(around) = &mut self.around {
            around.strand(strand);
        }
        Ok(())
    }

    #[inline]
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.detector.event(step)?;
        if let Some(around) = &mut self.around {
            around.step(step, self.detector.races());
        }
        Ok(())
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.detector.erase(bytes)
    }

    fn dropped(&mut self, what: Dropped) -> Result<(), Error> {
        self.detector.dropped(what)
    }
}

impl Session {
    /// Takes note of the tasks that are around the races found since the last time, before they are forgotten.
    pub fn mention_around(&mut self) {
        let Some(around) = self.stream.consumer().around() else { return };
        for near in around.all().skip(self.found.around) {
            let steps = near.down.iter().chain(near.up.iter().flatten()).flatten();
            for task in steps.map(|step| step.task).chain([near.start]) {
                if self.tasks.is_known(task.0) {
                    self.found.mention(task.0, &self.tasks, self.call);
                }
            }
        }
        self.found.around = around.all().count();
    }
}
