//! What consumers see of a task event: the event, and what follows from the ones before it.

use crate::event::Event;
use crate::ids::{ScopeId, TaskId};

/// An event and what follows from the ones before it.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// The event.
    pub event: Event,
    /// For `Spawn` and `TaskEnd`: the scope that joins the task (a finish or a sync block).
    pub scope: ScopeId,
    /// The scope that the event opens: by `FinishBegin` the finish, by `Spawn` the sync block if the
    /// spawn is the first in it. The block opens before the child starts.
    pub opened: Option<ScopeId>,
    /// The scope that the event closes with a tree join: all that was started in it has ended.
    pub closed: Option<ScopeId>,
    /// The scopes whose tasks are joined: the closed one, blocks inside it, blocks a sync drains.
    pub drained: &'a [ScopeId],
    /// Every task the event joins directly (not those joined by these). Tasks that had been joined
    /// by a quiescent point may be left out: they precede everything.
    pub joined: &'a [TaskId],
    /// Those of `joined` that no closed scope accounts for: the non-tree joins.
    pub cross: &'a [TaskId],
    /// For `TaskEnd`: what the task has started and leaves to others.
    pub outlived: Option<Outlived<'a>>,
    /// For `PromiseGet`: the set precedes everything since the last quiescent point.
    pub implied: bool,
    /// Whether the program is quiescent after the event.
    pub phase: Phase,
    /// On [`Phase::Quiesced`], the finishes and blocks open in the main task, outermost first.
    pub open_scopes: &'a [ScopeId],
    /// Has every event so far come in the serial depth-first order?
    pub depth_first: bool,
}

/// Children that were not joined when their parent ended.
#[derive(Debug, Clone, Copy)]
pub struct Outlived<'a> {
    /// The children.
    pub tasks: &'a [TaskId],
    /// The finish that joins them.
    pub finish: ScopeId,
}

/// How much of the program's past is parallel to its present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Some task has not been joined into the main task.
    Parallel,
    /// The event made the program quiescent: the past may be forgotten.
    Quiesced,
    /// The program was quiescent before the event, and still is.
    Quiescent,
}
