//! The segments of a line: bytes that were treated alike. A line's first segment is in the line itself, the others in
//! chains of chunks; to be changed they are all loaded into a [`Split`].
//!
//! ```text
//!   chunk   │ mask 0 … mask 3 │ state 0 … state 3 │ next │ how many │
//!                  4*8               4*4             4        4
//! ```

use super::states::StateId;

/// A line has no more segments than bytes, and one access cuts each at most in two.
const MOST: usize = 128;

/// All segments of one line, to be worked on. Their masks are disjoint.
pub(super) struct Split {
    masks: [u64; MOST],
    states: [StateId; MOST],
    len: usize,
}

impl Split {
    pub(super) const EMPTY: Split = Split { masks: [0; MOST], states: [StateId::UNTOUCHED; MOST], len: 0 };

    /// Begins with one segment, or none if the mask is empty.
    #[inline]
    pub(super) fn start(&mut self, mask: u64, state: StateId) {
        self.len = 0;
        if mask != 0 {
            self.add(mask, state);
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn mask(&self, number: usize) -> u64 {
        self.masks[number]
    }

    #[inline]
    pub(super) fn state(&self, number: usize) -> StateId {
        self.states[number]
    }

    /// The masks.
    #[inline]
    pub(super) fn masks(&self) -> &[u64] {
        &self.masks[..self.len]
    }

    /// The bytes of a segment that are in `hit` get another state.
    #[inline]
    pub(super) fn change(&mut self, number: usize, hit: u64, state: StateId) {
        if state == self.states[number] {
            return;
        }
        if hit == self.masks[number] {
            self.states[number] = state;
        } else {
            self.masks[number] &= !hit;
            self.add(hit, state);
        }
    }

    /// Bytes that were in no segment, or are not any more. They stay apart until [`Split::tidy`]: in a segment of the
    /// same state that is still to come, they would be met a second time.
    #[inline]
    pub(super) fn add(&mut self, mask: u64, state: StateId) {
        (self.masks[self.len], self.states[self.len]) = (mask, state);
        self.len += 1;
    }

    /// The bytes are in no segment any more.
    pub(super) fn remove(&mut self, number: usize, mask: u64) {
        self.masks[number] &= !mask;
    }

    /// Joins segments of the same state, and drops empty ones.
    #[inline]
    pub(super) fn tidy(&mut self) {
        let mut kept = 0;
        for number in 0..self.len {
            let (mask, state) = (self.masks[number], self.states[number]);
            if mask == 0 {
                continue;
            }
            match self.states[..kept].iter().position(|&other| other == state) {
                Some(at) => self.masks[at] |= mask,
                None => {
                    (self.masks[kept], self.states[kept]) = (mask, state);
                    kept += 1;
                }
            }
        }
        self.len = kept;
    }
}

const WIDTH: usize = 4;

#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    masks: [u64; WIDTH],
    states: [StateId; WIDTH],
    next: Chain,
    len: u32,
}

/// A chain of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chain(pub(super) u32);

impl Chain {
    pub(super) const EMPTY: Chain = Chain(0);

    #[inline]
    fn index(self) -> usize {
        self.0 as usize
    }
}

const EMPTY_CHUNK: Chunk =
    Chunk { masks: [0; WIDTH], states: [StateId::UNTOUCHED; WIDTH], next: Chain::EMPTY, len: 0 };

/// The chains of all lines.
pub(super) struct Segments {
    /// The first is not used.
    chunks: Vec<Chunk>,
    free: Chain,
}

impl Segments {
    pub(super) fn new() -> Segments {
        Segments { chunks: vec![EMPTY_CHUNK], free: Chain::EMPTY }
    }

    /// The first chunk of a chain.
    #[inline]
    pub(super) fn chunk(&self, chain: Chain) -> *const Chunk {
        &raw const self.chunks[chain.index()]
    }

    /// The segments of a chain.
    pub(super) fn iter(&self, mut chain: Chain) -> impl Iterator<Item = (u64, StateId)> {
        let chunks = std::iter::from_fn(move || {
            let chunk = (chain != Chain::EMPTY).then(|| &self.chunks[chain.index()])?;
            chain = chunk.next;
            Some(chunk)
        });
        chunks.flat_map(|chunk| {
            let len = chunk.len as usize;
            chunk.masks[..len].iter().copied().zip(chunk.states[..len].iter().copied())
        })
    }

    /// Adds the segments of a chain to `split`.
    #[inline]
    pub(super) fn load(&self, mut chain: Chain, split: &mut Split) {
        while chain != Chain::EMPTY {
            let chunk = &self.chunks[chain.index()];
            // Copying all four is quicker than finding out how many there are.
            split.masks[split.len..split.len + WIDTH].copy_from_slice(&chunk.masks);
            split.states[split.len..split.len + WIDTH].copy_from_slice(&chunk.states);
            split.len += chunk.len as usize;
            chain = chunk.next;
        }
    }

    /// Puts the segments of `split`, but for the first, in the place of those of a chain. Returns where they are now.
    #[inline]
    pub(super) fn store(&mut self, chain: Chain, split: &Split) -> Chain {
        if split.len <= 1 {
            self.release(chain);
            return Chain::EMPTY;
        }
        let head = self.or_new(chain);
        let mut at = head;
        let mut from = 1;
        loop {
            let chunk = &mut self.chunks[at.index()];
            chunk.masks.copy_from_slice(&split.masks[from..from + WIDTH]);
            chunk.states.copy_from_slice(&split.states[from..from + WIDTH]);
            chunk.len = WIDTH.min(split.len - from) as u32;
            from += WIDTH;
            if from >= split.len {
                break;
            }
            let next = self.or_new(self.chunks[at.index()].next);
            self.chunks[at.index()].next = next;
            at = next;
        }
        let surplus = std::mem::replace(&mut self.chunks[at.index()].next, Chain::EMPTY);
        self.release(surplus);
        head
    }

    /// The chain, or a chunk to begin one with.
    #[inline]
    fn or_new(&mut self, chain: Chain) -> Chain {
        if chain != Chain::EMPTY {
            return chain;
        }
        if self.free == Chain::EMPTY {
            self.chunks.push(EMPTY_CHUNK);
            return Chain((self.chunks.len() - 1) as u32);
        }
        let chunk = self.free;
        self.free = std::mem::replace(&mut self.chunks[chunk.index()].next, Chain::EMPTY);
        chunk
    }

    #[inline]
    pub(super) fn release(&mut self, mut chain: Chain) {
        while chain != Chain::EMPTY {
            let chunk = &mut self.chunks[chain.index()];
            chunk.len = 0;
            let next = std::mem::replace(&mut chunk.next, self.free);
            self.free = chain;
            chain = next;
        }
    }

    pub(super) fn clear(&mut self) {
        self.chunks.truncate(1);
        self.free = Chain::EMPTY;
    }

    /// The states of all segments.
    pub(super) fn states_mut(&mut self) -> impl Iterator<Item = &mut StateId> {
        self.chunks.iter_mut().flat_map(|chunk| chunk.states[..chunk.len as usize].iter_mut())
    }

    pub(super) fn memory(&self) -> usize {
        self.chunks.capacity() * size_of::<Chunk>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many segments of one byte each, all of different states.
    fn split(count: u32) -> Split {
        let mut split = Split::EMPTY;
        (0..count).for_each(|at| split.add(1 << at, StateId::test(at)));
        split
    }

    fn loaded(all: &Segments, chain: Chain) -> Vec<(u64, StateId)> {
        let mut split = Split::EMPTY;
        split.start(1, StateId::test(0));
        all.load(chain, &mut split);
        (0..split.len()).map(|at| (split.mask(at), split.state(at))).collect()
    }

    fn segments(count: u32) -> Vec<(u64, StateId)> {
        (0..count).map(|at| (1 << at, StateId::test(at))).collect()
    }

    #[test]
    fn chains_grow_shrink_and_are_used_again() {
        let mut all = Segments::new();
        let mut chain = Chain::EMPTY;
        for count in [2, 5, 6, 64, 10, 9, 1, 3] {
            chain = all.store(chain, &split(count));
            assert_eq!(loaded(&all, chain), segments(count));
            assert_eq!(all.states_mut().count() as u32, count - 1);
        }
        assert_eq!(all.chunks.len(), 1 + 16);
        let other = all.store(Chain::EMPTY, &split(61));
        assert_eq!((loaded(&all, chain), loaded(&all, other)), (segments(3), segments(61)));
        assert_eq!(all.chunks.len(), 1 + 16);
        all.clear();
        assert_eq!(all.states_mut().count(), 0);
    }

    #[test]
    fn bytes_change_their_states() {
        let [a, b, c] = [1, 2, 3].map(StateId::test);
        let mut split = Split::EMPTY;
        split.start(0b1111, a);
        split.change(0, 0b0011, b);
        split.add(0b1_0000, b);
        split.tidy();
        assert_eq!((split.mask(0), split.mask(1), split.len()), (0b1100, 0b1_0011, 2));
        split.change(1, 0b1_0011, c);
        split.change(0, 0b1100, c);
        split.tidy();
        assert_eq!((split.mask(0), split.state(0), split.len()), (0b1_1111, c, 1));
        split.remove(0, 0b1_1111);
        split.tidy();
        assert_eq!(split.len(), 0);
    }
}
