//! Makes functions by chance.
//!
//! Nothing here looks at what a function will do: one that the reference refuses is thrown away.

use fastrand::Rng;

use super::ast::{
    Atomic, Base, Bulk, Cond, Expr, Fold, Function, How, Input, Iter, Loop, Masked, Place, Stmt, Ty, Value,
};
use super::batch::BASE;
use super::interpret::interpret;

/// All types that are accessed.
const TYPES: [Ty; 18] = [
    Ty::U8,
    Ty::U16,
    Ty::U32,
    Ty::U64,
    Ty::U128,
    Ty::F32,
    Ty::F64,
    Ty::Bytes(3),
    Ty::Bytes(5),
    Ty::Bytes(6),
    Ty::Bytes(7),
    Ty::Bytes(9),
    Ty::Bytes(12),
    Ty::Packed,
    Ty::Xyz,
    Ty::Vector(16),
    Ty::Vector(32),
    Ty::Vector(64),
];

/// Those that are compared as bytes.
const COMPARED: [Ty; 4] = [Ty::U8, Ty::U16, Ty::U32, Ty::U64];

/// Those that vectors are made of.
const SIMPLE: [Ty; 5] = [Ty::U8, Ty::U16, Ty::U32, Ty::U64, Ty::F32];

/// All that may end a strand, or not.
const ATOMICS: [Atomic; 10] = [
    Atomic::Relaxed,
    Atomic::Acquire,
    Atomic::Release,
    Atomic::AcqRel,
    Atomic::SeqCst,
    Atomic::LoadAcquire,
    Atomic::LoadRelaxed,
    Atomic::StoreRelease,
    Atomic::StoreSeqCst,
    Atomic::Fence,
];

/// What the processor has that runs the functions.
#[derive(Debug, Clone, Copy)]
pub struct Processor {
    /// AVX2.
    pub avx2: bool,
    /// AVX-512, with the instructions for vectors of all lengths.
    pub avx512: bool,
}

/// The function of a seed, for such a processor.
pub fn generate(seed: u64, processor: Processor) -> Function {
    let mut rng = Rng::with_seed(seed);
    loop {
        let function = Generator::new(seed, &mut rng, processor).function();
        if interpret(&function, BASE).is_ok() {
            return function;
        }
    }
}

struct Generator<'r> {
    rng: &'r mut Rng,
    seed: u64,
    wide: bool,
    avx512: bool,
    hash_outside: bool,
    /// How the pointers are aligned.
    align: usize,
    /// Types that are used again and again.
    types: Vec<Ty>,
    locals: Vec<usize>,
    /// What may end the strand in this function, in chances of a hundred.
    borders: u8,
    failures: u8,
    /// What is in scope.
    vars: Vec<usize>,
    walkers: Vec<(usize, Ty)>,
    next: usize,
    in_loop: bool,
    in_task: bool,
}

impl<'r> Generator<'r> {
    fn new(seed: u64, rng: &'r mut Rng, processor: Processor) -> Generator<'r> {
        let types = (0..rng.usize(1..=3)).map(|_| TYPES[rng.usize(..TYPES.len())]).collect();
        let align = [64, 64, 64, 8, 4, 1][rng.usize(..6)];
        let locals = (0..rng.usize(..5).saturating_sub(2)).map(|_| 64 * rng.usize(1..=4)).collect();
        let borders = if rng.u8(..3) == 0 { rng.u8(5..30) } else { 0 };
        let failures = if rng.u8(..3) == 0 { rng.u8(5..20) } else { 0 };
        Generator {
            wide: processor.avx2 && rng.u8(..4) == 0,
            avx512: processor.avx512,
            hash_outside: rng.u8(..3) == 0,
            rng,
            seed,
            align,
            types,
            locals,
            borders,
            failures,
            vars: Vec::new(),
            walkers: Vec::new(),
            next: 0,
            in_loop: false,
            in_task: false,
        }
    }

    fn function(mut self) -> Function {
        let length = self.rng.usize(2..=7);
        let body = self.block(length, 0);
        let align = self.align;
        let mut pointer = || 256 + self.rng.usize(..1024 / align) * align;
        let pointers = [pointer(), pointer(), pointer()];
        let stored = std::array::from_fn(|_| pointer());
        let (few, many) = (self.rng.usize(1..=40), self.rng.usize(1..=40));
        let mut number = || if self.rng.bool() { self.rng.usize(..=few) } else { self.rng.usize(..=many) };
        let numbers = [number(), number(), number()];
        let input =
            Input { seed: self.rng.u64(..), pointers, stored, numbers, flags: u64::from(self.rng.u32(..)) };
        let Generator { seed, hash_outside, wide, locals, .. } = self;
        Function { seed, input, hash_outside, wide, locals, body }
    }

    fn chance(&mut self, percent: u8) -> bool {
        self.rng.u8(..100) < percent
    }

    fn block(&mut self, length: usize, depth: usize) -> Vec<Stmt> {
        let mut block = Vec::new();
        while block.len() < length {
            self.stmts(depth, &mut block);
        }
        block
    }

    /// One statement, or a few that belong together.
    fn stmts(&mut self, depth: usize, into: &mut Vec<Stmt>) {
        let (borders, failures) = (self.borders, self.failures);
        if self.chance(borders) {
            let border = self.border(depth);
            return into.push(border);
        }
        if !self.in_task && self.chance(failures) {
            let (cond, called) = (self.cond(), self.rng.bool());
            return into.push(Stmt::Fail { cond, called });
        }
        let stmt = match self.rng.u8(..100) {
            0..8 if depth < 3 => self.kernel(),
            0..30 if depth < 3 => self.a_loop(depth),
            0..42 => self.read(),
            42..58 => self.write(),
            58..64 => Stmt::Update { place: self.place() },
            64..70 => return self.neighbours(into),
            70..76 => self.bulk(),
            76..80 => self.masked(),
            80..83 => self.pair(),
            83..93 if depth < 4 => {
                let cond = self.cond();
                let (then, other) = (self.rng.usize(1..=2), self.rng.usize(..=2).saturating_sub(1));
                Stmt::If { cond, then: self.block(then, depth + 1), other: self.block(other, depth + 1) }
            }
            _ if self.in_loop => {
                let cond = self.cond();
                if self.rng.bool() { Stmt::Break(cond) } else { Stmt::Continue(cond) }
            }
            93..96 if !self.in_task => Stmt::Return(self.cond()),
            _ => self.read(),
        };
        into.push(stmt);
    }

    fn border(&mut self, depth: usize) -> Stmt {
        match self.rng.u8(..12) {
            0..3 => Stmt::Opaque,
            3..5 => Stmt::Escape(self.base()),
            5 => Stmt::Show,
            6..8 => Stmt::Event,
            8..10 => Stmt::Atomic(ATOMICS[self.rng.usize(..ATOMICS.len())]),
            _ if !self.in_task && depth < 2 => {
                let in_loop = std::mem::replace(&mut self.in_loop, false);
                self.in_task = true;
                let length = self.rng.usize(1..=3);
                let body = self.block(length, depth + 1);
                (self.in_task, self.in_loop) = (false, in_loop);
                Stmt::Task(body)
            }
            _ => Stmt::Opaque,
        }
    }

    fn read(&mut self) -> Stmt {
        let (place, passed) = (self.place(), self.chance(15));
        let fold = if self.rng.bool() { Fold::Chain } else { Fold::Sum([1, 3, 5][self.rng.usize(..3)]) };
        Stmt::Read { place, fold, passed }
    }

    fn write(&mut self) -> Stmt {
        let value = match self.rng.u8(..4) {
            0 => Value::Hash(self.rng.u64(..)),
            1 => Value::Changed(self.place()),
            _ => Value::Of(self.index()),
        };
        Stmt::Write { place: self.place(), value }
    }

    /// Accesses to neighbours, or to the same place again, as `p.x`, `p.y`, `p.z`.
    fn neighbours(&mut self, into: &mut Vec<Stmt>) {
        let mut place = self.place();
        for _ in 0..self.rng.usize(2..=4) {
            let fold = if self.rng.bool() { Fold::Chain } else { Fold::Sum(1) };
            into.push(match self.rng.u8(..5) {
                0..2 => Stmt::Read { place: place.clone(), fold, passed: false },
                2..4 => {
                    let value = Value::Hash(self.rng.u64(..));
                    Stmt::Write { place: place.clone(), value }
                }
                _ => Stmt::Update { place: place.clone() },
            });
            match &mut place.how {
                How::Field(field) if self.rng.bool() => *field = (*field + 1) % 3,
                _ if self.rng.u8(..3) > 0 => {
                    place.index = add(place.index, Expr::Const(1));
                }
                _ => {}
            }
            if self.borders > 0 && self.rng.u8(..4) == 0 {
                let border = self.border(3);
                into.push(border);
            }
        }
    }

    fn pair(&mut self) -> Stmt {
        let (mut to, mut from) = (self.place(), self.place());
        let plain = if to.ty.align() <= self.align { How::Deref } else { How::Unaligned };
        if plain == How::Unaligned || to.ty == Ty::Padded {
            to.ty = Ty::Bytes(5);
        }
        from.ty = to.ty;
        for place in [&mut to, &mut from] {
            (place.how, place.in_bytes) = (How::Deref, false);
        }
        if self.rng.bool() { Stmt::Assign { to, from } } else { Stmt::Swap { a: to, b: from } }
    }

    fn bulk(&mut self) -> Stmt {
        const ALL: [Bulk; 17] = [
            Bulk::Copy,
            Bulk::Move,
            Bulk::Set,
            Bulk::Fill,
            Bulk::Reverse,
            Bulk::Within,
            Bulk::Swap,
            Bulk::Equal,
            Bulk::Compare,
            Bulk::SwapElements,
            Bulk::SumInlined,
            Bulk::SumCalled,
            Bulk::SumRecursive,
            Bulk::FillCalled,
            Bulk::SumFar,
            Bulk::FillFar,
            Bulk::EachFar,
        ];
        let what = ALL[self.rng.usize(..ALL.len())];
        let ty = match what {
            Bulk::Equal => COMPARED[self.rng.usize(..4)],
            Bulk::Compare => Ty::U8,
            _ => self.ty(),
        };
        let first = self.rng.usize(..3);
        let (to, from) = (Base::Argument(first), Base::Argument((first + self.rng.usize(1..3)) % 3));
        Stmt::Bulk { what, to, from, ty, length: self.bound() }
    }

    fn masked(&mut self) -> Stmt {
        let what = self.masked_kind();
        let mask = match self.rng.u8(..3) {
            0 => Expr::Const(self.rng.usize(..256)),
            1 => Expr::Number(self.rng.usize(..3)),
            _ => Expr::Load(Box::new(self.simple()), 256),
        };
        Stmt::Masked { what, base: self.base(), index: self.index(), mask }
    }

    fn masked_kind(&mut self) -> Masked {
        let mut all = vec![Masked::Load, Masked::Store, Masked::Gather, Masked::Scatter];
        if self.wide {
            all.extend([Masked::LoadAvx, Masked::StoreAvx]);
        }
        if self.wide && self.avx512 {
            all.extend([Masked::Expand, Masked::Compress]);
        }
        all[self.rng.usize(..all.len())]
    }

    /// Elements that a mask picks in every round, mostly the same ones: their marks may be behind the loop.
    fn masked_body(&mut self) -> Vec<Stmt> {
        let mask = match self.rng.u8(..5) {
            0 | 1 => Expr::Const(self.rng.usize(..256)),
            2 | 3 => Expr::Number(self.rng.usize(..3)),
            _ => self.index_of_vars(),
        };
        let mut body = Vec::new();
        for _ in 0..self.rng.usize(1..=2) {
            let (what, base) = (self.masked_kind(), Base::Argument(self.rng.usize(..3)));
            let var = self.vars.last().map_or(Expr::Const(1), |&var| Expr::Var(var));
            // With gaps, without, and overlapping; in few rounds, that all of it is in the memory.
            let times = [8, 8, 4, 12, 1][self.rng.usize(..5)];
            let index = add(Expr::Mul(Box::new(var), times), Expr::Const(self.rng.usize(..4)));
            body.push(Stmt::Masked { what, base, index, mask: mask.clone() });
        }
        body
    }

    fn ty(&mut self) -> Ty {
        if self.chance(80) {
            self.types[self.rng.usize(..self.types.len())]
        } else {
            TYPES[self.rng.usize(..TYPES.len())]
        }
    }

    fn base(&mut self) -> Base {
        if !self.walkers.is_empty() && self.rng.bool() {
            return Base::Walker(self.walkers[self.rng.usize(..self.walkers.len())].0);
        }
        match self.rng.u8(..20) {
            0 => Base::Loaded(Box::new(self.index_of_vars())),
            1 | 2 if !self.locals.is_empty() => Base::Local(self.rng.usize(..self.locals.len())),
            3 | 4 if !self.locals.is_empty() => {
                let local = Base::Local(self.rng.usize(..self.locals.len()));
                Base::Select(
                    self.rng.u32(..32),
                    Box::new(Base::Argument(self.rng.usize(..3))),
                    Box::new(local),
                )
            }
            5 => {
                let [a, b] = [0, 1].map(|at| Box::new(Base::Argument(at)));
                Base::Select(self.rng.u32(..32), a, b)
            }
            6..14 => Base::Argument(0),
            14..18 => Base::Argument(1),
            _ => Base::Argument(2),
        }
    }

    /// A byte, for numbers that come from memory.
    fn simple(&mut self) -> Place {
        Place {
            base: Base::Argument(self.rng.usize(..3)),
            ty: Ty::U8,
            index: self.index_of_vars(),
            in_bytes: false,
            how: How::Deref,
        }
    }

    fn place(&mut self) -> Place {
        let base = self.base();
        let mut ty = self.ty();
        if let Base::Walker(walker) = base
            && self.chance(70)
        {
            ty = self.walkers.iter().find(|(known, _)| *known == walker).map_or(ty, |(_, ty)| *ty);
        }
        let index = match base {
            Base::Walker(_) if self.chance(70) => Expr::Const(self.rng.usize(..3)),
            _ => self.index(),
        };
        if self.align >= Ty::Padded.align() && self.chance(8) {
            ty = Ty::Padded;
        }
        let in_bytes = ty.align() == 1 && self.chance(15);
        let how = match self.rng.u8(..20) {
            _ if ty == Ty::Padded => How::Field(self.rng.usize(..3)),
            _ if ty.align() > self.align => How::Unaligned,
            0 => How::Unaligned,
            1 => How::Volatile,
            2..5 if !in_bytes => How::Checked(Box::new(self.plain_bound())),
            5..12 if !ty.fields().is_empty() => How::Field(self.rng.usize(..3)),
            _ => How::Deref,
        };
        Place { base, ty, index, in_bytes, how }
    }

    /// An index, perhaps from memory.
    fn index(&mut self) -> Expr {
        if self.chance(4) {
            return Expr::Load(Box::new(self.simple()), 8);
        }
        self.index_of_vars()
    }

    fn index_of_vars(&mut self) -> Expr {
        if self.vars.is_empty() || self.chance(15) {
            return match self.rng.u8(..6) {
                0 => Expr::Number(self.rng.usize(..3)),
                _ => Expr::Const(self.rng.usize(..6)),
            };
        }
        // The innermost loop is the most likely.
        let last = self.vars.len() - 1;
        let at = if self.rng.u8(..3) > 0 { last } else { self.rng.usize(..=last) };
        let var = Expr::Var(self.vars[at]);
        let other = Expr::Var(self.vars[self.rng.usize(..=last)]);
        let few = Expr::Const(self.rng.usize(..4));
        match self.rng.u8(..20) {
            0..7 => var,
            7..10 => add(var, few),
            10 => Expr::Sub(Box::new(var), Box::new(Expr::Const(1))),
            11 => Expr::Mul(Box::new(var), 2),
            12 => add(Expr::Mul(Box::new(var), 2), Expr::Const(1)),
            13 => add(Expr::Mul(Box::new(var), 3), few),
            14 | 15 => add(Expr::Mul(Box::new(var), self.rng.usize(2..9)), other),
            16 => Expr::Sub(Box::new(add(Expr::Number(self.rng.usize(..3)), few)), Box::new(var)),
            17 => Expr::Rem(Box::new(var), self.rng.usize(2..6)),
            18 => add(var, Expr::Number(self.rng.usize(..3))),
            _ => add(var, other),
        }
    }

    /// A bound that is not from memory.
    fn plain_bound(&mut self) -> Expr {
        match self.rng.u8(..10) {
            0..6 => Expr::Number(self.rng.usize(..3)),
            6 | 7 => Expr::Const(self.rng.usize(..20)),
            8 => add(Expr::Number(self.rng.usize(..3)), Expr::Const(self.rng.usize(..4))),
            _ => match self.vars.last() {
                Some(&var) => add(Expr::Var(var), Expr::Const(self.rng.usize(..3))),
                None => Expr::Const(self.rng.usize(..40)),
            },
        }
    }

    fn bound(&mut self) -> Expr {
        if self.chance(8) { Expr::Load(Box::new(self.simple()), 16) } else { self.plain_bound() }
    }

    fn cond(&mut self) -> Cond {
        match self.rng.u8(..6) {
            0 => Cond::Flag(self.rng.u32(..32)),
            1 | 2 => Cond::Data(self.place(), self.rng.u64(1..5)),
            3 => Cond::Equal(self.index_of_vars(), Expr::Number(self.rng.usize(..3))),
            4 => Cond::Less(Expr::Const(self.rng.usize(..12)), self.index()),
            _ => Cond::Less(self.index(), self.plain_bound()),
        }
    }

    /// What the compiler uses vectors for: little, without order, with steps.
    fn simple_body(&mut self) -> Vec<Stmt> {
        let base = if self.chance(70) { Base::Argument(self.rng.usize(..3)) } else { self.base() };
        let ty = SIMPLE[self.rng.usize(..SIMPLE.len())];
        let how = if ty.align() > self.align { How::Unaligned } else { How::Deref };
        let mut index = match self.vars.last() {
            Some(&var) if !matches!(base, Base::Walker(_)) => {
                Expr::Mul(Box::new(Expr::Var(var)), self.rng.usize(1..5))
            }
            _ => Expr::Const(0),
        };
        let mut body = Vec::new();
        for _ in 0..self.rng.usize(1..=3) {
            let place =
                Place { base: base.clone(), ty, index: index.clone(), in_bytes: false, how: how.clone() };
            let stmt = match self.rng.u8(..5) {
                4 => Stmt::If {
                    cond: self.cond(),
                    then: vec![Stmt::Write { place, value: Value::Of(self.index_of_vars()) }],
                    other: Vec::new(),
                },
                0 => Stmt::Write { place, value: Value::Of(self.index_of_vars()) },
                1 => Stmt::If {
                    cond: self.cond(),
                    then: vec![Stmt::Read { place, fold: Fold::Sum(1), passed: false }],
                    other: Vec::new(),
                },
                _ => Stmt::Read { place, fold: Fold::Sum(1), passed: false },
            };
            body.push(stmt);
            index = add(index, Expr::Const(1));
        }
        body
    }

    /// A loop of which nothing keeps the compiler from using vectors.
    fn kernel(&mut self) -> Stmt {
        let var = self.next;
        self.next += 1;
        self.vars.push(var);
        let body = if self.chance(25) { self.masked_body() } else { self.simple_body() };
        self.vars.pop();
        let (from, to) = (Expr::Const(0), Expr::Number(self.rng.usize(..3)));
        Stmt::Loop { kind: Loop::For { var, from, to, step: 1, reversed: false, inclusive: false }, body }
    }

    fn a_loop(&mut self, depth: usize) -> Stmt {
        let number = self.next;
        self.next += 1;
        let from = if self.chance(70) { Expr::Const(0) } else { Expr::Const(self.rng.usize(1..4)) };
        let to = self.bound();
        let step = [1, 1, 1, 1, 2, 3][self.rng.usize(..6)];
        let (mut has_var, mut has_body) = (true, true);
        let mut walks = None;
        let kind = match self.rng.u8(..20) {
            0..8 => {
                let (reversed, inclusive) = (self.chance(20), self.chance(10));
                Loop::For { var: number, from, to, step, reversed, inclusive }
            }
            8..12 => {
                let (bits, down) = ([64, 64, 32, 16, 8][self.rng.usize(..5)], self.chance(30));
                let until_equal = self.chance(20);
                let (from, to) = if down { (to, from) } else { (from, to) };
                Loop::While { var: number, from, to, step, bits, down, until_equal }
            }
            12..15 => {
                let (base, ty) = (Base::Argument(self.rng.usize(..3)), self.ty());
                has_var = false;
                walks = Some((number, ty));
                let to = self.plain_bound();
                Loop::Walk { walker: number, base, ty, from, to, step, down: self.chance(30) }
            }
            _ => {
                let first = self.rng.usize(..3);
                let kind = match self.rng.u8(..9) {
                    0 => Iter::Plain,
                    1 => Iter::Reversed,
                    2 => Iter::Step(self.rng.usize(1..4)),
                    3 => Iter::Mut,
                    4 => Iter::Zip(Base::Argument((first + 1) % 3)),
                    5 => Iter::Chunks(self.rng.usize(1..5)),
                    6 => Iter::ChunksExact(self.rng.usize(1..5)),
                    7 => Iter::Windows(self.rng.usize(1..4)),
                    _ => Iter::Position,
                };
                has_body = kind != Iter::Position && self.rng.bool();
                let (base, length, ty) = (Base::Argument(first), self.plain_bound(), self.ty());
                Loop::Iter { var: number, kind, base, ty, length }
            }
        };
        let (vars, walkers, in_loop) = (self.vars.len(), self.walkers.len(), self.in_loop);
        self.vars.extend(has_var.then_some(number));
        self.walkers.extend(walks);
        self.in_loop = true;
        let body = match has_body {
            true if self.chance(35) => self.simple_body(),
            true => {
                let length = self.rng.usize(1..=3);
                self.block(length, depth + 1)
            }
            false => Vec::new(),
        };
        self.vars.truncate(vars);
        self.walkers.truncate(walkers);
        self.in_loop = in_loop;
        Stmt::Loop { kind, body }
    }
}

fn add(a: Expr, b: Expr) -> Expr {
    Expr::Add(Box::new(a), Box::new(b))
}
