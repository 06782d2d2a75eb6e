//! The detector, and what is around its races (`graph::Around`), where that was asked for. For a part that runs ahead, who takes down what it tells.
//!
//! A run for the verdict has the detector alone: the graph is of use to those who look at a race, and is kept by the run that has exact places.

use std::ops::{Deref, DerefMut};

use dagsan_core::graph::Around;
use dagsan_core::{
    Allocator, Bytes, Consumer, Detector, Dropped, Error, Location, Run, SiteId, Span, Step, Strand, TaskId,
};

use crate::recorder::{Item, Recorder};
use crate::session::Session;

/// See the module's documentation. To all who ask it is the detector; that of a part knows nothing.
pub struct Watched {
    detector: Detector,
    around: Option<Box<Around>>,
    recorder: Option<Box<Recorder>>,
}

impl Watched {
    /// Keeps at most `strands` of the graph at a time; none without a graph.
    pub fn new(detector: Detector, strands: usize) -> Watched {
        let around = (strands > 0).then(|| Box::new(Around::new(strands)));
        Watched { detector, around, recorder: None }
    }

    /// From here on all is taken down, for somebody else to detect.
    pub fn record(&mut self, recorder: Recorder) {
        self.recorder = Some(Box::new(recorder));
    }

    /// Who takes down what is told, in a part.
    pub fn recorder(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_deref_mut()
    }

    /// Those of the bytes that the running strand may keep of those that it has read and told of: nobody has written them who counts.
    #[inline]
    pub fn unwritten(&self, at: Location) -> u64 {
        match &self.recorder {
            None => self.detector.unwritten(at),
            Some(recorder) => at.mask & !recorder.written(at.line),
        }
    }

    /// Those of the bytes that were written by somebody who counts.
    #[inline]
    pub fn written(&self, at: Location) -> u64 {
        match &self.recorder {
            None => self.detector.written(at),
            Some(recorder) => at.mask & recorder.written(at.line),
        }
    }

    /// The tasks that somebody may speak of; `None` if all may be.
    pub fn remembered_tasks(&self) -> Option<impl Iterator<Item = TaskId>> {
        self.recorder.is_none().then(|| self.detector.remembered_tasks()).flatten()
    }

    /// What is done at the site is an allocator's doing.
    pub fn is_allocators(&mut self, site: SiteId, what: Allocator) {
        match &mut self.recorder {
            None => self.detector.is_allocators(site, what),
            Some(recorder) => recorder.push(Item::Allocators(site, what)),
        }
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
        if self.recorder.is_some() {
            let spans: Vec<Span> = runs.iter().map(|&run| run.into()).collect();
            return self.spans(strand, &spans);
        }
        self.detector.accesses(strand, runs)?;
        if let Some(around) = &mut self.around {
            around.strand(strand);
        }
        Ok(())
    }

    fn spans(&mut self, strand: &Strand, spans: &[Span]) -> Result<(), Error> {
        if let Some(recorder) = &mut self.recorder {
            recorder.accesses(strand.task, spans);
            return Ok(());
        }
        self.detector.spans(strand, spans)?;
        if let Some(around) = &mut self.around {
            around.strand(strand);
        }
        Ok(())
    }

    #[inline]
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        if let Some(recorder) = &mut self.recorder {
            recorder.push(Item::Event(step.event));
            return Ok(());
        }
        self.detector.event(step)?;
        if let Some(around) = &mut self.around {
            around.step(step, self.detector.races());
        }
        Ok(())
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        if let Some(recorder) = &mut self.recorder {
            recorder.push(Item::Erase(bytes));
            return Ok(());
        }
        self.detector.erase(bytes)
    }

    fn dropped(&mut self, what: Dropped) -> Result<(), Error> {
        // A part has no futures: who makes one waits for its turn first.
        if self.recorder.is_some() { Ok(()) } else { self.detector.dropped(what) }
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
