//! What a program leaves open, and who decides it: the order of isolated sections, and which task an ewait joins.

use dagsan_core::{SiteId, TaskId};

use crate::span::Span;

/// Something that can happen next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Who does it.
    pub task: TaskId,
    /// The task that its ewait joins; `None` if it enters an isolated section.
    pub joins: Option<TaskId>,
    /// The same two, as names that do not depend on the schedule: see [`TaskPath`].
    pub names: (TaskPath, Option<TaskPath>),
    /// Where it stands in the source.
    pub span: Span,
}

/// Which child of its parent a task is, of its parent's parent, …, outermost first. The same task has the same
/// path in every schedule.
pub type TaskPath = Vec<u32>;

/// An access: by whom, where in the source, and to what. Made by [`crate::Run::point`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// The task.
    pub task: TaskPath,
    /// The access in the source.
    pub site: SiteId,
    /// What it touches.
    pub cell: CellName,
}

/// A cell of shared memory, in words that mean the same in every schedule: who made its array, and which element it
/// is. Arrays that one place of the text makes have the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellName {
    /// The maker's number; `None` for a scalar.
    pub(crate) maker: Option<u32>,
    pub(crate) index: u32,
}

/// Decides.
pub trait Scheduler {
    /// Which of the choices happens next? There is at least one; the first is that of the serial depth-first
    /// order. `None` ends the run.
    fn choose(&mut self, choices: &[Choice]) -> Option<usize>;

    /// The program has been quiescent since the last choice, in a state with this digest. All that was done precedes
    /// all that will be, so what comes depends on the state alone. `false` ends the run.
    fn reached(&mut self, digest: u128) -> bool {
        let _ = digest;
        true
    }
}
