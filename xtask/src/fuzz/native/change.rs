//! What native programs have more of than those of the core: promises that are set by mistake, and objects that one task has for itself.

use std::collections::BTreeMap;

use dagsan_fuzz::{Program, Stmt};

/// Lets some task set another promise than it ought to: then some promise is set twice, and some perhaps never.
pub fn confuse_promises(program: &mut Program, rng: &mut fastrand::Rng) {
    let sets: Vec<u32> = program.walk().filter_map(set_name).collect();
    let (Some(&other), true) = (rng.choice(&sets), sets.len() > 1) else { return };
    let chosen = rng.usize(0..sets.len());
    let mut next = 0;
    program.for_each_mut(|stmt| {
        if set_name(stmt).is_some() {
            if next == chosen {
                *stmt = Stmt::Set(other);
            }
            next += 1;
        }
    });
}

fn set_name(stmt: &Stmt) -> Option<u32> {
    match stmt {
        Stmt::Set(name) => Some(*name),
        _ => None,
    }
}

/// Gives some sections, and what some bodies release and acquire, names of their own. Such locks and atomics are on stacks, where
/// those of other tasks were before.
pub fn make_own(program: &mut Program, rng: &mut fastrand::Rng) {
    let name = |stmt: &Stmt| match stmt {
        Stmt::Lock(name, _) | Stmt::Unlock(name) | Stmt::Release(name, _) | Stmt::Acquire(name) => {
            Some(*name)
        }
        _ => None,
    };
    let mut fresh = program.walk().filter_map(name).max().map_or(0, |name| name + 1);
    own_names(&mut program.body, rng, &mut fresh);
    program.for_each_mut(|stmt| {
        if let Some(body) = stmt.body_mut() {
            own_names(body, rng, &mut fresh);
        }
    });
}

fn own_names(body: &mut [Stmt], rng: &mut fastrand::Rng, fresh: &mut u32) {
    let mut own = |rng: &mut fastrand::Rng, name| {
        if rng.bool() {
            return name;
        }
        *fresh += 1;
        *fresh - 1
    };
    let (mut locks, mut syncs) = (BTreeMap::new(), BTreeMap::new());
    for stmt in body {
        match stmt {
            // As a reader too, if it is the same section.
            Stmt::Lock(name, _) => *name = *locks.entry(*name).or_insert_with(|| own(rng, *name)),
            Stmt::Unlock(name) => *name = locks.remove(name).unwrap_or(*name),
            Stmt::Release(name, _) | Stmt::Acquire(name) => {
                *name = *syncs.entry(*name).or_insert_with(|| own(rng, *name));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_stay_whole() {
        let text =
            "lock l0; w 0+1; share l0; unlock l0; lock l0; unlock l0; async { load s0; update s0 } load s0";
        let program = Program::parse(text).unwrap();
        let (mut sections, mut objects) = (0, 0);
        for seed in 0..64 {
            let mut changed = program.clone();
            make_own(&mut changed, &mut fastrand::Rng::with_seed(seed));
            let Stmt::Async(inner) = &changed.body[6] else { panic!("{changed}") };
            assert!(matches!((&inner[0], &inner[1]), (Stmt::Acquire(a), Stmt::Release(b, true)) if a == b));
            objects += u32::from(inner[0] != changed.body[7]);
            let names: Vec<u32> = changed.body.iter().filter_map(lock_name).collect();
            let [a, b, c, d, e] = names[..] else { panic!("{changed}") };
            assert!(a == b && b == c && d == e, "{changed}");
            sections += u32::from(a != d);
        }
        assert!(sections > 20 && objects > 20, "{sections} {objects}");
    }

    fn lock_name(stmt: &Stmt) -> Option<u32> {
        match stmt {
            Stmt::Lock(name, _) | Stmt::Unlock(name) => Some(*name),
            _ => None,
        }
    }
}
