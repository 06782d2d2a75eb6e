//! Ranges where loops are left: the code for what `sink` has found.
//!
//! Each edge out of a loop gets blocks of its own, in which the range is computed and marked:
//!
//! ```text
//!   from ──► start, length
//!            are they few bytes, and all known? ──────────────► … the next range … ──► to
//!            can nothing be parallel? ────────────────────────►
//!            few bytes: as a mark in line that is new ────────►
//!            else: call the runtime ──────────────────────────►
//! ```

use std::collections::BTreeMap;

use crate::emit::Emitter;
use crate::linear::Linear;
use crate::llvm::{Block, Value, opcode, type_kind};
use crate::read::Found;
use crate::sink::Sunk;

/// So many bytes have their bits in a word of the table, wherever they are.
const SHORT: u64 = 57;

impl Emitter {
    /// All ranges of a function.
    pub fn exits(&self, found: &Found, sunk: &[Sunk]) {
        let mut edges: BTreeMap<(usize, usize), Vec<(&Sunk, bool)>> = BTreeMap::new();
        for one in sunk {
            for exit in &one.exits {
                edges.entry((exit.from, exit.to)).or_default().push((one, exit.included));
            }
        }
        for ((from, to), ranges) in edges {
            let (from, to) = (found.blocks[from], found.blocks[to]);
            let last = self.on_edge(from, to);
            for (one, included) in ranges {
                if let Some(&member) = one.members.first() {
                    self.position_in(last, found.simple[member].instruction);
                    self.sunk(found, last, one, included);
                }
            }
        }
    }

    /// Puts a block on an edge, which is there once. It stays the last one on it. Phis that are made anew stay until
    /// [`Emitter::forget`], so that others are not taken for them.
    fn on_edge(&self, from: Block, to: Block) -> Block {
        let llvm = self.llvm;
        let between = llvm.insert_block(self.context, to);
        if let Some(end) = llvm.terminator(from) {
            let edge = (0..llvm.successors(end)).find(|&index| llvm.successor(end, index) == to);
            if let Some(edge) = edge {
                llvm.set_successor(end, edge, between);
            }
        }
        // A phi cannot be told of another predecessor, so it is made anew.
        let mut next = llvm.first_instruction(to);
        while let Some(phi) = next
            && llvm.opcode(phi) == opcode::PHI
        {
            next = llvm.next_instruction(phi);
            if self.renewed.borrow().contains_key(&phi) {
                continue;
            }
            let incoming: Vec<(Value, Block)> = (0..llvm.incoming(phi))
                .map(|index| (llvm.incoming_value(phi, index), llvm.incoming_block(phi, index)))
                .map(|(value, block)| (value, if block == from { between } else { block }))
                .collect();
            llvm.position_before(self.builder, phi);
            self.locate(phi);
            let newer = llvm.phi(self.builder, llvm.type_of(phi), &incoming);
            llvm.replace_all_uses(phi, newer);
            self.renewed.borrow_mut().insert(phi, newer);
        }
        llvm.position_at_end(self.builder, between);
        llvm.jump(self.builder, to);
        between
    }

    /// The next instructions stand at the end of a block, and have the place of an instruction elsewhere.
    fn position_in(&self, block: Block, place: Value) {
        if let Some(end) = self.llvm.terminator(block) {
            self.llvm.position_before(self.builder, end);
        }
        self.locate(place);
    }

    /// One range, at the end of a block.
    fn sunk(&self, found: &Found, block: Block, one: &Sunk, included: bool) {
        let (llvm, builder) = (self.llvm, self.builder);
        let (first, now) = (self.sum(found, &one.first), self.sum(found, &one.now));
        // The lowest address; the distance between the lowest and the highest.
        let stride = one.stride.unsigned_abs();
        let (low, distance) = if one.stride >= 0 {
            (first, llvm.subtract(builder, now, first))
        } else {
            let low = if included { now } else { llvm.add(builder, now, self.word(stride)) };
            (low, llvm.subtract(builder, first, now))
        };
        let place = found.simple[one.members[0]].instruction;
        if one.width < stride {
            let count = llvm.divide(builder, distance, self.word(stride));
            let count = if included { llvm.add(builder, count, self.word(1)) } else { count };
            let low = llvm.to_pointer(builder, low, self.pointer);
            return self.strided(one.kind, low, self.word(stride), count, self.word(one.width));
        }
        let length = if included {
            llvm.add(builder, distance, self.word(one.width))
        } else if one.width == stride {
            distance
        } else {
            // Nothing before the first iteration; what stands still has no distance.
            let (a, b) = match &one.moves {
                Some((variable, first)) if stride == 0 => (self.sum(found, variable), self.sum(found, first)),
                _ => (now, first),
            };
            let none = llvm.equal(builder, a, b);
            let some = llvm.add(builder, distance, self.word(one.width - stride));
            llvm.select(builder, none, self.word(0), some)
        };
        self.length(block, one, place, low, length);
    }

    /// A range of a length that the program computes.
    fn length(&self, block: Block, one: &Sunk, place: Value, low: Value, length: Value) {
        let (llvm, builder) = (self.llvm, self.builder);
        let known = self.shifted(self.entries(one.kind, low, 64), low);
        let by = llvm.and(builder, length, self.word(63));
        let beyond = llvm.shift_left(builder, self.word(u64::MAX), by);
        let new = llvm.not(builder, llvm.or(builder, known, beyond));
        let is_short = llvm.is_at_most(builder, length, self.word(SHORT));
        let is_known = llvm.and(builder, llvm.equal(builder, new, self.word(0)), is_short);

        let Some(end) = llvm.terminator(block) else { return };
        let head = self.split(block, end);
        let [cold, which, short, long] = [(); 4].map(|()| llvm.insert_block(self.context, block));
        let start = |block: Block| {
            llvm.position_at_end(builder, block);
            self.locate(place);
        };
        start(head);
        self.usually(is_known, block, cold);
        start(cold);
        self.if_active(block, which);
        start(which);
        llvm.branch(builder, is_short, short, long);
        let pointer = |low| llvm.to_pointer(builder, low, self.pointer);
        start(short);
        self.missed_bits(one.kind, pointer(low), llvm.not(builder, beyond));
        llvm.jump(builder, block);
        start(long);
        self.range(one.kind, pointer(low), length);
        llvm.jump(builder, block);
    }

    /// Computes a sum.
    fn sum(&self, found: &Found, sum: &Linear) -> Value {
        let (llvm, builder) = (self.llvm, self.builder);
        let mut total = None;
        for &(leaf, factor) in &sum.terms {
            let value = self.current(found.values[leaf]);
            let value = match llvm.type_kind(llvm.type_of(value)) {
                type_kind::POINTER => llvm.to_integer(builder, value, self.word),
                _ => value,
            };
            let value = match factor {
                1 => value,
                factor => llvm.multiply(builder, value, self.word(factor as u64)),
            };
            total = Some(total.map_or(value, |total| llvm.add(builder, total, value)));
        }
        let constant = self.word(sum.constant as u64);
        match total {
            None => constant,
            Some(total) if sum.constant == 0 => total,
            Some(total) => llvm.add(builder, total, constant),
        }
    }
}
