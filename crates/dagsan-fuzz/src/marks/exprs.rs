//! The reference: numbers, conditions and places.

use super::ast::{Base, Cond, Expr, Fold, How, POINTER_COUNT, POINTERS, Place};
use super::interpret::{Refused, Run, Stop};
use super::memory::{Pointer, fold, make};

impl Run<'_> {
    pub fn expr(&mut self, expr: &Expr) -> Result<usize, Stop> {
        let overflow = Stop::from(Refused::Overflow);
        Ok(match expr {
            Expr::Const(number) => *number,
            Expr::Number(index) => self.function.input.numbers[*index],
            Expr::Var(var) => self.vars[*var],
            Expr::Add(a, b) => self.expr(a)?.checked_add(self.expr(b)?).ok_or(overflow)?,
            Expr::Sub(a, b) => self.expr(a)?.checked_sub(self.expr(b)?).ok_or(overflow)?,
            Expr::Mul(a, times) => self.expr(a)?.checked_mul(*times).ok_or(overflow)?,
            Expr::Rem(a, by) => self.expr(a)? % by,
            Expr::Load(place, by) => {
                let value = self.load(place)?;
                self.fold(value, Fold::Sum(1));
                (value % *by as u64) as usize
            }
        })
    }

    pub fn cond(&mut self, cond: &Cond) -> Result<bool, Stop> {
        Ok(match cond {
            Cond::Less(a, b) => self.expr(a)? < self.expr(b)?,
            Cond::Equal(a, b) => self.expr(a)? == self.expr(b)?,
            Cond::Flag(bit) => self.function.input.flags >> bit & 1 != 0,
            Cond::Data(place, less) => {
                let value = self.load(place)?;
                self.fold(value, Fold::Sum(1));
                value % 5 < *less
            }
        })
    }

    pub fn base(&mut self, base: &Base) -> Result<Pointer, Stop> {
        Ok(match base {
            Base::Argument(index) => Pointer { space: 0, at: self.function.input.pointers[*index] },
            Base::Walker(walker) => self.walkers[*walker],
            Base::Local(local) => Pointer { space: 1 + local, at: 0 },
            Base::Select(bit, a, b) => {
                let chosen = if self.function.input.flags >> bit & 1 != 0 { a } else { b };
                self.base(chosen)?
            }
            Base::Loaded(slot) => {
                let slot = self.expr(slot)? % POINTER_COUNT;
                let bytes = self.memory.read(Pointer { space: 0, at: POINTERS + slot * 8 }, 8)?;
                let value = fold(&bytes);
                self.fold(value, Fold::Sum(1));
                let at = value.wrapping_sub(self.memory.base) as usize;
                self.memory.peek(Pointer { space: 0, at: at.min(usize::MAX / 2) }, 0)?;
                Pointer { space: 0, at }
            }
        })
    }

    /// Where an access is.
    pub fn address(&mut self, place: &Place) -> Result<Pointer, Stop> {
        let (base, index) = (self.base(&place.base)?, self.expr(&place.index)?);
        if let How::Checked(length) = &place.how {
            let length = self.expr(length)?;
            self.memory.align(base, place.ty)?;
            self.memory.peek(base, length * place.ty.size())?;
            if index >= length {
                return Err(self.out_of_bounds());
            }
        }
        let unit = if place.in_bytes { 1 } else { place.ty.size() };
        let at = self.memory.offset(base, index as i128 * unit as i128)?;
        if place.how != How::Unaligned {
            self.memory.align(at, place.ty)?;
        }
        match place.how {
            How::Field(field) => self.memory.offset(at, place.ty.fields()[field].1 as i128),
            _ => Ok(at),
        }
    }

    pub fn load(&mut self, place: &Place) -> Result<u64, Stop> {
        let at = self.address(place)?;
        Ok(fold(&self.memory.read(at, place.size())?))
    }

    pub fn store(&mut self, place: &Place, value: u64) -> Result<(), Stop> {
        let at = self.address(place)?;
        self.memory.write(at, &make(value, place.size()))
    }
}

impl Place {
    /// How many bytes are accessed.
    fn size(&self) -> usize {
        match self.how {
            How::Field(field) => self.ty.fields()[field].2.size(),
            _ => self.ty.size(),
        }
    }
}
