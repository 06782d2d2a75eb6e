//! Marks in line: the fast path of a hook as instructions.
//!
//! ```text
//!   head:   …                                          the instructions before the access
//!           known = table[address >> 3] >> (address & 7)
//!           if known has all bits: goto tail
//!   new:    if this thread may not set bits: goto other
//!           line = table[address >> 6]                   a word
//!           if no bit of it is set: goto miss            the line is not in the log of the strand
//!           table[address >> 6] = line | bits; goto tail
//!   other:  if nothing can be parallel: goto tail
//!   miss:   call the runtime, which keeps all registers but four
//!   tail:   the access …
//! ```
//!
//! So the runtime is called for the first access of a strand to each line. The bits of a line are written as one word, and read as
//! such before: the processor passes on to a load what is still being stored only if the store has all of it.
//!
//! LLVM's C interface cannot split a block, so the block keeps its end and becomes the tail, and what comes before the access moves
//! to a new one: its predecessors are led there, and the phis of its successors stay as they are.

use crate::emit::Emitter;
use crate::llvm::{Block, Value};
use crate::model::Kind;
use crate::tables;

/// The worker's tables: bytes that the strand has seen, and has written.
const TABLES: [usize; 2] = [tables::SEEN, tables::WRITTEN];

/// What is asked of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// How many bits of the table are loaded.
    pub bits: u32,
    /// Are the bits of the access somewhere in them, and not at their start?
    pub shifted: bool,
}

/// What to ask for bytes at an address that is so aligned; none if they are too many.
pub fn question(bytes: u64, alignment: u64) -> Option<Question> {
    let (bits, shifted) = match bytes {
        1..=64 if alignment >= 8 => (bytes.next_power_of_two().max(8) as u32, false),
        // In one entry of the table.
        1 => (8, true),
        2 | 4 if alignment >= bytes => (8, true),
        // Up to seven bits more than the access has.
        2..=9 => (16, true),
        10..=25 => (32, true),
        26..=57 => (64, true),
        _ => return None,
    };
    Some(Question { bits, shifted })
}

/// The bytes of an access.
#[derive(Debug, Clone, Copy)]
pub struct Bytes {
    pub pointer: Value,
    /// How many, 64 at most.
    pub bytes: u64,
    /// What the pointer is a multiple of.
    pub alignment: u64,
}

impl Bytes {
    fn may_cross_lines(&self) -> bool {
        self.alignment < self.bytes.next_power_of_two()
    }
}

impl Emitter {
    /// A mark before an instruction, for bytes at a pointer that is so aligned. Whether there is a question for them has been asked.
    pub fn in_line(&self, before: Value, kind: Kind, at: Bytes, question: Question) {
        let llvm = self.llvm;
        let tail = llvm.block_of(before);
        let head = self.split(tail, before);
        let [new, line, set, other, miss] = [(); 5].map(|()| llvm.insert_block(self.context, tail));
        let start = |block: Block| {
            llvm.position_at_end(self.builder, block);
            self.locate(before);
        };

        start(head);
        let address = llvm.to_integer(self.builder, at.pointer, self.word);
        let mut known = self.entries(kind, address, question.bits);
        if question.shifted {
            known = llvm.extend(self.builder, known, self.word);
            known = self.shifted(known, address);
        }
        let bits = u64::MAX >> (64 - at.bytes);
        let all = llvm.constant(llvm.type_of(known), bits);
        let known = llvm.and(self.builder, known, all);
        let is_known = llvm.equal(self.builder, known, all);
        self.usually(is_known, tail, new);

        start(new);
        llvm.branch(self.builder, self.sets_bits(), line, other);

        start(line);
        let place = llvm.and(self.builder, address, self.word(63));
        let word = self.line(kind, address);
        let known = self.hidden_load(self.word, word);
        let mut is_new = llvm.equal(self.builder, known, self.word(0));
        if at.may_cross_lines() {
            let crosses = llvm.is_at_most(self.builder, self.word(65 - at.bytes), place);
            is_new = llvm.or(self.builder, is_new, crosses);
        }
        llvm.branch(self.builder, is_new, miss, set);

        start(set);
        let bits = llvm.shift_left(self.builder, self.word(bits), place);
        self.settle(llvm.store(self.builder, llvm.or(self.builder, known, bits), word));
        if kind == Kind::Write {
            let word = self.line(Kind::Read, address);
            let seen = self.hidden_load(self.word, word);
            self.settle(llvm.store(self.builder, llvm.or(self.builder, seen, bits), word));
        }
        llvm.jump(self.builder, tail);

        start(other);
        self.if_active(tail, miss);

        start(miss);
        self.missed(kind, at.pointer, at.bytes);
        llvm.jump(self.builder, tail);
    }

    /// The word of a table for the line of an address.
    fn line(&self, kind: Kind, address: Value) -> Value {
        let llvm = self.llvm;
        let word = llvm.shift_right(self.builder, address, self.word(3));
        let word = llvm.and(self.builder, word, self.word(!7));
        self.of_table(kind, word)
    }

    /// Goes on to one of two blocks: can anything be parallel?
    pub(crate) fn if_active(&self, no: Block, yes: Block) {
        let llvm = self.llvm;
        let byte = llvm.integer(self.context, 8);
        let active = self.hidden_load(byte, self.active());
        let idle = llvm.equal(self.builder, active, llvm.constant(byte, 0));
        llvm.branch(self.builder, idle, no, yes);
    }

    /// So many bits of a table, from the entry of an address on.
    pub(crate) fn entries(&self, kind: Kind, address: Value, bits: u32) -> Value {
        let llvm = self.llvm;
        let entry = llvm.shift_right(self.builder, address, self.word(3));
        self.hidden_load(llvm.integer(self.context, bits), self.of_table(kind, entry))
    }

    /// What is so far in a table.
    fn of_table(&self, kind: Kind, offset: Value) -> Value {
        let table = self.word(TABLES[kind as usize] as u64);
        self.of_worker(self.llvm.add(self.builder, offset, table))
    }

    /// A word of entries from the bit of the address on.
    pub(crate) fn shifted(&self, entries: Value, address: Value) -> Value {
        let by = self.llvm.and(self.builder, address, self.word(7));
        self.llvm.shift_right(self.builder, entries, by)
    }

    /// Moves what stands before an instruction to a block of its own, which takes the place of the first part.
    pub(crate) fn split(&self, block: Block, at: Value) -> Block {
        let llvm = self.llvm;
        let head = llvm.insert_block(self.context, block);
        llvm.position_at_end(self.builder, head);
        // What is moved keeps its place in the source.
        llvm.set_builder_location(self.builder, None);
        while let Some(first) = llvm.first_instruction(block).filter(|&first| first != at) {
            llvm.remove(first);
            llvm.insert(self.builder, first);
        }
        // Without its end the block has no successors, whose phis would be changed with the rest.
        if let Some(end) = llvm.terminator(block) {
            llvm.remove(end);
            llvm.replace_all_uses(llvm.block_as_value(block), llvm.block_as_value(head));
            llvm.position_at_end(self.builder, block);
            llvm.insert(self.builder, end);
        }
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every access finds all of its bits in what is loaded.
    #[test]
    fn what_is_loaded_has_all_bits_of_the_access() {
        for bytes in 1..=64u64 {
            for alignment in [1, 2, 4, 8, 16, 32] {
                let Some(question) = question(bytes, alignment) else {
                    assert!(bytes > 57, "{bytes}");
                    continue;
                };
                for address in (0..64u64).filter(|address| address % alignment == 0) {
                    let first = if question.shifted { address & 7 } else { 0 };
                    assert_eq!(first, address & 7, "{bytes} bytes at {address}");
                    assert!(first + bytes <= u64::from(question.bits), "{bytes} bytes at {address}");
                }
            }
        }
    }

    #[test]
    fn aligned_words_need_no_shift() {
        assert_eq!(question(8, 8), Some(Question { bits: 8, shifted: false }));
        assert_eq!(question(16, 8), Some(Question { bits: 16, shifted: false }));
        assert_eq!(question(24, 8), Some(Question { bits: 32, shifted: false }));
        assert_eq!(question(4, 4), Some(Question { bits: 8, shifted: true }));
        assert_eq!(question(4, 2), Some(Question { bits: 16, shifted: true }));
        assert_eq!(question(64, 4), None);
    }
}
