//! Ranges where loops are left: the code for what `sink` has found.
//!
//! Each edge out of a loop gets blocks of its own, in which the range is computed and marked:
//!
//! ```text
//!   from ──► start, length
//!            are they few bytes, and all known? ──────────────► … the next range … ──► to
//!            can nothing be parallel? ────────────────────────►
//!            few bytes: as a mark in line that is new ────────►
//!            else: is any byte new? then call the runtime ────►
//! ```

use std::collections::BTreeMap;

use crate::counts::Counted;
use crate::emit::Emitter;
use crate::llvm::{Block, Value, opcode, type_kind};
use crate::read::Found;
use crate::sink::Sunk;
use crate::sum::Sum;

/// So many bytes have their bits in a word of the table, wherever they are.
const SHORT: u64 = 57;

/// Which bytes of a range are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Whole,
    /// The first `width` of each `by`, which are more.
    Strided {
        by: u64,
        width: u64,
    },
}

impl Shape {
    /// The bits of the bytes.
    fn bits(self) -> u64 {
        match self {
            Shape::Whole => u64::MAX,
            Shape::Strided { by, width } => {
                (0..64).filter(|bit| bit % by < width).fold(0, |bits, bit| bits | 1 << bit)
            }
        }
    }
}

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
            self.frozen.borrow_mut().clear();
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
        self.count(Counted::Range);
        let first = self.sum(found, &one.first);
        let guarded = |width: Value| self.guarded(found, one, width);
        match (one.stride.as_constant(), one.width.as_constant()) {
            (Some(0), _) => {
                let width = self.sum(found, &one.width);
                let length = match &one.counter {
                    Some(counter) if !included => {
                        let variable = self.sum(found, &Sum::leaf(counter.phi));
                        let none = llvm.equal(builder, variable, self.sum(found, &counter.first));
                        llvm.select(builder, none, self.word(0), width)
                    }
                    _ => width,
                };
                self.length(found, block, one, first, guarded(length), Shape::Whole);
            }
            (Some(stride), Some(width)) => {
                let now = self.sum(found, &one.now);
                let (by, width) = (stride.unsigned_abs(), width as u64);
                // The lowest address; the distance between the lowest and the highest, or one stride more.
                let (low, distance) = match (stride > 0, included) {
                    (true, _) => (first, llvm.subtract(builder, now, first)),
                    (false, true) => (now, llvm.subtract(builder, first, now)),
                    (false, false) => {
                        (llvm.add(builder, now, self.word(by)), llvm.subtract(builder, first, now))
                    }
                };
                let length = if included {
                    llvm.add(builder, distance, self.word(width))
                } else if width == by {
                    distance
                } else {
                    let none = llvm.equal(builder, now, first);
                    let some = llvm.add(builder, distance, self.word(width.wrapping_sub(by)));
                    llvm.select(builder, none, self.word(0), some)
                };
                let shape = if width < by { Shape::Strided { by, width } } else { Shape::Whole };
                self.length(found, block, one, low, guarded(length), shape);
            }
            _ => {
                let count = self.iterations(found, one, first);
                let count = if included { llvm.add(builder, count, self.word(1)) } else { count };
                let (stride, width) = (self.sum(found, &one.stride), self.sum(found, &one.width));
                let first = llvm.to_pointer(builder, first, self.pointer);
                self.strided(one.kind, first, stride, count, guarded(width));
            }
        }
    }

    /// A width, or none if guards have kept the marks from being executed.
    fn guarded(&self, found: &Found, one: &Sunk, width: Value) -> Value {
        let llvm = self.llvm;
        one.guards.iter().fold(width, |width, guard| {
            let end = llvm.terminator(found.blocks[guard.block]);
            let Some(condition) = end.and_then(|end| llvm.operand(end, 0)) else { return width };
            let condition = self.frozen(condition);
            let none = self.word(0);
            let [yes, no] = if guard.holds { [width, none] } else { [none, width] };
            llvm.select(self.builder, condition, yes, no)
        })
    }

    /// How many iterations have been completed.
    fn iterations(&self, found: &Found, one: &Sunk, first: Value) -> Value {
        let (llvm, builder) = (self.llvm, self.builder);
        let (now, first, step) = match (&one.counter, one.stride.as_constant()) {
            (_, Some(stride)) if stride != 0 => (self.sum(found, &one.now), first, stride),
            (Some(counter), _) => {
                let variable = self.sum(found, &Sum::leaf(counter.phi));
                (variable, self.sum(found, &counter.first), counter.step)
            }
            // `sink` makes no such range.
            (None, _) => return self.word(0),
        };
        let distance = llvm.subtract(builder, now, first);
        llvm.divide(builder, distance, self.word(step as u64))
    }

    /// A range of a length that the program computes.
    fn length(&self, found: &Found, block: Block, one: &Sunk, low: Value, length: Value, shape: Shape) {
        let (llvm, builder) = (self.llvm, self.builder);
        let place = found.simple[one.members[0]].instruction;
        let known = self.shifted(self.entries(one.kind, low, 64), low);
        let by = llvm.and(builder, length, self.word(63));
        let beyond = llvm.shift_left(builder, self.word(u64::MAX), by);
        let bits = llvm.and(builder, llvm.not(builder, beyond), self.word(shape.bits()));
        let new = llvm.and(builder, bits, llvm.not(builder, known));
        let is_short = llvm.is_at_most(builder, length, self.word(SHORT));
        let is_known = llvm.and(builder, llvm.equal(builder, new, self.word(0)), is_short);

        let Some(end) = llvm.terminator(block) else { return };
        let head = self.split(block, end);
        let [cold, which, short, long, call] = [(); 5].map(|()| llvm.insert_block(self.context, block));
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
        self.missed_bits(one.kind, pointer(low), bits);
        llvm.jump(builder, block);
        start(long);
        match shape {
            Shape::Whole => {
                let new = self.is_new(one.kind, pointer(low), length);
                let none = llvm.equal(builder, new, self.word(0));
                self.usually(none, block, call);
                start(call);
                self.range(one.kind, pointer(low), length);
            }
            Shape::Strided { by, width } => {
                llvm.jump(builder, call);
                start(call);
                let between = llvm.subtract(builder, length, self.word(width));
                let count = llvm.add(builder, llvm.divide(builder, between, self.word(by)), self.word(1));
                self.strided(one.kind, pointer(low), self.word(by), count, self.word(width));
            }
        }
        llvm.jump(builder, block);
    }

    /// Computes a sum.
    fn sum(&self, found: &Found, sum: &Sum) -> Value {
        let (llvm, builder) = (self.llvm, self.builder);
        let mut total = None;
        for &(product, factor) in &sum.terms {
            let parts = product.leaves().map(|leaf| self.leaf(found, leaf));
            let parts = parts.chain((factor != 1).then(|| self.word(factor as u64)));
            let value = parts.reduce(|left, right| llvm.multiply(builder, left, right));
            total = match (total, value) {
                (Some(total), Some(value)) => Some(llvm.add(builder, total, value)),
                (total, value) => total.or(value),
            };
        }
        let constant = self.word(sum.constant as u64);
        match total {
            None => constant,
            Some(total) if sum.constant == 0 => total,
            Some(total) => llvm.add(builder, total, constant),
        }
    }

    /// A value that sums are made of, as a number.
    fn leaf(&self, found: &Found, leaf: usize) -> Value {
        let llvm = self.llvm;
        let value = self.frozen(self.current(found.values[leaf]));
        match llvm.type_kind(llvm.type_of(value)) {
            type_kind::POINTER => llvm.to_integer(self.builder, value, self.word),
            _ => value,
        }
    }

    /// A value as it is on this edge, even if it has none: LLVM computes what may overflow ahead of time, and the program would
    /// have looked at the result only where it does not. Each is fixed once, so that differences of addresses stay what they are.
    fn frozen(&self, value: Value) -> Value {
        let mut frozen = self.frozen.borrow_mut();
        *frozen.entry(value).or_insert_with(|| self.llvm.freeze(self.builder, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stride_has_the_first_bytes_of_each_step() {
        assert_eq!(Shape::Whole.bits(), u64::MAX);
        assert_eq!(Shape::Strided { by: 8, width: 4 }.bits(), 0x0f0f_0f0f_0f0f_0f0f);
        assert_eq!(Shape::Strided { by: 24, width: 1 }.bits(), 1 | 1 << 24 | 1 << 48);
        assert_eq!(Shape::Strided { by: 1 << 20, width: 8 }.bits(), 0xff);
    }
}
