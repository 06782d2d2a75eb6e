//! A digest of the whole state at a quiescent point, to recognise states that were seen before.
//!
//! At a quiescent point only the main task is alive, and all that happened precedes all that will: what comes
//! depends on the state alone, and so do the races in it. In between, the past matters too, and there is no digest.
//!
//! Numbers of tasks and promises are part of the state as they are. Schedules that number them differently
//! are not recognised as the same, which costs time and nothing else.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::Machine;
use super::state::{NONE, Running, Status};
use crate::hir::StartKind;

impl Machine<'_, '_> {
    /// The digest of a state in which the main task, with these registers, will execute `pc` next. 128 bits: that
    /// two states of one exploration have the same by chance can be left out of account.
    pub(super) fn digest(&self, running: &Running, stack: &[i64], base: usize, pc: usize) -> u128 {
        let half = |seed: u8| {
            let mut hasher = DefaultHasher::new();
            seed.hash(&mut hasher);
            self.hash_state(&mut hasher);
            self.hash_main(running, stack, base, pc, &mut hasher);
            u128::from(hasher.finish())
        };
        half(0) << 64 | half(1)
    }

    fn hash_state(&self, hasher: &mut impl Hasher) {
        let state = &self.state;
        (&state.cells, &state.fixed).hash(hasher);
        for object in &state.objects {
            (object.base, object.len, object.maker).hash(hasher);
        }
        for promise in &state.promises {
            promise.value.hash(hasher);
        }
        let result = |task: u32| match state.tasks[task as usize].status {
            Status::Ended(result) => Some(result),
            Status::Ready(_) | Status::Blocked(..) | Status::Current => None,
        };
        for region in &state.regions {
            region.posted.len().hash(hasher);
            for &task in region.posted.iter().chain(&region.ended) {
                (task, result(task), state.tasks[task as usize].site).hash(hasher);
            }
        }
        // Of the other tasks nobody has a handle.
        for (number, task) in (0u32..).zip(&state.tasks) {
            let site = self.code.starts.get(task.site as usize);
            if site.is_some_and(|site| site.kind == StartKind::Future) {
                (number, result(number)).hash(hasher);
            }
        }
    }

    fn hash_main(&self, running: &Running, stack: &[i64], base: usize, pc: usize, hasher: &mut impl Hasher) {
        (pc, base, running.finishes.len(), running.isolated).hash(hasher);
        for frame in &running.frames {
            (frame.return_to, frame.caller_base, frame.spawned == NONE).hash(hasher);
        }
        (&running.joined, &running.handler_returns).hash(hasher);
        // Functions lie one after the other; above the registers of this one is what calls have left.
        let after = self.code.functions.partition_point(|function| function.entry as usize <= pc);
        let registers = after.checked_sub(1).map_or(0, |at| self.code.functions[at].registers as usize);
        stack[..(base + registers).min(stack.len())].hash(hasher);
    }
}
