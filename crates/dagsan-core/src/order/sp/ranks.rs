//! All positions by their places in the two orders, for whoever looks at many of them at once.

use std::sync::PoisonError;

use super::list::{ENGLISH, HEBREW, Orders, Position};

/// The places of all positions in the English and in the Hebrew order, from 0 on.
#[derive(Debug)]
pub(crate) struct Ranks {
    places: Vec<[u32; 2]>,
}

impl Ranks {
    /// How many positions there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    #[inline]
    pub(crate) fn english(&self, at: Position) -> u32 {
        self.places[at.number()][ENGLISH]
    }

    #[inline]
    pub(crate) fn hebrew(&self, at: Position) -> u32 {
        self.places[at.number()][HEBREW]
    }
}

impl Orders {
    pub(super) fn ranks(&self) -> Ranks {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let mut places = vec![[0; 2]; links.len()];
        for (rank, element) in (0..).zip(links.walk::<ENGLISH>()) {
            places[element as usize][ENGLISH] = rank;
        }
        for (rank, element) in (0..).zip(links.walk::<HEBREW>()) {
            places[element as usize][HEBREW] = rank;
        }
        Ranks { places }
    }
}
