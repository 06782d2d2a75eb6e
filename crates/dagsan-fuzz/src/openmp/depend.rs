//! `depend`, as the specification has it: two sibling tasks, and whether the later one depends on the earlier one.

use super::tree::{Depend, Use};

/// Does a task with `later` depend on a sibling that was created before it, with `earlier`?
pub fn comes_after(later: &[Depend], earlier: &[Depend]) -> bool {
    let pairs = later.iter().flat_map(|later| earlier.iter().map(move |earlier| (later, earlier)));
    pairs.filter(|(later, earlier)| later.on == earlier.on).any(|(later, earlier)| {
        use Use::*;
        match (later.how, earlier.how) {
            (In, In) | (Mutexinoutset, Mutexinoutset) | (Inoutset, Inoutset) => false,
            (In | Out | Inout | Mutexinoutset | Inoutset, _) => true,
        }
    })
}

/// The variables that a task has alone while it runs, sorted.
pub fn alone(depend: &[Depend]) -> Vec<u32> {
    let items = depend.iter().filter(|item| item.how == Use::Mutexinoutset);
    let mut alone: Vec<u32> = items.map(|item| item.on).collect();
    alone.sort_unstable();
    alone.dedup();
    alone
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(how: Use, on: u32) -> Depend {
        Depend { how, on }
    }

    #[test]
    fn equal_sets_and_readers_are_not_ordered() {
        use Use::*;
        let all = [In, Out, Inout, Mutexinoutset, Inoutset];
        for later in all {
            for earlier in all {
                let ordered = comes_after(&[item(later, 0)], &[item(In, 1), item(earlier, 0)]);
                let same_set = later == earlier && matches!(later, In | Mutexinoutset | Inoutset);
                assert_eq!(ordered, !same_set, "{later:?} after {earlier:?}");
                assert!(!comes_after(&[item(later, 0)], &[item(earlier, 1)]));
            }
        }
        assert_eq!(alone(&[item(Mutexinoutset, 2), item(In, 0), item(Mutexinoutset, 1)]), [1, 2]);
    }
}
