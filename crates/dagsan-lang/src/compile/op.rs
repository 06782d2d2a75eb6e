//! The compiled form: operations on the registers of a frame.
//!
//! ```text
//!   stack of a task   … │ caller's registers │ first … │        callee: base = caller's base + first
//!                       │ r0 r1 …            │ r0  r1 …│ …      arguments are where the callee's parameters
//!                                                              are, the result comes back in its r0
//! ```
//!
//! Every value has 64 bits. The types say what they mean:
//!
//! ```text
//!   int               the number
//!   bool              0, 1
//!   reference         base cell << 32 | length; 0 is null
//!   promise, future   its number + 1; 0 is null
//!   region            its number
//! ```
//!
//! An operation has 12 bytes. An access comes in two forms: with a check, which puts it into the access set
//! of the running strand, and without.

use crate::hir::{AccessId, MakerId, StartKind};
use crate::span::Span;

/// A register of the current frame.
pub type Reg = u16;

/// An operation. `d` is where the result goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::enum_variant_names)]
pub enum Op {
    // ---- values
    /// `d = value`
    Int(Reg, i32),
    /// `d = constants[n]`
    Constant(Reg, u32),
    /// `d = a`
    Move(Reg, Reg),
    /// `d = fixed[n]`
    Fixed(Reg, u32),
    /// `fixed[n] = a`
    Fix(u32, Reg),
    Add(Reg, Reg, Reg),
    Sub(Reg, Reg, Reg),
    Mul(Reg, Reg, Reg),
    Div(Reg, Reg, Reg),
    Rem(Reg, Reg, Reg),
    /// `d = a + value`
    AddInt(Reg, Reg, i32),
    /// `d = a * value`
    MulInt(Reg, Reg, i32),
    Neg(Reg, Reg),
    Not(Reg, Reg),
    Eq(Reg, Reg, Reg),
    Ne(Reg, Reg, Reg),
    Lt(Reg, Reg, Reg),
    Le(Reg, Reg, Reg),

    // ---- jumps
    Jump(u32),
    JumpIf(Reg, u32),
    JumpUnless(Reg, u32),
    JumpEq(Reg, Reg, u32),
    JumpNe(Reg, Reg, u32),
    JumpLt(Reg, Reg, u32),
    JumpLe(Reg, Reg, u32),
    /// a += 1; if a < b, jump
    Next(Reg, Reg, u32),

    // ---- shared memory
    /// `d = a[i]`
    Load(Reg, Reg, Reg),
    LoadCheck(Reg, Reg, Reg, AccessId),
    /// `a[i] = s`
    Store(Reg, Reg, Reg),
    StoreCheck(Reg, Reg, Reg, AccessId),
    /// `d = cell`
    Read(Reg, u32),
    ReadCheck(Reg, u32, AccessId),
    /// `cell = s`
    Write(Reg, u32),
    WriteCheck(Reg, u32, AccessId),
    /// The check of an access to a scalar, without the access.
    Check(u32, AccessId),
    /// The checks of all accesses of a loop nest.
    Summary(u32),
    /// Counts an access, for statistics.
    Count(AccessId),
    /// `d = len(a)`
    Len(Reg, Reg),
    /// `d = new [n]`
    New(Reg, Reg, MakerId),

    // ---- procedures
    /// Calls function n with the arguments from register a on.
    Call(u32, Reg),
    Return(Reg),
    ReturnNothing,
    /// A procedure that spawns begins.
    FrameBegin,
    FrameEnd,

    // ---- tasks
    /// `starts[n]`, with the arguments from register a on; d = the handle.
    Start(Reg, Reg, u32),
    /// The same, into region b.
    Post(Reg, Reg, u32),
    FinishBegin,
    FinishEnd,
    Sync,
    IsolatedBegin,
    IsolatedEnd,
    NewPromise(Reg, MakerId),
    /// d = an array of a new promises
    NewPromises(Reg, Reg, MakerId),
    /// Sets promise a to b.
    Set(Reg, Reg),
    GetPromise(Reg, Reg),
    GetFuture(Reg, Reg),
    NewRegion(Reg),
    Await(Reg),
    Ewait(Reg),
    /// Runs the return handlers of the tasks that the last await or ewait joined.
    Handle,
    /// The end of a return handler.
    Handled,

    // ---- the rest
    /// `prints[n]`, with values from register a on
    Print(Reg, u32),
    Assert(Reg),
}

/// A function: the compiled form of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The procedure's name.
    pub name: Option<String>,
    /// Its first operation.
    pub entry: u32,
    /// How many registers its frame has.
    pub registers: u32,
}

/// A place in the text where tasks are created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartSite {
    /// How.
    pub kind: StartKind,
    /// What the task does.
    pub function: u32,
    /// How many arguments it gets.
    pub args: u32,
    /// What is done with its result.
    pub handler: Option<u32>,
    /// Where.
    pub span: Span,
}

/// A return handler: code of the function that posts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handler {
    /// Its first operation.
    pub entry: u32,
    /// The register for the result.
    pub value: Reg,
}

/// One thing that is printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A text.
    Text(String),
    /// The next value, a number.
    Int,
    /// The next value, a truth value.
    Bool,
}

/// The accesses of a loop nest to one array: elements `start + Σ steps[k] * i_k`, 0 ≤ i_k < `counts[k]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The register with the array.
    pub array: Reg,
    /// The register with the first index.
    pub start: Reg,
    /// Registers with the step and the count of every dimension.
    pub dimensions: Vec<(Reg, Reg)>,
    /// The access.
    pub access: AccessId,
}

/// A compiled program.
#[derive(Debug, Default)]
pub struct Code {
    /// The operations of all functions.
    pub ops: Vec<Op>,
    /// Where each operation comes from.
    pub spans: Vec<Span>,
    /// The functions, as the bodies are numbered, and the one that runs first.
    pub functions: Vec<Function>,
    /// Where tasks are created.
    pub starts: Vec<StartSite>,
    /// The return handlers.
    pub handlers: Vec<Handler>,
    /// The summarised checks.
    pub summaries: Vec<Summary>,
    /// What is printed.
    pub prints: Vec<Vec<Piece>>,
    /// Values that do not fit into an operation.
    pub constants: Vec<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_has_12_bytes() {
        assert_eq!(size_of::<Op>(), 12);
    }
}
