//! A checked program: names resolved, types known, every task a body of its own.
//!
//! Blocks of tasks (`async { … }`) become bodies like procedures, with the locals they use as parameters:
//! that these are copied when the task is created is then the same as passing arguments. Every
//! access to shared memory has a number, by which later passes speak of it; it is also the access's
//! site for the core.

pub mod visit;

use crate::check::types::{Ty, Types};
use crate::span::Span;
pub use crate::syntax::ast::{Binary, Unary};

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as a table index.
            #[allow(dead_code, reason = "some numbers are only compared")]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index!(
    /// A body: a procedure or the block of a task.
    BodyId
);
index!(
    /// A local variable of a body.
    LocalId
);
index!(
    /// A shared scalar, in the order of declaration.
    SharedId
);
index!(
    /// A global with a fixed value: a top-level `let`, a shared array, a promise, a region.
    FixedId
);
index!(
    /// An access to shared memory in the text of the program.
    AccessId
);
index!(
    /// A set of arrays that the types cannot tell apart.
    ClassId
);
index!(
    /// A place in the text that makes arrays or promises.
    MakerId
);
index!(
    /// A loop in the text.
    LoopId
);

/// A whole program.
#[derive(Debug)]
pub struct Hir {
    /// All bodies; those of procedures first, in the order of the text.
    pub bodies: Vec<Body>,
    /// The shared scalars: names and types.
    pub shareds: Vec<(String, Ty)>,
    /// How many fixed globals there are.
    pub fixeds: u32,
    /// Runs before `main`: gives the globals their values.
    pub setup: BodyId,
    /// Where the program starts.
    pub main: BodyId,
    /// All accesses.
    pub accesses: Vec<Access>,
    /// All makers.
    pub makers: Vec<Maker>,
    /// For every class of arrays: can more than one task reach them?
    pub escaping: Vec<bool>,
    /// The types, for what depends on them.
    pub types: Types,
}

/// A procedure or the block of a task.
#[derive(Debug)]
pub struct Body {
    /// The procedure's name; `None` for a block.
    pub name: Option<String>,
    /// The locals that get their values from the caller or creator.
    pub params: Vec<LocalId>,
    /// The names of the locals.
    pub locals: Vec<String>,
    /// The statements.
    pub block: Vec<Stmt>,
    /// Does it contain a spawn, so that it ends with a sync?
    pub spawns: bool,
    /// Its closing brace.
    pub end: Span,
}

/// Read or write of shared memory.
#[derive(Debug, Clone, Copy)]
pub struct Access {
    /// Where.
    pub span: Span,
    /// Is it a write?
    pub write: bool,
    /// What is accessed.
    pub target: Target,
}

/// What an access accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// A scalar.
    Shared(SharedId),
    /// An element of an array of this class.
    Class(ClassId),
}

/// A place in the text that makes arrays or promises.
#[derive(Debug)]
pub struct Maker {
    /// The name of the variable that they are first bound to.
    pub name: Option<String>,
    /// Where.
    pub span: Span,
    /// Is it `new`, whose arrays need a place to be recognised by?
    pub is_new: bool,
    /// What the elements of its arrays are.
    pub element: Option<Ty>,
}

/// How a task is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartKind {
    /// `async`
    Async,
    /// An iteration of `forall`.
    Forall,
    /// An iteration of `forasync`.
    Forasync,
    /// `spawn`
    Spawn,
    /// `future`
    Future,
    /// `post`
    Post,
}

/// A region: a local or a global one.
#[derive(Debug, Clone, Copy)]
pub enum RegionRef {
    /// A local one.
    Local(LocalId),
    /// A global one.
    Fixed(FixedId),
}

/// The creation of a task.
#[derive(Debug)]
pub struct Start {
    /// How.
    pub kind: StartKind,
    /// What the task does.
    pub body: BodyId,
    /// The values of its parameters.
    pub args: Vec<Expr>,
    /// Where the handle of a future goes.
    pub handle: Option<LocalId>,
    /// Where a task is posted to.
    pub region: Option<RegionRef>,
    /// What is done with the result of a posted task when it is joined.
    pub then: Option<Then>,
    /// Where.
    pub span: Span,
}

/// A return handler.
#[derive(Debug)]
pub struct Then {
    /// What the result is called.
    pub value: LocalId,
    /// What is done.
    pub block: Vec<Stmt>,
}

/// A statement.
#[derive(Debug)]
pub enum Stmt {
    /// A local gets a value.
    Assign(LocalId, Expr),
    /// A shared scalar gets a value.
    WriteShared(SharedId, Expr, AccessId),
    /// A fixed global gets its value. In the set-up only.
    Fix(FixedId, Expr),
    /// An array element gets a value.
    Store {
        /// The array.
        array: Expr,
        /// Which element.
        index: Expr,
        /// The value.
        value: Expr,
        /// The access.
        access: AccessId,
    },
    /// An expression for its effect.
    Expr(Expr),
    /// `if`
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// `while`
    While(LoopId, Expr, Vec<Stmt>),
    /// `for`
    For(For),
    /// A new task.
    Start(Box<Start>),
    /// `finish`
    Finish(Vec<Stmt>, Span),
    /// `isolated`
    Isolated(Vec<Stmt>, Span),
    /// `sync`
    Sync(Span),
    /// `set`
    Set(Expr, Option<Expr>, Span),
    /// A new region.
    Region(LocalId),
    /// `await`
    Await(RegionRef, Span),
    /// `ewait`
    Ewait(RegionRef, Span),
    /// `print`
    Print(Vec<Printed>, Span),
    /// `assert`
    Assert(Expr),
    /// `return`
    Return(Option<Expr>, Span),
}

/// A `for` loop.
#[derive(Debug)]
pub struct For {
    /// Its number.
    pub id: LoopId,
    /// The iterator.
    pub local: LocalId,
    /// Its first value.
    pub low: Expr,
    /// The value after its last.
    pub high: Expr,
    /// Where that value is kept while the loop runs.
    pub bound: LocalId,
    /// The body.
    pub block: Vec<Stmt>,
    /// The head.
    pub span: Span,
}

/// What `print` prints.
#[derive(Debug)]
pub enum Printed {
    /// A text.
    Text(String),
    /// A value.
    Value(Expr, Ty),
}

/// An expression.
#[derive(Debug, Clone)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
}

/// The kinds of expressions.
#[derive(Debug, Clone)]
pub enum ExprKind {
    /// A number, a truth value or null: values are 64 bits whose meaning the types know.
    Value(i64),
    /// A local.
    Local(LocalId),
    /// A fixed global.
    Fixed(FixedId),
    /// A shared scalar.
    ReadShared(SharedId, AccessId),
    /// An array element.
    Load(Box<Expr>, Box<Expr>, AccessId),
    /// A call.
    Call(BodyId, Vec<Expr>),
    /// The length of an array.
    Len(Box<Expr>),
    /// A new array.
    New(Box<Expr>, MakerId),
    /// A new array of new promises.
    NewPromises(Box<Expr>, MakerId),
    /// A new promise.
    NewPromise(MakerId),
    /// A new region. In the set-up only.
    NewRegion,
    /// The value of a promise or future: the type of the handle says which.
    Get(Box<Expr>, Ty),
    /// An operator with one operand.
    Unary(Unary, Box<Expr>),
    /// An operator with two operands.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `&&`
    And(Box<Expr>, Box<Expr>),
    /// `||`
    Or(Box<Expr>, Box<Expr>),
}
