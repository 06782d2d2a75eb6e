//! Two accesses in a chosen order: one is held back until the other was made.
//!
//! For witnesses of races. A task that comes to the held access waits until the awaited one is made, or until
//! nothing else can run: then this was not the access of the race, but one that the task makes before it from
//! the same place, and the next one is held.

use super::state::NONE;
use super::{Machine, Names, Stop};
use crate::hir::AccessId;
use crate::schedule::Point;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Gate {
    held: Point,
    awaited: Point,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Nobody is held.
    Open,
    /// This task waits at the held access.
    Holding(u32),
    /// This task may go on, once.
    Excused(u32),
    /// The awaited access was made while the other was held: nothing more is to be done.
    Passed,
}

impl Gate {
    pub(crate) fn new(held: Point, awaited: Point) -> Gate {
        Gate { held, awaited, progress: Progress::Open }
    }

    /// Was the awaited access made first?
    pub(crate) fn passed(&self) -> bool {
        self.progress == Progress::Passed
    }
}

impl Machine<'_, '_> {
    /// `task` is about to make an access to `cell`. Must it wait?
    pub(super) fn at_gate(&mut self, task: u32, access: AccessId, cell: usize) -> bool {
        let Some(gate) = &self.gate else { return false };
        let meets = |point: &Point| {
            let names = Names { hir: self.hir, state: &self.state };
            point.site.number() == access.0
                && point.cell == names.stable_cell(cell as u32)
                && point.task == self.path(task)
        };
        let (is_held, is_awaited) = (meets(&gate.held), meets(&gate.awaited));
        let Some(gate) = &mut self.gate else { return false };
        match gate.progress {
            Progress::Holding(holding) if is_awaited => {
                gate.progress = Progress::Passed;
                self.wake(holding);
            }
            Progress::Excused(excused) if is_held && excused == task => gate.progress = Progress::Open,
            Progress::Open if is_held => {
                gate.progress = Progress::Holding(task);
                return true;
            }
            _ => {}
        }
        false
    }

    /// Nothing can run any more: lets the held task go, if there is one.
    pub(super) fn open_gate(&mut self) -> bool {
        let Some(gate) = &mut self.gate else { return false };
        let Progress::Holding(task) = gate.progress else { return false };
        gate.progress = Progress::Excused(task);
        self.wake(task);
        true
    }

    /// Which child of its parent a task is, of its parent's parent, …, outermost first.
    pub(super) fn path(&self, task: u32) -> Vec<u32> {
        let mut path = Vec::new();
        let mut at = task;
        while at != 0 && at != NONE {
            let task = &self.state.tasks[at as usize];
            path.push(task.birth);
            at = task.parent;
        }
        path.reverse();
        path
    }

    /// The cell that the access operation `op` would touch.
    pub(super) fn cell_of(
        &self,
        op: crate::compile::op::Op,
        registers: &[i64],
    ) -> Result<Option<usize>, Stop> {
        use crate::compile::op::Op;
        let reg = |reg: u16| registers[reg as usize];
        match op {
            Op::Load(_, a, i) | Op::LoadCheck(_, a, i, _) => self.cell(reg(a), reg(i)).map(Some),
            Op::Store(a, i, _) | Op::StoreCheck(a, i, _, _) => self.cell(reg(a), reg(i)).map(Some),
            Op::Read(_, cell) | Op::ReadCheck(_, cell, _) => Ok(Some(cell as usize)),
            Op::Write(_, cell) | Op::WriteCheck(_, cell, _) => Ok(Some(cell as usize)),
            _ => Ok(None),
        }
    }
}
