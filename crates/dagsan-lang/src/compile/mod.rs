//! The compiler: from the checked program to operations on registers.
//!
//! Locals have registers of their own, temporaries are a stack above them. Loops are inverted (the test
//! stands at the entry and at the end), so the entry is executed exactly when there is a first
//! iteration: the zero-trip test of hoisted checks. Fixed globals are loaded once, at the entry of a body.

mod body;
mod expr;
pub mod op;
mod stmt;

use crate::eliminate::Plan;
use crate::hir::{Body, BodyId, Expr, ExprKind, Hir, Stmt};
use crate::span::{Diagnostic, Span};
use body::BodyCompiler;
use op::{Code, Function, Op};

/// What the compiled form is to do besides running the program.
#[derive(Debug, Clone, Copy)]
pub struct Mode {
    /// Collect accesses?
    pub checks: bool,
    /// Count them?
    pub count: bool,
}

/// The first cell of the shared scalars. Cell 0 is never used: a reference to it would be null.
pub const FIRST_CELL: u32 = 1;

/// Compiles a program. It can only fail if the program is too large.
pub fn compile(hir: &Hir, plan: &Plan, mode: Mode) -> Result<Code, Diagnostic> {
    let mut code = Code::default();
    for body in &hir.bodies {
        BodyCompiler::new(hir, plan, mode, &mut code, body).compile()?;
    }
    let first = first_body(hir);
    BodyCompiler::new(hir, plan, mode, &mut code, &first).compile()?;
    if u32::try_from(code.ops.len()).is_err() {
        return Err(Diagnostic::new(Span::default(), "this program is too large", ""));
    }
    Ok(code)
}

/// What the main task does: the set-up, then `main`.
fn first_body(hir: &Hir) -> Body {
    let end = hir.bodies[hir.main.index()].end;
    let call = |body: BodyId| Stmt::Expr(Expr { kind: ExprKind::Call(body, Vec::new()), span: end });
    Body {
        name: Some("main".to_owned()),
        params: Vec::new(),
        locals: Vec::new(),
        block: vec![call(hir.setup), call(hir.main)],
        spawns: false,
        end,
    }
}

impl Code {
    fn push(&mut self, op: Op, span: Span) -> usize {
        self.ops.push(op);
        self.spans.push(span);
        self.ops.len() - 1
    }

    /// The number of the next operation.
    fn here(&self) -> u32 {
        self.ops.len() as u32
    }

    /// Makes the jump at `at` lead to `target`.
    fn aim(&mut self, at: usize, target: u32) {
        use Op::*;
        match &mut self.ops[at] {
            Jump(to) | JumpIf(_, to) | JumpUnless(_, to) | Next(_, _, to) => *to = target,
            JumpEq(_, _, to) | JumpNe(_, _, to) | JumpLt(_, _, to) | JumpLe(_, _, to) => *to = target,
            other => unreachable!("{other:?} is no jump"),
        }
    }

    fn add_function(&mut self, name: Option<String>, entry: u32, registers: u32) {
        self.functions.push(Function { name, entry, registers });
    }
}
