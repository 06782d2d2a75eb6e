//! Lines of which whole words were treated differently: a state for each word.
//!
//! Arrays are of words of four bytes, or of multiples. Where their elements were treated each in its own way, there are as many segments as
//! elements, and to look through them all for each access costs the square. A block has all states of a line side by side: an access to some
//! words picks them by their places, and words of one state are found by comparing all sixteen at once.
//!
//! ```text
//!   block   │ state of word 0 │ … │ state of word 15 │        64 bytes, one line of the cache
//!
//!   bytes   1111 0000 0000 1111 …      a mask of bytes that is one of whole words,
//!   words   1001 …                     and the words, a bit each
//! ```

use super::states::StateId;

/// Words per line.
const WORDS: usize = 16;
const BYTES_PER_WORD: u32 = 4;
const FIRST_BYTES: u64 = 0x1111_1111_1111_1111;

/// The words that a mask of bytes has, a bit each; `None` if it has a part of a word.
#[inline]
pub(super) fn words_of(bytes: u64) -> Option<u16> {
    let first = bytes & FIRST_BYTES;
    if first * 0xf != bytes {
        return None;
    }
    let pairs = (first | first >> 3) & 0x0303_0303_0303_0303;
    let fours = (pairs | pairs >> 6) & 0x000f_000f_000f_000f;
    let eights = (fours | fours >> 12) & 0x0000_00ff_0000_00ff;
    let words = (eights | eights >> 24) as u16;
    debug_assert_eq!(bytes_of(words), bytes);
    Some(words)
}

/// The bytes of these words.
#[inline]
pub(super) fn bytes_of(words: u16) -> u64 {
    let eights = (u64::from(words) | u64::from(words) << 24) & 0x0000_00ff_0000_00ff;
    let fours = (eights | eights << 12) & 0x000f_000f_000f_000f;
    let pairs = (fours | fours << 6) & 0x0303_0303_0303_0303;
    ((pairs | pairs << 3) & FIRST_BYTES) * 0xf
}

/// The states of a line's words. Those of no segment are untouched.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Words([StateId; WORDS]);

const _: () = assert!(WORDS as u64 * BYTES_PER_WORD as u64 == crate::LINE_BYTES);

impl Words {
    pub(super) const UNTOUCHED: Words = Words([StateId::UNTOUCHED; WORDS]);

    /// These words get a state. Without branches: the compiler makes vectors of it.
    #[inline]
    pub(super) fn set(&mut self, words: u16, state: StateId) {
        for (number, word) in self.0.iter_mut().enumerate() {
            *word = if words & 1 << number != 0 { state } else { *word };
        }
    }

    /// The words that are in a state.
    #[inline]
    pub(super) fn alike(&self, state: StateId) -> u16 {
        self.0.iter().enumerate().fold(0, |all, (number, &word)| all | u16::from(word == state) << number)
    }

    /// Some of the words, and their state: all that are in the state of the first of `words`. `None` if there are none.
    #[inline]
    pub(super) fn first_of(&self, words: u16) -> Option<(u16, StateId)> {
        let state = *self.0.get(words.trailing_zeros() as usize)?;
        Some((words & self.alike(state), state))
    }

    #[inline]
    pub(super) fn touched(&self) -> u16 {
        !self.alike(StateId::UNTOUCHED)
    }

    /// The segments: the words of each state.
    pub(super) fn segments(&self) -> impl Iterator<Item = (u16, StateId)> {
        let mut rest = self.touched();
        std::iter::from_fn(move || {
            let (words, state) = self.first_of(rest)?;
            rest &= !words;
            Some((words, state))
        })
    }
}

/// The number of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block(pub(super) u32);

/// The blocks of all lines.
#[derive(Default)]
pub(super) struct Blocks {
    /// Those that are free are untouched.
    blocks: Vec<Words>,
    free: Vec<Block>,
}

impl Blocks {
    #[inline]
    pub(super) fn get(&self, block: Block) -> &Words {
        &self.blocks[block.0 as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, block: Block) -> &mut Words {
        &mut self.blocks[block.0 as usize]
    }

    /// A block of which no word is touched.
    pub(super) fn new_block(&mut self) -> Block {
        self.free.pop().unwrap_or_else(|| {
            self.blocks.push(Words::UNTOUCHED);
            Block((self.blocks.len() - 1) as u32)
        })
    }

    pub(super) fn release(&mut self, block: Block) {
        *self.get_mut(block) = Words::UNTOUCHED;
        self.free.push(block);
    }

    pub(super) fn clear(&mut self) {
        self.blocks.clear();
        self.free.clear();
    }

    /// The states of all words.
    pub(super) fn states_mut(&mut self) -> impl Iterator<Item = &mut StateId> {
        self.blocks.iter_mut().flat_map(|words| words.0.iter_mut())
    }

    pub(super) fn memory(&self) -> usize {
        self.blocks.capacity() * size_of::<Words>() + self.free.capacity() * size_of::<Block>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_bytes_and_bytes_are_words() {
        for words in 0..=u16::MAX {
            let bytes = bytes_of(words);
            let plain =
                (0..64).filter(|byte| words >> (byte / 4) & 1 == 1).fold(0, |all, byte| all | 1 << byte);
            assert_eq!(bytes, plain);
            assert_eq!(words_of(bytes), Some(words));
        }
        for parts in [1, 0b111, 0b1_1110, u64::MAX >> 1, u64::MAX << 1] {
            assert_eq!(words_of(parts), None);
        }
    }

    #[test]
    fn words_of_one_state_are_one_segment() {
        let [a, b] = [1, 2].map(StateId::test);
        let mut words = Words::UNTOUCHED;
        assert_eq!((words.touched(), words.segments().count()), (0, 0));
        words.set(0b1000_0000_0000_0110, a);
        words.set(0b1_0010, b);
        assert_eq!(words.segments().collect::<Vec<_>>(), [(0b1_0010, b), (0b1000_0000_0000_0100, a)]);
        assert_eq!(words.first_of(0b101), Some((0b101 & !words.touched(), StateId::UNTOUCHED)));
        assert_eq!(words.first_of(0), None);
    }

    #[test]
    fn a_free_block_is_used_again_and_empty() {
        let mut blocks = Blocks::default();
        let block = blocks.new_block();
        blocks.get_mut(block).set(3, StateId::test(1));
        blocks.release(block);
        assert_eq!(blocks.new_block(), block);
        assert_eq!(blocks.get(block).touched(), 0);
    }
}
