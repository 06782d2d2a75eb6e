//! What becomes of a function's marks.

use crate::cover;
use crate::elim::Eliminations;
use crate::flow::Flow;
use crate::merge::{self, Merged};
use crate::model::Function;
use crate::sink::{self, Sunk};

/// Which marks are emitted, and where.
#[derive(Debug, Default)]
pub struct Plan {
    /// For each mark: is it not where its access is?
    pub gone: Vec<bool>,
    /// What stands for several, each in the place of one of them.
    pub merged: Vec<Merged>,
    /// What stands behind loops.
    pub sunk: Vec<Sunk>,
}

impl Plan {
    /// Decides.
    pub fn of(function: &Function, wanted: Eliminations) -> Plan {
        let mut plan = Plan { gone: vec![false; function.marks.len()], ..Plan::default() };
        if function.marks.is_empty() {
            return plan;
        }
        let flow = Flow::of(function);
        if wanted.cover {
            plan.gone = cover::covered(function, &flow);
        }
        if wanted.sink {
            plan.sunk = sink::sunk(function, &flow, &plan.gone);
            leave(&mut plan.gone, plan.sunk.iter().flat_map(|one| &one.members));
        }
        if wanted.merge {
            plan.merged = merge::merged(function, &plan.gone);
            leave(&mut plan.gone, plan.merged.iter().flat_map(|one| &one.members));
        }
        plan
    }
}

fn leave<'a>(gone: &mut [bool], marks: impl Iterator<Item = &'a usize>) {
    for &mark in marks {
        gone[mark] = true;
    }
}
