//! The reference: executes a function as its tree says, and tells which bytes it touches.

use super::ast::{Bulk, Fold, Function, Masked, Place, Stmt, Ty, Value};
use super::batch::initial_memory;
use super::memory::{Memory, Pointer, Shown, apart, elsewhere, fold, make, mix, spread};

/// Why a function is not to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Refused {
    #[error("accesses memory that is not its own")]
    Outside,
    #[error("a misaligned access")]
    Misaligned,
    #[error("what must be apart overlaps")]
    Overlap,
    #[error("a number overflows")]
    Overflow,
    #[error("takes too long")]
    TooLong,
    #[error("a bounds check fails where the hash would be lost")]
    HashLost,
}

/// What a function does.
pub struct Expected {
    /// What each strand has touched, whenever it was asked to show it, and at the end.
    pub shown: Vec<Shown>,
    /// Does it end by a panic?
    pub panics: bool,
    /// The hash of what was read: in order, and added up.
    pub hash: [u64; 2],
    /// What is in the memory at the end.
    pub memory: Vec<u8>,
    /// How many statements were executed.
    pub steps: usize,
}

/// Where execution goes on, if not with the next statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Break,
    Continue,
    Return,
    Panic,
    Refused(Refused),
}

impl From<Refused> for Stop {
    fn from(why: Refused) -> Stop {
        Stop::Refused(why)
    }
}

/// Executes it; its memory is at `base`.
pub fn interpret(function: &Function, base: u64) -> Result<Expected, Refused> {
    let memory = Memory::new(base, initial_memory(&function.input, base), &function.locals);
    let mut run = Run {
        function,
        memory,
        hash: [function.input.flags, 0],
        vars: Vec::new(),
        walkers: Vec::new(),
        steps: 0,
    };
    let panics = match run.block(&function.body) {
        Ok(()) | Err(Stop::Return) => false,
        Err(Stop::Panic) => true,
        Err(Stop::Refused(why)) => return Err(why),
        Err(Stop::Break | Stop::Continue) => unreachable!("they stand in loops"),
    };
    run.memory.show();
    let (hash, steps) = (run.hash, run.steps);
    let (shown, memory) = run.memory.into_shown();
    Ok(Expected { shown, panics, hash, memory, steps })
}

/// Statements and rounds of loops that a function may execute.
const PATIENCE: usize = 4000;

pub struct Run<'f> {
    pub function: &'f Function,
    pub memory: Memory,
    pub hash: [u64; 2],
    /// Variables of loops, and their pointers, by their numbers.
    pub vars: Vec<usize>,
    pub walkers: Vec<Pointer>,
    steps: usize,
}

impl Run<'_> {
    pub fn step(&mut self) -> Result<(), Stop> {
        self.steps += 1;
        if self.steps > PATIENCE { Err(Refused::TooLong.into()) } else { Ok(()) }
    }

    pub fn block(&mut self, block: &[Stmt]) -> Result<(), Stop> {
        block.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), Stop> {
        self.step()?;
        match stmt {
            Stmt::Read { place, fold, .. } => {
                let value = self.load(place)?;
                self.fold(value, *fold);
            }
            Stmt::Write { place, value } => self.write(place, value)?,
            Stmt::Update { place } => {
                let value = self.load(place)?.wrapping_mul(3) ^ self.hash[0];
                self.store(place, value)?;
            }
            Stmt::Assign { to, from } => {
                let (to_at, from_at) = (self.address(to)?, self.address(from)?);
                // The compiler may leave out a write of what is there.
                apart(to_at, from_at, to.ty.size())?;
                let bytes = self.memory.read(from_at, from.ty.size())?;
                self.memory.write(to_at, &bytes)?;
                self.fold(fold(&bytes), Fold::Sum(1));
            }
            Stmt::Swap { a, b } => {
                let (first, second) = (self.address(a)?, self.address(b)?);
                self.swap(first, second, a.ty.size())?;
            }
            Stmt::Bulk { what, to, from, ty, length } => {
                let length = self.expr(length)?;
                let (to, from) = (self.base(to)?, self.base(from)?);
                self.bulk(*what, to, from, *ty, length)?;
            }
            Stmt::Masked { what, base, index, mask } => {
                let (base, index, mask) = (self.base(base)?, self.expr(index)?, self.expr(mask)?);
                let at = self.memory.offset(base, index as i128 * 4)?;
                self.memory.align(at, Ty::U32)?;
                self.masked(*what, at, mask)?;
            }
            Stmt::If { cond, then, other } => {
                let block = if self.cond(cond)? { then } else { other };
                self.block(block)?;
            }
            Stmt::Loop { kind, body } => self.run_loop(kind, body)?,
            Stmt::Break(cond) => self.stop_if(cond, Stop::Break)?,
            Stmt::Continue(cond) => self.stop_if(cond, Stop::Continue)?,
            Stmt::Return(cond) => self.stop_if(cond, Stop::Return)?,
            Stmt::Fail { cond, .. } => self.stop_if(cond, Stop::Panic)?,
            Stmt::Opaque => {}
            Stmt::Escape(base) => {
                self.base(base)?;
            }
            Stmt::Show => self.memory.show(),
            Stmt::Event => self.memory.event(),
            Stmt::Task(body) => {
                self.memory.show();
                self.memory.event();
                self.block(body)?;
                self.memory.show();
                self.memory.event();
            }
            Stmt::Atomic(_) => self.memory.atomic(),
        }
        Ok(())
    }

    fn stop_if(&mut self, cond: &super::ast::Cond, stop: Stop) -> Result<(), Stop> {
        if self.cond(cond)? { Err(stop) } else { Ok(()) }
    }

    pub fn fold(&mut self, value: u64, how: Fold) {
        match how {
            Fold::Chain => self.hash[0] = mix(self.hash[0], value),
            Fold::Sum(times) => self.hash[1] = self.hash[1].wrapping_add(value.wrapping_mul(times)),
        }
    }

    /// A bounds check fails.
    pub fn out_of_bounds(&self) -> Stop {
        if self.function.hash_outside { Stop::Panic } else { Refused::HashLost.into() }
    }

    fn write(&mut self, place: &Place, value: &Value) -> Result<(), Stop> {
        let value = match value {
            Value::Hash(number) => self.hash[0] ^ number,
            Value::Of(expr) => spread(self.expr(expr)?),
            Value::Changed(from) => {
                let value = self.load(from)?;
                self.fold(value, Fold::Sum(1));
                value.wrapping_mul(3).wrapping_add(1)
            }
        };
        self.store(place, value)
    }

    fn swap(&mut self, a: Pointer, b: Pointer, size: usize) -> Result<(), Stop> {
        // The compiler may leave out a swap of a place with itself.
        apart(a, b, size)?;
        let (first, second) = (self.memory.read(a, size)?, self.memory.read(b, size)?);
        self.memory.write(a, &second)?;
        self.memory.write(b, &first)
    }

    /// The elements of a slice.
    pub fn element(&self, base: Pointer, ty: Ty, index: usize) -> Result<Pointer, Stop> {
        self.memory.offset(base, index as i128 * ty.size() as i128)
    }

    fn bulk(&mut self, what: Bulk, to: Pointer, from: Pointer, ty: Ty, length: usize) -> Result<(), Stop> {
        let (size, bytes) = (ty.size(), ty.size() * length);
        self.memory.align(to, ty)?;
        // Slices must be there, whether they are read or not.
        self.memory.peek(to, bytes)?;
        let two = matches!(what, Bulk::Copy | Bulk::Move | Bulk::Swap | Bulk::Equal | Bulk::Compare);
        if two {
            self.memory.align(from, ty)?;
            self.memory.peek(from, bytes)?;
        }
        match what {
            Bulk::Copy | Bulk::Move => {
                match what {
                    Bulk::Copy => apart(to, from, bytes)?,
                    _ => elsewhere(to, from, bytes)?,
                }
                let value = self.memory.read(from, bytes)?;
                self.memory.write(to, &value)?;
            }
            Bulk::Set => self.memory.write(to, &vec![0x5a; bytes])?,
            Bulk::Fill => {
                let value = make(self.hash[0], size);
                self.memory.write(to, &value.repeat(length))?;
            }
            Bulk::Reverse => {
                for index in 0..length / 2 {
                    let (first, last) =
                        (self.element(to, ty, index)?, self.element(to, ty, length - 1 - index)?);
                    self.swap(first, last, size)?;
                }
            }
            Bulk::Within => {
                let value = self.memory.read(to, length / 2 * size)?;
                let middle = self.element(to, ty, length / 4)?;
                elsewhere(to, middle, value.len())?;
                self.memory.write(middle, &value)?;
            }
            Bulk::Swap => self.swap(to, from, bytes)?,
            Bulk::Equal | Bulk::Compare => {
                let (a, b) = (self.memory.peek(to, bytes)?, self.memory.peek(from, bytes)?);
                let seen = a.iter().zip(b).position(|(a, b)| a != b).map_or(bytes, |at| at + 1);
                let order = a.cmp(b) as i8;
                self.memory.read(to, seen)?;
                self.memory.read(from, seen)?;
                let value = if what == Bulk::Equal { u64::from(order == 0) } else { order as u64 };
                self.fold(value, Fold::Chain);
            }
            Bulk::SwapElements => {
                if length == 0 {
                    return Err(self.out_of_bounds());
                }
                let middle = self.element(to, ty, length / 2)?;
                self.swap(to, middle, size)?;
            }
            Bulk::SumInlined | Bulk::SumCalled | Bulk::SumRecursive | Bulk::SumFar => {
                let value = self.memory.read(to, bytes)?;
                value.chunks(size).for_each(|value| self.fold(fold(value), Fold::Sum(1)));
            }
            Bulk::FillCalled | Bulk::FillFar | Bulk::EachFar => {
                let value: Vec<u8> = (0..length).flat_map(|index| make(spread(index), size)).collect();
                self.memory.write(to, &value)?;
            }
        }
        Ok(())
    }

    fn masked(&mut self, what: Masked, at: Pointer, mask: usize) -> Result<(), Stop> {
        const LANES: usize = 8;
        let spacing = if matches!(what, Masked::Gather | Masked::Scatter) { 3 } else { 1 };
        let writes = matches!(what, Masked::Store | Masked::Scatter | Masked::StoreAvx | Masked::Compress);
        let is_packed = matches!(what, Masked::Expand | Masked::Compress);
        // All of it is there, so that an access that the mask does not hold back is seen and not felt.
        self.memory.peek(at, LANES * spacing * 4)?;
        let mut lanes = make(self.hash[0], LANES * 4);
        for (lane, bytes) in lanes.chunks_mut(4).enumerate() {
            let place =
                if is_packed { (mask & ((1 << lane) - 1)).count_ones() as usize } else { lane * spacing };
            let at = self.element(at, Ty::U32, place)?;
            match (mask & 1 << lane != 0, writes) {
                (true, true) => self.memory.write(at, bytes)?,
                (true, false) => bytes.copy_from_slice(&self.memory.read(at, 4)?),
                (false, _) => bytes.fill(0),
            }
        }
        if !writes {
            self.fold(fold(&lanes), Fold::Chain);
        }
        Ok(())
    }
}
