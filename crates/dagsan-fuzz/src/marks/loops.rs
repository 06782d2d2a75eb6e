//! The reference: loops.

use super::ast::{Expr, Fold, Iter, Loop, Stmt, Ty};
use super::interpret::{Refused, Run, Stop};
use super::memory::{Pointer, apart, fold, make, spread};

/// What a round has come to.
enum Round {
    On,
    Over,
}

impl Run<'_> {
    pub fn run_loop(&mut self, kind: &Loop, body: &[Stmt]) -> Result<(), Stop> {
        match kind {
            Loop::For { var, from, to, step, reversed, inclusive } => {
                let (from, to) = (self.expr(from)?, self.expr(to)?);
                let to = to + usize::from(*inclusive);
                if to > 1 << 20 {
                    return Err(Refused::TooLong.into());
                }
                let mut all: Vec<usize> = (from..to).collect();
                if *reversed {
                    all.reverse();
                }
                for value in all.into_iter().step_by(*step) {
                    self.set(*var, value);
                    if let Round::Over = self.round(body)? {
                        break;
                    }
                }
            }
            Loop::While { var, from, to, step, bits, down, until_equal } => {
                let mask = if *bits == 64 { usize::MAX } else { (1 << bits) - 1 };
                let mut value = self.expr(from)? & mask;
                loop {
                    let to = self.expr(to)? & mask;
                    let goes_on = match (until_equal, down) {
                        (true, _) => value != to,
                        (false, false) => value < to,
                        (false, true) => value > to,
                    };
                    if !goes_on {
                        break;
                    }
                    self.set(*var, value);
                    if let Round::Over = self.round(body)? {
                        break;
                    }
                    let next = if *down { value.wrapping_sub(*step) } else { value.wrapping_add(*step) };
                    value = next & mask;
                }
            }
            Loop::Walk { walker, base, ty, from, to, step, down } => {
                let base = self.base(base)?;
                self.walk(*walker, base, *ty, [from, to], *step, *down, body)?;
            }
            Loop::Iter { var, kind, base, ty, length } => {
                let (base, length) = (self.base(base)?, self.expr(length)?);
                self.memory.align(base, *ty)?;
                self.memory.peek(base, length * ty.size())?;
                self.iterate(*var, kind, base, *ty, length, body)?;
            }
        }
        Ok(())
    }

    fn set(&mut self, var: usize, value: usize) {
        if self.vars.len() <= var {
            self.vars.resize(var + 1, 0);
        }
        self.vars[var] = value;
    }

    fn round(&mut self, body: &[Stmt]) -> Result<Round, Stop> {
        self.step()?;
        match self.block(body) {
            Ok(()) | Err(Stop::Continue) => Ok(Round::On),
            Err(Stop::Break) => Ok(Round::Over),
            Err(other) => Err(other),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a loop")]
    fn walk(
        &mut self,
        walker: usize,
        base: Pointer,
        ty: Ty,
        [from, to]: [&Expr; 2],
        step: usize,
        down: bool,
        body: &[Stmt],
    ) -> Result<(), Stop> {
        let (from, to) = (self.expr(from)?, self.expr(to)?);
        let (low, high) = (self.element(base, ty, from)?, self.element(base, ty, to)?);
        let bytes = (step * ty.size()) as i128;
        let mut at = if down { high } else { low };
        while if down { at > low } else { at < high } {
            if down {
                at = self.memory.offset(at, -bytes)?;
            }
            if self.walkers.len() <= walker {
                self.walkers.resize(walker + 1, at);
            }
            self.walkers[walker] = at;
            if let Round::Over = self.round(body)? {
                break;
            }
            if !down {
                at = self.memory.offset(at, bytes)?;
            }
        }
        Ok(())
    }

    fn iterate(
        &mut self,
        var: usize,
        kind: &Iter,
        base: Pointer,
        ty: Ty,
        length: usize,
        body: &[Stmt],
    ) -> Result<(), Stop> {
        // The elements that each round reads or writes.
        let mut rounds: Vec<Vec<usize>> = match kind {
            Iter::Step(step) => (0..length).step_by(*step).map(|at| vec![at]).collect(),
            Iter::Chunks(size) => {
                (0..length).step_by(*size).map(|at| (at..length.min(at + size)).collect()).collect()
            }
            Iter::ChunksExact(size) => {
                (0..length / size).map(|at| (at * size..(at + 1) * size).collect()).collect()
            }
            Iter::Windows(size) => {
                (0..(length + 1).saturating_sub(*size)).map(|at| vec![at, at + size - 1]).collect()
            }
            _ => (0..length).map(|at| vec![at]).collect(),
        };
        if *kind == Iter::Reversed {
            rounds.reverse();
        }
        let other = match kind {
            Iter::Zip(other) => {
                let other = self.base(other)?;
                apart(base, other, length * ty.size())?;
                self.memory.align(other, ty)?;
                self.memory.peek(other, length * ty.size())?;
                Some(other)
            }
            _ => None,
        };
        let mut found = length;
        for (number, elements) in rounds.iter().enumerate() {
            self.set(var, number);
            for &element in elements {
                let at = self.element(base, ty, element)?;
                if *kind == Iter::Mut {
                    self.memory.write(at, &make(spread(number) ^ self.hash[0], ty.size()))?;
                    continue;
                }
                let from = match other {
                    Some(other) => self.element(other, ty, element)?,
                    None => at,
                };
                let value = fold(&self.memory.read(from, ty.size())?);
                if *kind == Iter::Position {
                    if value % 5 == 4 {
                        found = number;
                    }
                } else {
                    self.fold(value, Fold::Sum(1));
                }
                if other.is_some() {
                    self.memory.write(at, &make(value.wrapping_mul(3).wrapping_add(1), ty.size()))?;
                }
            }
            if found < length {
                break;
            }
            if let Round::Over = self.round(body)? {
                break;
            }
        }
        if *kind == Iter::Position {
            self.fold(found as u64, Fold::Chain);
        }
        Ok(())
    }
}
