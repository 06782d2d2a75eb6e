//! The functions: what they are made of.

/// Bytes of memory that a function has.
pub const ARENA: usize = 2048;
/// The last byte is written when a strand begins: whether it is in the tables tells whether the strand has begun anew since.
pub const SENTINEL: usize = ARENA - 1;
/// Where pointers into the memory are, to be loaded.
pub const POINTERS: usize = 1920;
/// How many.
pub const POINTER_COUNT: usize = 8;

/// A function and what it is called with.
#[derive(Debug, Clone)]
pub struct Function {
    /// What it was made from.
    pub seed: u64,
    /// What it is called with.
    pub input: Input,
    /// Is the hash kept in memory of the caller's, so that bounds checks may fail at any time?
    pub hash_outside: bool,
    /// Is it compiled for AVX2?
    pub wide: bool,
    /// Bytes of its local variables.
    pub locals: Vec<usize>,
    /// What it does.
    pub body: Vec<Stmt>,
}

/// What a function is called with.
#[derive(Debug, Clone)]
pub struct Input {
    /// What the memory holds, but for the pointers in it.
    pub seed: u64,
    /// Offsets of the pointers `a`, `b`, `c`.
    pub pointers: [usize; 3],
    /// Offsets of the pointers in memory.
    pub stored: [usize; POINTER_COUNT],
    /// `n`, `m`, `k`.
    pub numbers: [usize; 3],
    /// 32 bits.
    pub flags: u64,
}

/// The type of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ty {
    U8,
    U16,
    U32,
    U64,
    U128,
    F32,
    F64,
    /// `[u8; N]`
    Bytes(usize),
    /// A packed structure of `u8`, `u32`, `u16`.
    Packed,
    /// A structure of three `u32`.
    Xyz,
    /// A structure of `u8`, `u64`, `u16` with padding behind the first and the last. Only its fields are accessed: whether padding is
    /// copied is the compiler's choice.
    Padded,
    /// A vector of so many bytes.
    Vector(usize),
}

impl Ty {
    pub fn size(self) -> usize {
        match self {
            Ty::U8 => 1,
            Ty::U16 => 2,
            Ty::U32 | Ty::F32 => 4,
            Ty::U64 | Ty::F64 => 8,
            Ty::U128 => 16,
            Ty::Bytes(size) | Ty::Vector(size) => size,
            Ty::Packed => 7,
            Ty::Xyz => 12,
            Ty::Padded => 24,
        }
    }

    pub fn align(self) -> usize {
        match self {
            Ty::Bytes(_) | Ty::Packed => 1,
            Ty::Xyz => 4,
            Ty::Padded => 8,
            other => other.size(),
        }
    }

    /// Its name in Rust.
    pub fn name(self) -> String {
        match self {
            Ty::U8 => "u8".into(),
            Ty::U16 => "u16".into(),
            Ty::U32 => "u32".into(),
            Ty::U64 => "u64".into(),
            Ty::U128 => "u128".into(),
            Ty::F32 => "f32".into(),
            Ty::F64 => "f64".into(),
            Ty::Bytes(size) => format!("[u8; {size}]"),
            Ty::Packed => "Packed".into(),
            Ty::Xyz => "Xyz".into(),
            Ty::Padded => "Padded".into(),
            Ty::Vector(size) => format!("V{size}"),
        }
    }

    /// The fields that can be accessed by themselves: name, offset, type.
    pub fn fields(self) -> &'static [(&'static str, usize, Ty)] {
        match self {
            Ty::Packed => &[("a", 0, Ty::U8), ("b", 1, Ty::U32), ("c", 5, Ty::U16)],
            Ty::Padded => &[("a", 0, Ty::U8), ("b", 8, Ty::U64), ("c", 16, Ty::U16)],
            Ty::Xyz => &[("x", 0, Ty::U32), ("y", 4, Ty::U32), ("z", 8, Ty::U32)],
            _ => &[],
        }
    }
}

/// A number, as a `usize`.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    Const(usize),
    /// `n`, `m` or `k`.
    Number(usize),
    /// A variable of a loop.
    Var(usize),
    Add(Box<Expr>, Box<Expr>),
    Sub(Box<Expr>, Box<Expr>),
    Mul(Box<Expr>, usize),
    Rem(Box<Expr>, usize),
    /// The value of memory, modulo a number. Goes into the hash.
    Load(Box<Place>, usize),
}

/// What a condition asks.
#[derive(Debug, Clone, PartialEq)]
pub enum Cond {
    Less(Expr, Expr),
    Equal(Expr, Expr),
    /// A bit of the flags.
    Flag(u32),
    /// Is the value of memory modulo five less than that? Goes into the hash.
    Data(Place, u64),
}

/// What a place is relative to.
#[derive(Debug, Clone, PartialEq)]
pub enum Base {
    /// `a`, `b` or `c`.
    Argument(usize),
    /// The pointer of a loop that walks.
    Walker(usize),
    /// A local variable.
    Local(usize),
    /// One of two, by a flag.
    Select(u32, Box<Base>, Box<Base>),
    /// A pointer that is loaded from memory, by its number modulo their count.
    Loaded(Box<Expr>),
}

/// How memory is accessed there.
#[derive(Debug, Clone, PartialEq)]
pub enum How {
    /// `*pointer`, which must be aligned.
    Deref,
    Unaligned,
    Volatile,
    /// As an element of a slice of that length.
    Checked(Box<Expr>),
    /// A field of what is there.
    Field(usize),
}

/// Some bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    pub base: Base,
    pub ty: Ty,
    pub index: Expr,
    /// Does the index count bytes, and not elements?
    pub in_bytes: bool,
    pub how: How,
}

/// How a value goes into the hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// In order.
    Chain,
    /// Added, times an odd number: the compiler may reorder, and use vectors.
    Sum(u64),
}

/// What is written.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// What the hash is, and a number.
    Hash(u64),
    /// A number.
    Of(Expr),
    /// The value of another place, changed.
    Changed(Place),
}

/// Operations on slices and ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bulk {
    /// `copy_nonoverlapping`
    Copy,
    /// `copy`
    Move,
    /// `write_bytes`
    Set,
    /// `fill`
    Fill,
    /// `reverse`
    Reverse,
    /// `copy_within`, half of it to the middle.
    Within,
    /// `swap_nonoverlapping`
    Swap,
    /// `==`
    Equal,
    /// `cmp`
    Compare,
    /// `swap` of two elements, the first and that at half of the length.
    SwapElements,
    /// A function that adds up and is inlined.
    SumInlined,
    /// One that is not.
    SumCalled,
    /// One that calls itself.
    SumRecursive,
    /// One that writes, and is not inlined.
    FillCalled,
    /// One that adds up, in another module: it is inlined when modules come together.
    SumFar,
    /// One that writes, there.
    FillFar,
    /// A loop there whose body, which writes, is here.
    EachFar,
}

/// How elements of a vector are picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Masked {
    Load,
    Store,
    Gather,
    Scatter,
    /// By the instruction of AVX.
    LoadAvx,
    StoreAvx,
    /// By those of AVX-512: the elements in memory are those of the mask, without room for others.
    Expand,
    Compress,
}

/// Atomic operations, and a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Atomic {
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
    LoadAcquire,
    LoadRelaxed,
    StoreRelease,
    StoreSeqCst,
    Fence,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Stmt {
    /// Reads; perhaps passes the value to a function.
    Read {
        place: Place,
        fold: Fold,
        passed: bool,
    },
    Write {
        place: Place,
        value: Value,
    },
    /// Reads and writes.
    Update {
        place: Place,
    },
    /// Copies a value as it is.
    Assign {
        to: Place,
        from: Place,
    },
    Swap {
        a: Place,
        b: Place,
    },
    /// With a length in elements of the type.
    Bulk {
        what: Bulk,
        to: Base,
        from: Base,
        ty: Ty,
        length: Expr,
    },
    /// Eight elements of `u32` at a place.
    Masked {
        what: Masked,
        base: Base,
        index: Expr,
        mask: Expr,
    },
    If {
        cond: Cond,
        then: Vec<Stmt>,
        other: Vec<Stmt>,
    },
    Loop {
        kind: Loop,
        body: Vec<Stmt>,
    },
    Break(Cond),
    Continue(Cond),
    Return(Cond),
    /// Panics, in the function or in one that is called.
    Fail {
        cond: Cond,
        called: bool,
    },
    /// A call that nothing is known of.
    Opaque,
    /// The same, with a pointer.
    Escape(Base),
    /// Shows what the strand has touched.
    Show,
    /// A task event in a call: the strand ends.
    Event,
    /// A task, whose strand shows what it has touched.
    Task(Vec<Stmt>),
    /// An atomic operation, which may end the strand.
    Atomic(Atomic),
}

/// How a loop goes.
#[derive(Debug, Clone, PartialEq)]
pub enum Loop {
    /// `for v in from..to`, perhaps reversed and with steps.
    For { var: usize, from: Expr, to: Expr, step: usize, reversed: bool, inclusive: bool },
    /// `while`, with a variable of so many bits, up or down, until it passes the bound or is equal to it.
    While { var: usize, from: Expr, to: Expr, step: usize, bits: u32, down: bool, until_equal: bool },
    /// A pointer walks from an element to another.
    Walk { walker: usize, base: Base, ty: Ty, from: Expr, to: Expr, step: usize, down: bool },
    /// An iterator over a slice.
    Iter { var: usize, kind: Iter, base: Base, ty: Ty, length: Expr },
}

/// Iterators over slices. What they give is read, or written, at the start of the body.
#[derive(Debug, Clone, PartialEq)]
pub enum Iter {
    Plain,
    Reversed,
    Step(usize),
    /// `iter_mut`, writing.
    Mut,
    /// `iter_mut` of one, `iter` of another.
    Zip(Base),
    Chunks(usize),
    ChunksExact(usize),
    /// The first and the last element of each.
    Windows(usize),
    /// Until an element is odd by modulus five.
    Position,
}

impl Stmt {
    /// The blocks in it.
    pub fn blocks(&self) -> Vec<&Vec<Stmt>> {
        match self {
            Stmt::If { then, other, .. } => vec![then, other],
            Stmt::Loop { body, .. } | Stmt::Task(body) => vec![body],
            _ => Vec::new(),
        }
    }

    /// The same, to be changed.
    pub fn blocks_mut(&mut self) -> Vec<&mut Vec<Stmt>> {
        match self {
            Stmt::If { then, other, .. } => vec![then, other],
            Stmt::Loop { body, .. } | Stmt::Task(body) => vec![body],
            _ => Vec::new(),
        }
    }
}

impl Function {
    /// How many statements it has.
    pub fn size(&self) -> usize {
        fn count(block: &[Stmt]) -> usize {
            block
                .iter()
                .map(|stmt| 1 + stmt.blocks().into_iter().map(|block| count(block)).sum::<usize>())
                .sum()
        }
        count(&self.body)
    }
}
