//! One body: its registers, its open scopes, its entry and its end.

use rustc_hash::FxHashMap;

use super::Mode;
use super::op::{Code, Handler, Op, Reg};
use crate::eliminate::Plan;
use crate::hir::{Body, FixedId, Hir, LocalId, Then, visit};
use crate::span::{Diagnostic, Span};

/// How many registers a frame may have.
const MAX_REGISTERS: u32 = 60_000;

/// A scope of the body that a `return` has to close.
#[derive(Debug, Clone, Copy)]
pub(super) enum Open {
    Finish(Span),
    Isolated(Span),
}

pub(super) struct BodyCompiler<'a> {
    pub(super) hir: &'a Hir,
    pub(super) plan: &'a Plan,
    pub(super) mode: Mode,
    pub(super) code: &'a mut Code,
    pub(super) body: &'a Body,
    /// The register of each local.
    locals: Vec<Reg>,
    /// The register of each fixed global that the body uses.
    fixed: FxHashMap<FixedId, Reg>,
    next: u32,
    most: u32,
    pub(super) open: Vec<Open>,
    /// The return handlers, to be compiled after the body.
    pub(super) handlers: Vec<(u32, &'a Then)>,
}

impl<'a> BodyCompiler<'a> {
    pub(super) fn new(
        hir: &'a Hir,
        plan: &'a Plan,
        mode: Mode,
        code: &'a mut Code,
        body: &'a Body,
    ) -> BodyCompiler<'a> {
        let mut compiler = BodyCompiler {
            hir,
            plan,
            mode,
            code,
            body,
            locals: vec![0; body.locals.len()],
            fixed: FxHashMap::default(),
            next: 0,
            most: 0,
            open: Vec::new(),
            handlers: Vec::new(),
        };
        let params = body.params.iter().copied();
        let others = (0..body.locals.len() as u32).map(LocalId).filter(|local| !body.params.contains(local));
        for local in params.chain(others) {
            compiler.locals[local.index()] = compiler.temp();
        }
        compiler
    }

    pub(super) fn compile(mut self) -> Result<(), Diagnostic> {
        let entry = self.code.here();
        self.load_fixed();
        if self.body.spawns && self.body.name.is_some() {
            self.emit(Op::FrameBegin, self.body.end);
        }
        let body = self.body;
        self.stmts(&body.block);
        self.close_frame(self.body.end);
        self.emit(Op::ReturnNothing, self.body.end);
        while let Some((number, then)) = self.handlers.pop() {
            // A handler runs in the middle of the body, whose temporaries must survive it.
            self.next = self.most;
            self.code.handlers[number as usize] =
                Handler { entry: self.code.here(), value: self.local(then.value) };
            self.stmts(&then.block);
            self.emit(Op::Handled, self.body.end);
        }
        if self.most > MAX_REGISTERS {
            let message = format!("this has more than {MAX_REGISTERS} variables and intermediate values");
            return Err(Diagnostic::new(self.body.end, message, "").help("cut it into several procedures"));
        }
        // Register 0 takes the result, also of a procedure that has no other use for it.
        self.code.add_function(self.body.name.clone(), entry, self.most.max(1));
        Ok(())
    }

    /// The implicit sync, and the end of the procedure instance.
    pub(super) fn close_frame(&mut self, span: Span) {
        if self.body.spawns {
            self.emit(Op::Sync, span);
            if self.body.name.is_some() {
                self.emit(Op::FrameEnd, span);
            }
        }
    }

    pub(super) fn emit(&mut self, op: Op, span: Span) -> usize {
        self.code.push(op, span)
    }

    // ---- registers -------------------------------------------------------------------------------

    pub(super) fn local(&self, local: LocalId) -> Reg {
        self.locals[local.index()]
    }

    pub(super) fn fixed(&self, fixed: FixedId) -> Reg {
        self.fixed[&fixed]
    }

    /// A new temporary. A frame that has too many is refused in the end; until then numbers may repeat.
    pub(super) fn temp(&mut self) -> Reg {
        let reg = self.next;
        self.next += 1;
        self.most = self.most.max(self.next);
        reg.min(u32::from(Reg::MAX)) as Reg
    }

    /// Forgets the temporaries since `mark`, which was made by [`Self::mark`].
    pub(super) fn release(&mut self, mark: u32) {
        self.next = mark;
    }

    pub(super) fn mark(&self) -> u32 {
        self.next
    }

    fn load_fixed(&mut self) {
        for id in visit::fixeds(&self.body.block) {
            if !self.fixed.contains_key(&id) {
                let reg = self.temp();
                self.fixed.insert(id, reg);
                // In the set-up they have no value yet: `Fix` gives them one, in the register too.
                self.emit(Op::Fixed(reg, id.0), self.body.end);
            }
        }
    }
}
