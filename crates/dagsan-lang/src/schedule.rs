//! What a program leaves open, and who decides it: the order of isolated sections, and which task an ewait joins.

use dagsan_core::TaskId;

use crate::span::Span;

/// Something that can happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Who does it.
    pub task: TaskId,
    /// The task that its ewait joins; `None` if it enters an isolated section.
    pub joins: Option<TaskId>,
    /// Where it stands in the source.
    pub span: Span,
}

/// Decides.
pub trait Scheduler {
    /// Which of the choices happens next? There is at least one; the first is that of the serial depth-first
    /// order. `None` ends the run.
    fn choose(&mut self, choices: &[Choice]) -> Option<usize>;
}
