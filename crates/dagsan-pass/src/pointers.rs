//! Where a pointer comes from, and where a local variable's address goes.
//!
//! A local variable whose address nobody keeps is used by one call of its function only, so its accesses need no mark. As in
//! ThreadSanitizer's pass.

use std::collections::HashSet;
use std::hash::Hash;

/// Beyond so many uses nothing is claimed.
const LIMIT: usize = 200;

/// Where a pointer comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source<V> {
    /// A local variable.
    Local,
    /// These pointers, perhaps with an offset.
    Others(Vec<V>),
    Unknown,
}

/// The local variable that a pointer is into, whatever way it was computed; none if there are several, or others.
pub fn local<V: Copy + Eq + Hash>(pointer: V, mut source: impl FnMut(V) -> Source<V>) -> Option<V> {
    let mut found = None;
    let mut seen = HashSet::from([pointer]);
    let mut open = vec![pointer];
    while let Some(value) = open.pop() {
        match source(value) {
            Source::Local if found.is_none_or(|known| known == value) => found = Some(value),
            Source::Others(others) if seen.len() < LIMIT => {
                open.extend(others.into_iter().filter(|&other| seen.insert(other)));
            }
            _ => return None,
        }
    }
    found
}

/// What happens to a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate<V> {
    /// It is used, and not kept.
    Used,
    /// Another pointer comes from it.
    Becomes(V),
    /// It is kept somewhere.
    Kept,
}

/// May somebody else know the address of a local variable?
pub fn escapes<V: Copy + Eq + Hash>(local: V, mut fates: impl FnMut(V) -> Vec<Fate<V>>) -> bool {
    let mut seen = HashSet::from([local]);
    let mut open = vec![local];
    let mut uses = 0;
    while let Some(value) = open.pop() {
        for fate in fates(value) {
            uses += 1;
            match fate {
                _ if uses > LIMIT => return true,
                Fate::Kept => return true,
                Fate::Used => {}
                Fate::Becomes(other) => open.extend(seen.insert(other).then_some(other)),
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_into_one_local_or_none_is_known() {
        // 0 and 1 are locals; 2 is 0 with an offset, 3 is 0 or 2 or itself, 4 is 0 or 1, 5 is an argument.
        let source = |value| match value {
            0 | 1 => Source::Local,
            2 => Source::Others(vec![0]),
            3 => Source::Others(vec![2, 0, 3]),
            4 => Source::Others(vec![0, 1]),
            _ => Source::Unknown,
        };
        assert_eq!([0, 2, 3].map(|value| local(value, source)), [Some(0); 3]);
        assert_eq!([4, 5].map(|value| local(value, source)), [None; 2]);
    }

    #[test]
    fn an_address_escapes_through_what_comes_from_it() {
        let fates = |kept: Fate<u32>| {
            move |value| match value {
                0 => vec![Fate::Used, Fate::Becomes(1), Fate::Used],
                1 => vec![Fate::Becomes(0), kept],
                _ => vec![],
            }
        };
        assert!(escapes(0, fates(Fate::Kept)));
        assert!(!escapes(0, fates(Fate::Used)));
        assert!(escapes(0, |_| vec![Fate::Used; LIMIT + 1]), "too many to look at");
    }
}
