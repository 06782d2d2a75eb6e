//! What a random program likes to do: how often each construct comes, and the shape of the task tree.
//!
//! Every program draws its own weights, and leaves some constructs out altogether (swarm testing):
//! programs in which everything happens a little are all alike.

use dagsan_core::Construct;
use fastrand::Rng;

use crate::program::Class;

/// Something a task may do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Access,
    Free,
    Async,
    Finish,
    Spawn,
    Sync,
    Call,
    Future,
    GetFuture,
    Set,
    Get,
    Isolated,
    Post,
    Await,
    Ewait,
    Lock,
    Unlock,
    Release,
    Acquire,
    Atomic,
    Detached,
    Child,
    /// End the innermost block.
    Close,
}

impl Op {
    pub(crate) fn creates_task(self) -> bool {
        matches!(self, Op::Async | Op::Spawn | Op::Future | Op::Post | Op::Detached | Op::Child)
    }

    pub(crate) fn is_block(self) -> bool {
        self.creates_task() || matches!(self, Op::Finish | Op::Call | Op::Isolated)
    }
}

/// The likings of one program.
#[derive(Debug)]
pub(crate) struct Mix {
    weights: Vec<(Op, u32)>,
    /// How many of 100 task creations that a child would like to make it does make: few make a wide
    /// tree.
    child_creates: u32,
    /// How many of 100 steps the newest task makes: many make deep trees, and a simulated schedule
    /// near the depth-first one.
    pub(crate) newest: u32,
    /// How many of 100 steps the oldest task makes: many make children get what their parents do
    /// later, which blocks in the depth-first run.
    pub(crate) oldest: u32,
    /// How many statements a task writes at most, not counting bodies.
    pub(crate) statements: u32,
    /// How many locks, and synchronisation objects, there are.
    names: u32,
    /// How the main task creates tasks when it has nothing else to do.
    pub(crate) main_task: Op,
}

impl Mix {
    pub(crate) fn new(class: Class, rng: &mut Rng) -> Mix {
        let (newest, oldest) = [(95, 0), (40, 0), (0, 0), (0, 50), (0, 90)][rng.usize(0..5)];
        let mut mix = Mix {
            weights: vec![(Op::Access, rng.u32(2..12)), (Op::Close, 2)],
            child_creates: [10, 50, 100, 100][rng.usize(0..4)],
            newest,
            oldest,
            statements: [3, 6, 6, 12][rng.usize(0..4)],
            names: rng.u32(1..=3),
            main_task: Op::Async,
        };
        if rng.u32(0..4) == 0 {
            mix.weights.push((Op::Free, 1));
        }
        // One construct that creates tasks stays in.
        let creators: Vec<Construct> =
            class.constructs().iter().copied().filter(|&construct| creator(construct).is_some()).collect();
        let kept = rng.choice(&creators).copied().unwrap_or(Construct::AsyncFinish);
        let eager = if rng.u32(0..4) == 0 { 4 } else { 1 };
        let chatty = if rng.bool() { 3 } else { 1 };
        for (at, &construct) in class.constructs().iter().enumerate() {
            // The last is what the class is about.
            let last = at + 1 == class.constructs().len();
            if construct == kept || rng.u32(0..if last { 12 } else { 4 }) > 0 {
                mix.add(construct, eager, chatty, rng);
            }
        }
        mix.main_task = creator(kept).unwrap_or(Op::Async);
        mix
    }

    fn add(&mut self, construct: Construct, eager: u32, chatty: u32, rng: &mut Rng) {
        let ops: &[Op] = match construct {
            Construct::AsyncFinish => &[Op::Async, Op::Finish],
            Construct::SpawnSync => &[Op::Spawn, Op::Sync, Op::Call],
            // The same statements, with the restriction or without.
            Construct::StructuredFuture | Construct::GeneralFuture => &[Op::Future, Op::GetFuture],
            Construct::Promise => &[Op::Set, Op::Get],
            Construct::Isolated => &[Op::Isolated],
            Construct::Region => &[Op::Post, Op::Await, Op::Ewait],
            Construct::Lock => &[Op::Lock, Op::Unlock, Op::Atomic],
            Construct::Atomic => &[Op::Release, Op::Acquire, Op::Atomic],
            Construct::Detached => &[Op::Detached],
            Construct::Child => &[Op::Child, Op::Sync, Op::GetFuture],
        };
        for &op in ops {
            let liking = match op {
                op if op.creates_task() => eager * rng.u32(1..=6),
                Op::GetFuture | Op::Get | Op::Set => chatty * rng.u32(1..=5),
                _ => rng.u32(1..=3),
            };
            self.weights.push((op, liking));
        }
    }

    /// The name of a lock or synchronisation object: few, so that tasks meet.
    pub(crate) fn name(&self, rng: &mut Rng) -> u32 {
        rng.u32(0..self.names)
    }

    pub(crate) fn has_promises(&self) -> bool {
        self.weights.iter().any(|&(op, _)| op == Op::Set)
    }

    /// What a task does next, if it can.
    pub(crate) fn pick(&self, rng: &mut Rng, child: bool) -> Op {
        let mut at = rng.u32(0..self.weights.iter().map(|&(_, weight)| weight).sum());
        for &(op, weight) in &self.weights {
            if at < weight {
                let too_wide = child && op.creates_task() && rng.u32(0..100) >= self.child_creates;
                return if too_wide { Op::Access } else { op };
            }
            at -= weight;
        }
        Op::Access
    }
}

/// How a construct creates tasks, if it does.
fn creator(construct: Construct) -> Option<Op> {
    match construct {
        Construct::AsyncFinish => Some(Op::Async),
        Construct::SpawnSync => Some(Op::Spawn),
        Construct::StructuredFuture | Construct::GeneralFuture => Some(Op::Future),
        Construct::Region => Some(Op::Post),
        Construct::Detached => Some(Op::Detached),
        Construct::Child => Some(Op::Child),
        Construct::Promise | Construct::Isolated | Construct::Lock | Construct::Atomic => None,
    }
}
