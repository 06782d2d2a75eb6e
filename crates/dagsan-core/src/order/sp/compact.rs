//! Lets go positions that nobody will ask about: the two lists are made anew of those that are left.
//!
//! ```text
//!   English   start · a · b · c · d · e        start · b · e          numbered by their place in the English
//!   Hebrew    start · d · e · a · c · b   ──►  start · e · b          list, in groups that are half full
//!                         (b and e are left)
//! ```

use std::sync::PoisonError;

use super::list::{ENGLISH, FULL, HEBREW, Links, NONE, Orders, Position};

/// No element: it was let go.
const GONE: u32 = u32::MAX;

impl Orders {
    /// Keeps the elements that `roots` names, and tells it their new positions. It must visit the same positions both
    /// times it is called. A position that means nothing any more, left from before the last [`Orders::clear`], becomes
    /// some position.
    pub(super) fn compact(&mut self, mut roots: impl FnMut(&mut dyn FnMut(&mut Position))) {
        let links = self.links.get_mut().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::take(links);
        let mut live = vec![false; old.len()];
        live[Position::START.number()] = true;
        roots(&mut |position| {
            if let Some(live) = live.get_mut(position.number()) {
                *live = true;
            }
        });
        let mut moved = vec![GONE; old.len()];
        for (number, element) in (0..).zip(old.walk::<ENGLISH>().filter(|&element| live[element as usize])) {
            moved[element as usize] = number;
        }
        let kept = |element: u32| Some(moved[element as usize]).filter(|&number| number != GONE);
        let english: Vec<u32> = old.walk::<ENGLISH>().filter_map(kept).collect();
        let hebrew: Vec<u32> = old.walk::<HEBREW>().filter_map(kept).collect();
        *links = Links::of_lists(&english, &hebrew);
        self.lay_out::<ENGLISH>(&english);
        self.lay_out::<HEBREW>(&hebrew);
        roots(&mut |position| {
            let number = moved.get(position.number()).copied().filter(|&number| number != GONE);
            *position = number.map_or(Position::START, Position::new);
        });
    }

    /// Puts a list's elements into groups.
    fn lay_out<const ORDER: usize>(&mut self, list: &[u32]) {
        let mut last = None;
        for elements in list.chunks(FULL as usize / 2) {
            last = Some(self.append_group::<ORDER>(last, elements[0], elements.len() as u32));
        }
    }
}

impl Links {
    /// The elements of a list in their order.
    pub(super) fn walk<const ORDER: usize>(&self) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(0), |&element| {
            let next = self.next_of::<ORDER>(element);
            (next != NONE).then_some(next)
        })
    }
}
