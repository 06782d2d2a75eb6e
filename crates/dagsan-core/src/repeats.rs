//! Steps that a task makes once more, as it has just made them: nobody need hear of them.
//!
//! A counter under a lock, a reference that is cloned and dropped: a task that does so in a loop makes the same *steps* again and again.
//! A step is what a strand has done, and the event that ended it. What is told of the first rounds says all that there is to say.
//!
//! ```text
//!   lock ─ x = x + 1 ─ unlock ─ lock ─ x = x + 1 ─ unlock ─ lock ─ x = x + 1 ─ unlock ─ …
//!   └──── told, recorded ─────┘└────── held back, left out ┘└────── held back, left out ┘
//! ```
//!
//! A *period* is some steps of one task, between which no other task and nothing else has come. Its events take locks, give them back, and
//! release; the locks it takes it gives back; and no strand of it had to acquire anything. If the same steps come again at once, byte by byte, they
//! are held back, and left out when all of them have come. If something else comes first, those that were held back are told.
//!
//! **Why that is right.** Let P be the period and Q its repetition; a step of the one has a twin in the other.
//! - *Ways in.* Nothing is acquired in P, and nothing in Q either, for it touches the same under the same locks, and nobody else has run. So every way
//!   from elsewhere to P or Q comes by the beginning of P: whatever precedes something in Q precedes all of P, or is in P.
//! - *Ways out.* Whoever acquires what a step of Q has released, or depends on its section, does the same with the twin in P if Q is not told: it is
//!   the same object, and the sections have touched the same.
//! - *No race is missed.* Let x race with an access of Q. If x came before, it is parallel to the twin, which is earlier. If it comes later,
//!   it has taken no way out from this step on, nor from the twin's step on without Q, and so is parallel to the twin. An access of P that x races with has
//!   even fewer ways out without Q.
//! - *None is invented.* Let x race with an access of P if Q is left out. If x came before, it does so in any case. If it comes later, it is parallel to
//!   the twin in Q: a way out from that step on would be one from the twin's. The two are alike in bytes, kind, locks and place.
//! - *Others.* Two accesses elsewhere are in the same order with and without Q, which has no way in of its own.
//!
//! **What it does not take**: more than [`MOST`] steps, strands with more than [`SPANS`] spans, strands that come in pieces.

use crate::access::Span;
use crate::event::Event;
use crate::ids::{LockId, TaskId};
use crate::locks::LockMode;

/// So many steps are remembered.
const MOST: usize = 4;

/// So many spans of a strand are remembered.
const SPANS: usize = 32;

/// A strand, and what ended it.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) spans: Vec<Span>,
    pub(crate) event: Event,
}

/// What is to be done with something that comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Then {
    /// It is held back.
    Hold,
    /// It is to be told.
    Tell,
    /// What was held back is to be told first, and then it.
    TellAll,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Repeats {
    /// Who has made the steps.
    task: TaskId,
    /// The steps that were told last, the latest at the end. The first of them may be no steps.
    steps: [Step; MOST],
    /// How many are.
    len: usize,
    /// What the running strand has done, and was told.
    running: Vec<Span>,
    /// Is that all it has done, and may it come again?
    is_whole: bool,
    /// How many of the last steps are coming again; 0 if none are.
    period: usize,
    /// So many of them have come.
    come: usize,
    /// Has what the strand of the next one has done?
    has_strand: bool,
    /// How many strands were left out.
    left_out: u64,
}

impl Repeats {
    pub(crate) fn new() -> Repeats {
        let nothing = || Step { spans: Vec::new(), event: Event::TaskEnd { task: TaskId::MAIN } };
        Repeats {
            task: TaskId::MAIN,
            steps: std::array::from_fn(|_| nothing()),
            len: 0,
            running: Vec::new(),
            is_whole: false,
            period: 0,
            come: 0,
            has_strand: false,
            left_out: 0,
        }
    }

    /// How many strands were left out.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Is anything held back?
    #[inline]
    pub(crate) fn holds(&self) -> bool {
        self.come > 0 || self.has_strand
    }

    /// The steps that are coming again.
    fn again(&self) -> &[Step] {
        &self.steps[MOST - self.period..]
    }

    /// The events that are held back.
    fn held(&self) -> impl DoubleEndedIterator<Item = Event> {
        self.again()[..self.come].iter().map(|step| step.event)
    }

    /// Is the task in a section of a lock whose begin is held back?
    #[inline]
    pub(crate) fn in_section(&self, task: TaskId) -> bool {
        let depth = self.held().fold(0, |depth, event| match event {
            Event::Lock { .. } => depth + 1,
            Event::Unlock { .. } => depth - 1,
            _ => depth,
        });
        task == self.task && depth > 0
    }

    /// How the task holds a lock, if its begin is held back.
    pub(crate) fn mode(&self, task: TaskId, lock: LockId) -> Option<LockMode> {
        let last = self.held().rev().find_map(|event| match event {
            Event::Lock { lock: taken, mode, .. } if taken == lock => Some(Some(mode)),
            Event::Unlock { lock: given_back, .. } if given_back == lock => Some(None),
            _ => None,
        });
        last.flatten().filter(|_| task == self.task)
    }

    /// The running strand of `task` has done this.
    #[inline]
    pub(crate) fn strand<S: Copy + Into<Span>>(&mut self, task: TaskId, spans: &[S]) -> Then {
        if task != self.task {
            if self.holds() {
                return Then::TellAll;
            }
            self.forget();
            self.task = task;
            return Then::Tell;
        }
        if self.period > 0 {
            if !self.has_strand && are_alike(&self.again()[self.come].spans, spans) {
                self.has_strand = true;
                return Then::Hold;
            }
            if self.holds() {
                return Then::TellAll;
            }
            self.period = 0;
        }
        if self.is_whole && self.running.is_empty() && spans.len() <= SPANS {
            if let Some(period) = self.begins_again(|step| are_alike(&step.spans, spans)) {
                (self.period, self.has_strand) = (period, true);
                return Then::Hold;
            }
            self.running.extend(spans.iter().map(|&span| -> Span { span.into() }));
        } else {
            self.is_whole = false;
        }
        Then::Tell
    }

    /// It had to acquire something before.
    #[inline]
    pub(crate) fn has_acquired(&mut self) {
        self.is_whole = false;
    }

    /// An event ends the running strand of its task.
    #[inline]
    pub(crate) fn event(&mut self, event: Event) -> Then {
        let (is_step, task) = (is_step(event), event.task());
        if self.period > 0 {
            let next = &self.again()[self.come];
            if next.event == event && next.spans.is_empty() != self.has_strand {
                self.comes();
                return Then::Hold;
            }
            if self.holds() {
                return Then::TellAll;
            }
            self.period = 0;
        }
        if !is_step || task != self.task || !self.is_whole {
            self.forget();
            // A strand of this task begins.
            (self.task, self.is_whole) = (task, true);
            return Then::Tell;
        }
        if self.running.is_empty()
            && let Some(period) = self.begins_again(|step| step.spans.is_empty() && step.event == event)
        {
            self.period = period;
            self.comes();
            return Then::Hold;
        }
        self.steps.rotate_left(1);
        let [.., last] = &mut self.steps;
        last.event = event;
        std::mem::swap(&mut last.spans, &mut self.running);
        self.running.clear();
        self.len = MOST.min(self.len + 1);
        Then::Tell
    }

    /// The next step has come.
    fn comes(&mut self) {
        (self.come, self.has_strand) = (self.come + 1, false);
        if self.come == self.period {
            self.left_out += self.again().iter().filter(|step| !step.spans.is_empty()).count() as u64;
            self.come = 0;
        }
    }

    /// So many of the last steps are a period, of which the first one `is` what has come.
    #[inline]
    fn begins_again(&self, is: impl Fn(&Step) -> bool) -> Option<usize> {
        (1..=self.len).find(|&period| is(&self.steps[MOST - period]) && self.is_period(period))
    }

    /// Do so many of the last steps give back the locks that they take, and no other?
    fn is_period(&self, period: usize) -> bool {
        let mut taken = [None; MOST];
        let steps = &self.steps[MOST - period..];
        let fits = steps.iter().enumerate().all(|(at, step)| match step.event {
            Event::Lock { lock, .. } => {
                taken[at] = Some(lock);
                true
            }
            Event::Unlock { lock, .. } => {
                let place = taken.iter_mut().find(|taken| **taken == Some(lock));
                place.map(|place| *place = None).is_some()
            }
            _ => true,
        });
        fits && taken == [None; MOST]
    }

    /// What is held back, to be told: whole steps, and what the running strand has done after these. Nothing is held back any more.
    pub(crate) fn take_held(&mut self) -> (TaskId, Vec<Step>, Vec<Span>) {
        let mut held = self.again()[..self.come + usize::from(self.has_strand)].to_vec();
        let running = if self.has_strand { held.pop() } else { None };
        self.forget();
        // It comes in pieces, if it has done something.
        self.is_whole = running.is_none();
        (self.task, held, running.map_or_else(Vec::new, |step| step.spans))
    }

    /// What comes follows on something else than steps. To be called when nothing is held back.
    pub(crate) fn forget(&mut self) {
        (self.len, self.is_whole, self.period, self.come, self.has_strand) = (0, false, 0, 0, false);
        self.running.clear();
    }
}

fn are_alike<S: Copy + Into<Span>>(known: &[Span], spans: &[S]) -> bool {
    known.len() == spans.len() && known.iter().zip(spans).all(|(known, &span)| *known == span.into())
}

/// May the event end a step?
#[inline]
fn is_step(event: Event) -> bool {
    matches!(event, Event::Lock { .. } | Event::Unlock { .. } | Event::Release { .. })
}
