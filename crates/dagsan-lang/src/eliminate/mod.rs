//! Static check elimination: which accesses need no check (TaskChecker, paper 004, section 6; DRDP,
//! paper 000, section 4.4.2).
//!
//! An elimination may change which of several accesses is named in a report, never which locations are
//! racy. That is for runs that come to their end: a run that fails is repeated without eliminations, because a
//! check that stands before its loop has been made when an iteration fails.

mod effects;
mod loops;
mod subsume;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::hir::{AccessId, Expr, Hir, LoopId, Target};
use effects::Effects;

/// A reason why an access needs no check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Elimination {
    /// It is made while no other task can be alive (004, 6.1).
    Sequential,
    /// It reads what no parallel code writes (004, 6.2).
    ReadOnly,
    /// Its array never leaves the task that made it (004, 6.3).
    Local,
    /// It does the same in every iteration of a loop, and is checked before the first (004, 6.4).
    LoopInvariant,
    /// Another check of the same strand covers it (004, 6.5).
    Subsumed,
    /// Its addresses are an affine function of loop iterators: checked as a whole before the loops
    /// (000, 4.4.2).
    Affine,
}

impl Elimination {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Elimination; 6] = [
        Elimination::Sequential,
        Elimination::ReadOnly,
        Elimination::Local,
        Elimination::Subsumed,
        Elimination::LoopInvariant,
        Elimination::Affine,
    ];

    /// The name it is chosen by.
    pub fn name(self) -> &'static str {
        match self {
            Elimination::Sequential => "sequential",
            Elimination::ReadOnly => "read-only",
            Elimination::Local => "local",
            Elimination::LoopInvariant => "loop-invariant",
            Elimination::Subsumed => "subsumed",
            Elimination::Affine => "affine",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Elimination> {
        Elimination::ALL.into_iter().find(|elimination| elimination.name() == name)
    }
}

/// A set of eliminations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Eliminations(u8);

impl Eliminations {
    /// All of them.
    pub fn all() -> Eliminations {
        Elimination::ALL.into_iter().fold(Eliminations::none(), Eliminations::with)
    }

    /// None of them.
    pub fn none() -> Eliminations {
        Eliminations(0)
    }

    /// These and one more.
    pub fn with(self, elimination: Elimination) -> Eliminations {
        Eliminations(self.0 | 1 << elimination as u8)
    }

    /// These but one.
    pub fn without(self, elimination: Elimination) -> Eliminations {
        Eliminations(self.0 & !(1 << elimination as u8))
    }

    /// Is it in the set?
    pub fn contains(self, elimination: Elimination) -> bool {
        self.0 >> (elimination as u8) & 1 == 1
    }
}

/// A check that stands before a loop, for all iterations of it.
///
/// It covers the elements `start + Σ step * i`, 0 ≤ i < count, over all dimensions (step, count). The
/// expressions are evaluated before the first iteration.
#[derive(Debug)]
pub struct Hoisted {
    /// The access.
    pub access: AccessId,
    /// The array; `None` for a scalar.
    pub array: Option<Expr>,
    /// The first element.
    pub start: Expr,
    /// The dimensions.
    pub dimensions: Vec<(Expr, Expr)>,
}

/// What the eliminations found.
#[derive(Debug, Default)]
pub struct Plan {
    reasons: Vec<Option<Elimination>>,
    hoisted: FxHashMap<LoopId, Vec<Hoisted>>,
}

impl Plan {
    /// Applies the eliminations in `chosen` to the program.
    pub fn new(hir: &Hir, chosen: Eliminations) -> Plan {
        let mut plan = Plan { reasons: vec![None; hir.accesses.len()], hoisted: FxHashMap::default() };
        let effects = Effects::new(hir);
        let all = || (0..hir.accesses.len() as u32).map(AccessId);
        let parallel = || all().filter(|&access| effects.parallel(access));
        if chosen.contains(Elimination::Sequential) {
            plan.eliminate(Elimination::Sequential, all().filter(|&access| !effects.parallel(access)));
        }
        if chosen.contains(Elimination::ReadOnly) {
            let access = |access: AccessId| hir.accesses[access.index()];
            let written: FxHashSet<Target> =
                parallel().map(access).filter(|a| a.write).map(|a| a.target).collect();
            let reads = all().filter(|&id| !access(id).write && !written.contains(&access(id).target));
            plan.eliminate(Elimination::ReadOnly, reads);
        }
        if chosen.contains(Elimination::Local) {
            let local = all().filter(|&access| match hir.accesses[access.index()].target {
                Target::Class(class) => !hir.escaping[class.index()],
                Target::Shared(_) => false,
            });
            plan.eliminate(Elimination::Local, local);
        }
        if chosen.contains(Elimination::Subsumed) {
            plan.eliminate(Elimination::Subsumed, subsume::subsumed(hir, &effects));
        }
        for found in loops::hoistable(hir, &effects, chosen, |access| plan.needs_check(access)) {
            plan.eliminate(found.elimination, [found.check.access]);
            plan.hoisted.entry(found.before).or_default().push(found.check);
        }
        plan
    }

    fn eliminate(&mut self, reason: Elimination, accesses: impl IntoIterator<Item = AccessId>) {
        for access in accesses {
            self.reasons[access.index()].get_or_insert(reason);
        }
    }

    /// Does the access need a check where it stands?
    pub fn needs_check(&self, access: AccessId) -> bool {
        self.reasons[access.index()].is_none()
    }

    /// Why the access needs none.
    pub fn reason(&self, access: AccessId) -> Option<Elimination> {
        self.reasons[access.index()]
    }

    /// The checks to be made before the loop.
    pub fn hoisted(&self, id: LoopId) -> &[Hoisted] {
        self.hoisted.get(&id).map_or(&[], |hoisted| hoisted)
    }
}
