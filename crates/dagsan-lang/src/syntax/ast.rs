//! What a program looks like: the tree that the parser builds, names not yet resolved.

use crate::span::Span;

/// A name where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Where.
    pub span: Span,
}

/// A whole program.
#[derive(Debug, Default)]
pub struct Program {
    /// Its top-level items, in order.
    pub items: Vec<Item>,
}

/// Something at the top level.
#[derive(Debug)]
pub enum Item {
    /// `shared x = 0;` or `shared x;`
    Shared(Name, Option<Expr>),
    /// `shared a[n];`
    SharedArray(Name, Expr),
    /// `promise p;` or `promise ps[n];`
    Promise(Name, Option<Expr>),
    /// `region r;`
    Region(Name),
    /// `let n = 4;`
    Let(Name, Expr),
    /// `proc f(a, b) { … }`
    Proc(Proc),
}

/// A procedure.
#[derive(Debug)]
pub struct Proc {
    /// Its name.
    pub name: Name,
    /// Its parameters.
    pub params: Vec<Name>,
    /// Its body.
    pub body: Block,
}

/// Statements in braces.
#[derive(Debug)]
pub struct Block {
    /// The statements.
    pub stmts: Vec<Stmt>,
    /// From brace to brace.
    pub span: Span,
}

/// A statement.
#[derive(Debug)]
pub struct Stmt {
    /// What it does.
    pub kind: StmtKind,
    /// Where it stands; for a block statement, its head.
    pub span: Span,
}

/// A call.
#[derive(Debug)]
pub struct Call {
    /// The procedure.
    pub name: Name,
    /// The arguments.
    pub args: Vec<Expr>,
    /// From the name to the closing parenthesis.
    pub span: Span,
}

/// What a new task does.
#[derive(Debug)]
pub enum Work {
    /// `{ … }`
    Block(Block),
    /// `f(x)`
    Call(Call),
}

/// How the iterations of a loop relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopKind {
    /// `for`: one after the other.
    For,
    /// `forall`: a task each, joined at the end.
    Forall,
    /// `forasync`: a task each.
    Forasync,
}

/// The kinds of statements.
#[derive(Debug)]
pub enum StmtKind {
    /// `{ … }`
    Block(Block),
    /// `let x = e;`
    Let(Name, Expr),
    /// `var x = e;`
    Var(Name, Expr),
    /// `place = e;`
    Assign(Expr, Expr),
    /// A call or get for its effect.
    Expr(Expr),
    /// `if e { … } else { … }`
    If(Expr, Block, Option<Block>),
    /// `while e { … }`
    While(Expr, Block),
    /// `for i in a..b { … }`, `forall`, `forasync`
    Loop(LoopKind, Name, Expr, Expr, Block),
    /// `async …`
    Async(Work),
    /// `spawn …`
    Spawn(Work),
    /// `future f = …;`
    Future(Name, Work),
    /// `finish { … }`
    Finish(Block),
    /// `isolated { … }`
    Isolated(Block),
    /// `sync;`
    Sync,
    /// `promise p;` or `promise ps[n];`
    Promise(Name, Option<Expr>),
    /// `set p;` or `set p = e;`
    Set(Expr, Option<Expr>),
    /// `region r;`
    Region(Name),
    /// `post r <- f(x);` or `post r <- f(x) then v { … }`
    Post(Name, Call, Option<(Name, Block)>),
    /// `await r;`
    Await(Name),
    /// `ewait r;`
    Ewait(Name),
    /// `print e, "text";`
    Print(Vec<Printed>),
    /// `assert e;`
    Assert(Expr),
    /// `skip;`
    Skip,
    /// `return;` or `return e;`
    Return(Option<Expr>),
}

/// What `print` prints.
#[derive(Debug)]
pub enum Printed {
    /// A text.
    Text(String),
    /// A value.
    Value(Expr),
}

/// An expression.
#[derive(Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
    /// How many expressions it is deep. The parser bounds it, so that later passes may recurse.
    pub depth: u32,
}

/// Operators with one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unary {
    /// `!`
    Not,
    /// `-`
    Neg,
}

/// Operators with two operands that are both evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// The kinds of expressions.
#[derive(Debug)]
pub enum ExprKind {
    /// A number.
    Int(i64),
    /// `true`, `false`
    Bool(bool),
    /// `null`
    Null,
    /// A name.
    Name(String),
    /// `a[i]`
    Index(Box<Expr>, Box<Expr>),
    /// `f(x)`
    Call(Call),
    /// `len(a)`
    Len(Box<Expr>),
    /// `new [n]`
    New(Box<Expr>),
    /// `get p`
    Get(Box<Expr>),
    /// `!a`, `-a`
    Unary(Unary, Box<Expr>),
    /// `a + b` and so on
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `a && b`
    And(Box<Expr>, Box<Expr>),
    /// `a || b`
    Or(Box<Expr>, Box<Expr>),
}
