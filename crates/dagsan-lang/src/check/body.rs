//! The body that is being checked: its locals, its scopes, and what a task's block takes from outside.

use rustc_hash::FxHashMap;

use super::{Checker, Global};
use crate::hir::{Body, BodyId, Expr, ExprKind, FixedId, LocalId, SharedId, Stmt};
use crate::span::{Diagnostic, Span};
use crate::syntax::ast::Name;

use super::types::Ty;

/// What a name means.
#[derive(Debug, Clone, Copy)]
pub(super) enum Meaning {
    Local(LocalId),
    /// A region of a body around this one, where it cannot be used.
    OutOfReach(Span),
    Shared(SharedId, Ty),
    Fixed(FixedId, Ty),
    Region(FixedId),
}

#[derive(Debug, Clone)]
pub(super) struct Local {
    pub(super) name: String,
    pub(super) ty: Ty,
    pub(super) mutable: bool,
    pub(super) region: bool,
    pub(super) span: Span,
}

/// A body that is being checked.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) name: Option<String>,
    pub(super) result: Ty,
    pub(super) params: Vec<LocalId>,
    pub(super) locals: Vec<Local>,
    /// For a block: which local of the body around it each parameter is a copy of.
    pub(super) captures: Vec<LocalId>,
    pub(super) spawns: bool,
    /// Inside how many isolated sections?
    pub(super) isolated: u32,
    /// Inside a return handler?
    pub(super) handler: bool,
    scopes: Vec<FxHashMap<String, LocalId>>,
}

impl Context {
    pub(super) fn new(name: Option<String>, result: Ty) -> Context {
        Context {
            name,
            result,
            params: Vec::new(),
            locals: Vec::new(),
            captures: Vec::new(),
            spawns: false,
            isolated: 0,
            handler: false,
            scopes: vec![FxHashMap::default()],
        }
    }

    fn find(&self, name: &str) -> Option<LocalId> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name).copied())
    }

    fn add(&mut self, local: Local) -> LocalId {
        self.locals.push(local);
        LocalId(self.locals.len() as u32 - 1)
    }
}

impl Checker<'_> {
    /// The innermost body.
    pub(super) fn context(&mut self) -> &mut Context {
        self.contexts.last_mut().expect("something is only checked inside a body")
    }

    pub(super) fn local(&mut self, id: LocalId) -> Local {
        self.context().locals[id.index()].clone()
    }

    pub(super) fn open_scope(&mut self) {
        self.context().scopes.push(FxHashMap::default());
    }

    pub(super) fn close_scope(&mut self) {
        self.context().scopes.pop();
    }

    pub(super) fn declare_local(&mut self, name: &Name, ty: Ty, mutable: bool) -> LocalId {
        self.enter_local(name, ty, mutable, false)
    }

    /// A local that the program cannot name.
    pub(super) fn unnamed_local(&mut self, ty: Ty, span: Span) -> LocalId {
        self.context().add(Local { name: String::new(), ty, mutable: false, region: false, span })
    }

    pub(super) fn declare_region(&mut self, name: &Name) -> LocalId {
        let ty = self.types.unknown();
        self.enter_local(name, ty, false, true)
    }

    fn enter_local(&mut self, name: &Name, ty: Ty, mutable: bool, region: bool) -> LocalId {
        let local = Local { name: name.text.clone(), ty, mutable, region, span: name.span };
        let context = self.context();
        let id = context.add(local);
        let scope = context.scopes.last_mut().expect("a body has at least one scope");
        if let Some(before) = scope.insert(name.text.clone(), id) {
            let span = self.local(before).span;
            let message = format!("a second variable called `{}` in one block", name.text);
            self.error(
                Diagnostic::new(name.span, message, "the name is taken").other(span, "first one here"),
            );
        }
        id
    }

    /// What `name` means here. A local of a body around this one is copied into this one.
    pub(super) fn lookup(&mut self, name: &str) -> Option<Meaning> {
        if let Some(found) = self.lookup_local(name, self.contexts.len() - 1) {
            return Some(found);
        }
        self.globals.get(name).map(|&(global, _)| match global {
            Global::Shared(id, ty) => Meaning::Shared(id, ty),
            Global::Fixed(id, ty) => Meaning::Fixed(id, ty),
            Global::Region(id) => Meaning::Region(id),
        })
    }

    fn lookup_local(&mut self, name: &str, depth: usize) -> Option<Meaning> {
        if let Some(id) = self.contexts[depth].find(name) {
            return Some(Meaning::Local(id));
        }
        let outer = depth.checked_sub(1)?;
        let Meaning::Local(id) = self.lookup_local(name, outer)? else {
            return self.lookup_local(name, outer);
        };
        let local = self.contexts[outer].locals[id.index()].clone();
        if local.region {
            return Some(Meaning::OutOfReach(local.span));
        }
        self.crossing.push(local.ty);
        let context = &mut self.contexts[depth];
        let copy = context.add(local);
        // In the outermost scope of the block: every use of the name in it means the same copy.
        context.scopes[0].insert(name.to_owned(), copy);
        context.params.push(copy);
        context.captures.push(id);
        Some(Meaning::Local(copy))
    }

    /// Ends the innermost body. A procedure's number is known; a block gets the next one.
    pub(super) fn close_body(
        &mut self,
        id: Option<BodyId>,
        block: Vec<Stmt>,
        end: Span,
    ) -> (BodyId, Vec<Expr>) {
        let context = self.contexts.pop().expect("the body was opened");
        let body = Body {
            name: context.name,
            params: context.params,
            locals: context.locals.into_iter().map(|local| local.name).collect(),
            block,
            spawns: context.spawns,
            end,
        };
        let id = id.unwrap_or_else(|| {
            self.bodies.push(None);
            BodyId(self.bodies.len() as u32 - 1)
        });
        self.bodies[id.index()] = Some(body);
        let captures = context.captures.iter().map(|&local| Expr { kind: ExprKind::Local(local), span: end });
        (id, captures.collect())
    }
}
