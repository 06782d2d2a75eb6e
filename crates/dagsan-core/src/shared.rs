//! Shared reads: reads of memory that nobody writes, for which an earlier reader stands.
//!
//! A task per row that reads a whole matrix is the normal data-parallel program. Of all its readers the history needs one. So a
//! front end may *keep* the bytes that a strand has read: until they are forgotten here, whoever reads them has nothing
//! to tell.
//!
//! ```text
//!   kept    [ …… │ parallel │ serial ][ parallel │ serial ]        lines, in the order in which they were kept
//!            └ of an outer task ─────┘└ of the running one ┘
//!
//!   spawn          serial is forgotten; the child has none                  sync, scope ends   parallel becomes serial
//!   a task ends    all it has left becomes the parent's parallel part       exit, lock, …      everything is forgotten
//! ```
//!
//! **Why that is right.** Let `r` have read a byte that nothing has written, and let `s` read it later, in a depth-first run with no
//! exit since `r` (see `stand_in`). `r` stands for `s` if whatever still comes and is parallel to `s` is parallel to `r`: if every `u` that
//! follows `r` follows `s`, too. In the words of SP-bags, `r` is in the S-bag of a task `X` that has not ended, or in the P-bag of a scope that
//! is open.
//! - *P-bag*: what follows `r` comes after the end of the scope, and so after `s`.
//! - *S-bag of the task of `s`*: whatever comes later is in the same order to all of this bag.
//! - *S-bag of an ancestor of `s`*: `X` goes on beside `s` and follows `r`. Here `r` does not stand for `s`.
//!
//! So of what is kept only the S-bags of waiting ancestors must be hidden, and since `X` waits for a child that it spawns, it is enough to
//! forget its bag at the spawn. What was kept before, by tasks that have ended, stays in force. That nothing has written the byte is
//! the history's to say (`Detector::unwritten`); a write that comes later, and memory that becomes other memory, takes the bytes out of
//! what is kept.
//!
//! A section of a lock is compared with other sections by what it touches: nothing is kept over its begin, nor in it.
//!
//! **What it does not take**: runs that are not depth first, futures, posts and detached tasks, asyncs beside spawns. Nothing is
//! kept from there on to the next quiescent point.

use std::ops::Range;

use crate::contract::Opened;
use crate::event::{Event, TaskKind};

/// So many stretches of lines are kept at most: what was written since, or freed, is among them.
pub const ROOM: usize = 1 << 18;

/// Whoever knows which bytes are kept.
pub trait Forget {
    /// Those of these lines are kept no longer.
    fn forget(&mut self, lines: Range<u64>);
}

/// Has the last stretch stand for these lines too, if they overlap it or follow.
#[inline]
fn lengthen(kept: &mut [Range<u64>], lines: &Range<u64>) -> bool {
    match kept {
        [.., last] if (last.start..=last.end).contains(&lines.start) => {
            last.end = last.end.max(lines.end);
            true
        }
        _ => false,
    }
}

/// A task that runs, or waits for the next one.
#[derive(Debug, Clone, Copy)]
struct Level<T> {
    task: T,
    /// What is kept from here on is its own.
    start: usize,
    /// From here on it is serial.
    serial: usize,
    /// So many scopes are around it.
    scopes: usize,
}

/// See the module's documentation. `T` names tasks.
#[derive(Debug)]
pub struct SharedReads<T, B> {
    /// Which bytes are kept.
    pub bits: B,
    kept: Vec<Range<u64>>,
    /// The running task is the last.
    levels: Vec<Level<T>>,
    /// The open scopes, and where the serial part of their task began when they were opened.
    scopes: Vec<(Opened, usize)>,
    /// Which kind of tasks there was since the last quiescent point.
    kind: Option<TaskKind>,
    /// So many stretches are kept at most.
    room: usize,
    /// Can anything be kept before the next quiescent point?
    on: bool,
}

impl<T: Copy + PartialEq, B: Forget> SharedReads<T, B> {
    /// `main` runs. At most so many stretches of lines will be kept, [`ROOM`] or fewer; none if that is 0.
    pub fn new(main: T, bits: B, room: usize) -> SharedReads<T, B> {
        let levels = vec![Level { task: main, start: 0, serial: 0, scopes: 0 }];
        SharedReads { bits, kept: Vec::new(), levels, scopes: Vec::new(), kind: None, room, on: room > 0 }
    }

    /// May the running strand keep what it has read? It may not in a section.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Is anything kept?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    #[inline]
    fn running(&mut self) -> &mut Level<T> {
        self.levels.last_mut().expect("the main task does not end")
    }

    /// Bytes of these lines are kept, which the running strand has read.
    #[inline]
    pub fn keep(&mut self, lines: Range<u64>) {
        let serial = self.running().serial;
        if lengthen(&mut self.kept[serial..], &lines) {
            return;
        }
        self.kept.push(lines);
        if self.kept.len() > self.room {
            self.compact();
        }
    }

    /// The running task starts another, which runs.
    #[inline]
    pub fn spawn(&mut self, kind: TaskKind, child: T) {
        if !self.on {
            return;
        }
        let plain = matches!(kind, TaskKind::Async | TaskKind::Spawn);
        if !plain || *self.kind.get_or_insert(kind) != kind {
            return self.stop();
        }
        let serial = self.running().serial;
        self.kept.drain(serial..).for_each(|lines| self.bits.forget(lines));
        let level = Level { task: child, start: serial, serial, scopes: self.scopes.len() };
        self.levels.push(level);
    }

    /// The running task has ended.
    #[inline]
    pub fn task_end(&mut self) {
        if !self.on {
            return;
        }
        let [_, .., ended] = self.levels[..] else { return self.stop() };
        self.levels.pop();
        self.scopes.truncate(ended.scopes);
        let parallel = self.kept.len();
        self.running().serial = parallel;
    }

    /// It opens a scope.
    #[inline]
    pub fn open(&mut self, scope: Opened) {
        if self.on {
            let serial = self.running().serial;
            self.scopes.push((scope, serial));
        }
    }

    /// Its innermost scope ends.
    #[inline]
    pub fn close(&mut self) {
        if !self.on {
            return;
        }
        let level = *self.running();
        // One that was opened while nothing could be kept is not there.
        let scope = self.scopes.len() > level.scopes;
        let serial = scope.then(|| self.scopes.pop()).flatten().map_or(level.start, |(_, serial)| serial);
        self.running().serial = serial;
    }

    /// The running task joins what it has spawned.
    #[inline]
    pub fn sync(&mut self) {
        if !self.on {
            return;
        }
        let level = *self.running();
        let serial = match self.scopes[level.scopes..].last() {
            Some(&(Opened::Frame, serial)) => serial,
            // What it has spawned before a finish that is open is also joined.
            _ => {
                self.scopes[level.scopes..].iter_mut().for_each(|(_, serial)| *serial = level.start);
                level.start
            }
        };
        self.running().serial = serial;
    }

    /// `task` runs.
    #[inline]
    pub fn turn(&mut self, task: T) {
        if self.on && self.running().task != task {
            self.stop();
        }
    }

    /// Some event, of which the functions above may have been told, or not.
    #[inline]
    pub fn event(&mut self, event: &Event) {
        use Event::*;
        match event {
            Spawn { .. } | TaskEnd { .. } | Sync { .. } => {}
            FinishBegin { .. } | FinishEnd { .. } | FrameBegin { .. } | FrameEnd { .. } => {}
            // They lead in, and not out; a pass leads where a release has led out before.
            Acquire { .. } | Pass { .. } | PromiseNew { .. } | PromiseGet { .. } => {}
            _ => self.forget_all(),
        }
    }

    /// Nothing is parallel to the present, in which `main` runs.
    pub fn quiesce(&mut self, main: T) {
        self.forget_all();
        if !self.on {
            self.scopes.clear();
        }
        self.levels.truncate(1);
        *self.running() = Level { task: main, start: 0, serial: 0, scopes: 0 };
        (self.kind, self.on) = (None, self.room > 0);
    }

    /// Nothing is kept any more.
    pub fn forget_all(&mut self) {
        self.kept.drain(..).for_each(|lines| self.bits.forget(lines));
        self.levels.iter_mut().for_each(|level| (level.start, level.serial) = (0, 0));
        self.scopes.iter_mut().for_each(|(_, serial)| *serial = 0);
    }

    /// Puts stretches together that have one fate. If that does not help, nothing is kept any more.
    #[cold]
    fn compact(&mut self) {
        let of_levels = self.levels.iter().flat_map(|level| [level.start, level.serial]);
        let of_scopes = self.scopes.iter().map(|&(_, serial)| serial);
        let mut ends: Vec<usize> = of_levels.chain(of_scopes).chain([self.kept.len()]).collect();
        // With a key of its own: a program that sorts plain numbers would be linked to this copy of the sort, which has no hooks.
        ends.sort_unstable_by_key(|&end| end);
        ends.dedup();
        let (mut from, mut len, mut moved) = (0, 0, Vec::with_capacity(ends.len()));
        for &end in &ends {
            self.kept[from..end].sort_unstable_by_key(|lines| lines.start);
            let start = len;
            for number in from..end {
                let lines = self.kept[number].clone();
                if !lengthen(&mut self.kept[start..len], &lines) {
                    self.kept[len] = lines;
                    len += 1;
                }
            }
            moved.push(len);
            from = end;
        }
        self.kept.truncate(len);
        let now = |end: &mut usize| *end = ends.binary_search(end).map_or(0, |number| moved[number]);
        for level in &mut self.levels {
            now(&mut level.start);
            now(&mut level.serial);
        }
        self.scopes.iter_mut().for_each(|(_, serial)| now(serial));
        if len > self.room / 2 {
            self.forget_all();
        }
    }

    /// Nor will anything be before the next quiescent point.
    #[cold]
    fn stop(&mut self) {
        self.forget_all();
        self.on = false;
        self.scopes.clear();
        self.levels.truncate(1);
    }
}
