//! Names and types: from the tree of the parser to the checked program.
//!
//! Types are inferred by unification; procedures are not generic. One pass over the bodies resolves names,
//! unifies, and builds the [`Hir`]; what can only be said when all types are known (has this a value?
//! can it be printed?) is written down and looked at in the end.

mod body;
mod expr;
mod stmt;
pub mod types;

use rustc_hash::FxHashMap;

use crate::hir::{self, Access, AccessId, Body, BodyId, ClassId, FixedId, Hir, LoopId, Maker, MakerId};
use crate::hir::{SharedId, Target};
use crate::span::{Diagnostic, Span};
use crate::syntax::ast::{self, Item, Name};
use body::Context;
use types::{Ty, Type, Types};

/// How many errors are reported before giving up.
const MAX_ERRORS: usize = 50;

/// Checks a program. `None` if something is wrong; `diagnostics` says what.
pub fn check(program: &ast::Program, diagnostics: &mut Vec<Diagnostic>) -> Option<Hir> {
    let mut checker = Checker::new(diagnostics);
    checker.declare_procs(program);
    checker.bodies(program);
    checker.finish()
}

/// What a global name means.
#[derive(Debug, Clone, Copy)]
enum Global {
    Shared(SharedId, Ty),
    Fixed(FixedId, Ty),
    Region(FixedId),
}

/// What is known of a procedure.
#[derive(Debug, Clone)]
struct Signature {
    body: BodyId,
    params: Vec<Ty>,
    result: Ty,
    span: Span,
}

/// What must hold of a type once all is known.
#[derive(Debug, Clone, Copy)]
enum Need {
    /// It is not nothing.
    Value,
    /// `print` can print it.
    Printable,
    /// It can be null.
    Nullable,
}

struct Checker<'a> {
    types: Types,
    globals: FxHashMap<String, (Global, Span)>,
    procs: FxHashMap<String, Signature>,
    shareds: Vec<(String, Ty)>,
    fixeds: u32,
    bodies: Vec<Option<Body>>,
    setup: BodyId,
    accesses: Vec<(Access, Ty)>,
    makers: Vec<Maker>,
    loops: u32,
    /// Values of these types reach other tasks.
    crossing: Vec<Ty>,
    needs: Vec<(Ty, Span, Need)>,
    /// The bodies around the current statement, outermost first.
    contexts: Vec<Context>,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl<'a> Checker<'a> {
    fn new(diagnostics: &'a mut Vec<Diagnostic>) -> Checker<'a> {
        Checker {
            types: Types::new(),
            globals: FxHashMap::default(),
            procs: FxHashMap::default(),
            shareds: Vec::new(),
            fixeds: 0,
            bodies: Vec::new(),
            setup: BodyId(0),
            accesses: Vec::new(),
            makers: Vec::new(),
            loops: 0,
            crossing: Vec::new(),
            needs: Vec::new(),
            contexts: Vec::new(),
            diagnostics,
        }
    }

    fn error(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < MAX_ERRORS {
            self.diagnostics.push(diagnostic);
        }
    }

    // ---- globals ---------------------------------------------------------------------------------

    /// Enters all procedures, which may be used before they are written.
    fn declare_procs(&mut self, program: &ast::Program) {
        for item in &program.items {
            let Item::Proc(procedure) = item else { continue };
            let signature = Signature {
                body: BodyId(self.bodies.len() as u32),
                params: procedure.params.iter().map(|_| self.types.unknown()).collect(),
                result: self.types.unknown(),
                span: procedure.name.span,
            };
            self.bodies.push(None);
            if let Some(before) = self.procs.get(&procedure.name.text) {
                let span = before.span;
                self.duplicate("procedure", &procedure.name, span);
            } else {
                self.procs.insert(procedure.name.text.clone(), signature);
            }
        }
    }

    fn duplicate(&mut self, what: &str, name: &Name, before: Span) {
        let message = format!("a second {what} called `{}`", name.text);
        self.error(Diagnostic::new(name.span, message, "the name is taken").other(before, "first one here"));
    }

    fn enter_global(&mut self, name: &Name, global: Global) {
        if let Some(&(_, span)) = self.globals.get(&name.text) {
            self.duplicate("global", name, span);
        }
        self.globals.insert(name.text.clone(), (global, name.span));
        if let Global::Shared(_, ty) | Global::Fixed(_, ty) = global {
            self.crossing.push(ty);
        }
    }

    fn add_shared(&mut self, name: &Name, ty: Ty) -> SharedId {
        self.shareds.push((name.text.clone(), ty));
        let id = SharedId(self.shareds.len() as u32 - 1);
        self.enter_global(name, Global::Shared(id, ty));
        id
    }

    fn add_fixed(&mut self, name: &Name, ty: Option<Ty>) -> FixedId {
        self.fixeds += 1;
        let id = FixedId(self.fixeds - 1);
        self.enter_global(name, ty.map_or(Global::Region(id), |ty| Global::Fixed(id, ty)));
        id
    }

    fn add_maker(&mut self, name: Option<&Name>, span: Span, is_new: bool, element: Option<Ty>) -> MakerId {
        self.makers.push(Maker { name: name.map(|name| name.text.clone()), span, is_new, element });
        MakerId(self.makers.len() as u32 - 1)
    }

    fn add_loop(&mut self) -> LoopId {
        self.loops += 1;
        LoopId(self.loops - 1)
    }

    /// A new access to an array of type `array`, or to a scalar.
    fn add_access(&mut self, span: Span, write: bool, target: Result<SharedId, Ty>) -> AccessId {
        let (target, class) = match target {
            Ok(shared) => (Target::Shared(shared), Types::INT),
            // The class is filled in when all types are known.
            Err(array) => (Target::Class(ClassId(0)), array),
        };
        self.accesses.push((Access { span, write, target }, class));
        AccessId(self.accesses.len() as u32 - 1)
    }

    // ---- bodies ----------------------------------------------------------------------------------

    fn bodies(&mut self, program: &ast::Program) {
        let result = self.types.unknown();
        self.contexts.push(Context::new(None, result));
        let mut setup = Vec::new();
        for item in &program.items {
            self.global(item, &mut setup);
        }
        let end = program.items.first().map_or(Span::default(), item_span);
        let (setup, _) = self.close_body(None, setup, end);
        self.setup = setup;
        for item in &program.items {
            let Item::Proc(procedure) = item else { continue };
            // The second of two of a name is checked with the signature of the first.
            let Some(signature) = self.procs.get(&procedure.name.text).cloned() else { continue };
            if signature.span == procedure.name.span {
                self.procedure(procedure, &signature);
            }
        }
    }

    fn global(&mut self, item: &Item, setup: &mut Vec<hir::Stmt>) {
        match item {
            Item::Shared(name, None) => {
                let ty = self.types.unknown();
                self.add_shared(name, ty);
            }
            Item::Shared(name, Some(value)) => {
                let (mut value, ty) = self.value(value);
                self.name_maker(&mut value, &name.text);
                let id = self.add_shared(name, ty);
                let access = self.add_access(name.span, true, Ok(id));
                setup.push(hir::Stmt::WriteShared(id, value, access));
            }
            Item::SharedArray(name, length) => {
                let length = self.expect(Types::INT, length);
                let element = self.types.unknown();
                let ty = self.types.add(Type::Array(element));
                let maker = self.add_maker(Some(name), name.span, false, Some(element));
                let id = self.add_fixed(name, Some(ty));
                let kind = hir::ExprKind::New(Box::new(length), maker);
                setup.push(hir::Stmt::Fix(id, hir::Expr { kind, span: name.span }));
            }
            Item::Promise(name, length) => {
                let (value, ty) = self.new_promise(name, length.as_ref());
                let id = self.add_fixed(name, Some(ty));
                setup.push(hir::Stmt::Fix(id, value));
            }
            Item::Region(name) => {
                let id = self.add_fixed(name, None);
                let value = hir::Expr { kind: hir::ExprKind::NewRegion, span: name.span };
                setup.push(hir::Stmt::Fix(id, value));
            }
            Item::Let(name, value) => {
                let (mut value, ty) = self.value(value);
                self.name_maker(&mut value, &name.text);
                let id = self.add_fixed(name, Some(ty));
                setup.push(hir::Stmt::Fix(id, value));
            }
            Item::Proc(_) => {}
        }
    }

    fn procedure(&mut self, procedure: &ast::Proc, signature: &Signature) {
        self.contexts.push(Context::new(Some(procedure.name.text.clone()), signature.result));
        for (name, &ty) in procedure.params.iter().zip(&signature.params) {
            let local = self.declare_local(name, ty, false);
            self.context().params.push(local);
        }
        let block = self.block(&procedure.body);
        self.check_result(&procedure.body, signature.result);
        self.close_body(Some(signature.body), block, closing_brace(procedure.body.span));
    }

    /// If a body can end without `return`, it gives nothing.
    fn check_result(&mut self, body: &ast::Block, result: Ty) {
        if stmt::falls_through(body) && !self.types.unify(result, Types::NOTHING) {
            let message =
                format!("this must return {}, but can end without `return`", self.types.describe(result));
            let span = closing_brace(body.span);
            self.error(Diagnostic::new(span, message, "expected a `return` before this"));
        }
    }

    // ---- the end ---------------------------------------------------------------------------------

    fn finish(mut self) -> Option<Hir> {
        self.check_needs();
        let main = self.find_main();
        if !self.diagnostics.is_empty() {
            return None;
        }
        let mut classes = vec![None; self.types.len()];
        let mut escaping = Vec::new();
        let reached = self.reached_by_tasks();
        let accesses = std::mem::take(&mut self.accesses);
        let accesses = accesses.into_iter().map(|(mut access, array)| {
            if let Target::Class(class) = &mut access.target {
                let root = self.types.root(array);
                *class = *classes[root.index()].get_or_insert_with(|| {
                    escaping.push(reached[root.index()]);
                    ClassId(escaping.len() as u32 - 1)
                });
            }
            access
        });
        let accesses = accesses.collect();
        let bodies: Option<Vec<Body>> = self.bodies.into_iter().collect();
        let bodies = bodies?;
        Some(Hir {
            bodies,
            shareds: self.shareds,
            fixeds: self.fixeds,
            setup: self.setup,
            main: main?,
            accesses,
            makers: self.makers,
            escaping,
            types: self.types,
        })
    }

    fn find_main(&mut self) -> Option<BodyId> {
        match self.procs.get("main").cloned() {
            None => {
                let help = "write `proc main() { … }`: the program starts there";
                self.error(Diagnostic::new(Span::default(), "there is no procedure `main`", "").help(help));
                None
            }
            Some(main) if !main.params.is_empty() => {
                self.error(Diagnostic::new(main.span, "`main` takes no parameters", ""));
                None
            }
            Some(main) => Some(main.body),
        }
    }

    fn check_needs(&mut self) {
        for (ty, span, need) in std::mem::take(&mut self.needs) {
            let found = self.types.get(ty);
            let (fine, wanted) = match need {
                Need::Value => (found != Type::Nothing, "a value"),
                Need::Printable => (matches!(found, Type::Int | Type::Bool | Type::Unknown), "int or bool"),
                Need::Nullable => (
                    matches!(found, Type::Array(_) | Type::Handle { .. } | Type::Unknown),
                    "something that can be null",
                ),
            };
            if !fine {
                let found = self.types.describe(ty);
                let message = format!("expected {wanted}, found {found}");
                let label = match need {
                    Need::Value => "this gives no value".to_owned(),
                    Need::Printable => format!("this is {found}"),
                    Need::Nullable => {
                        format!("this would be {found}; null is a reference, promise or future")
                    }
                };
                self.error(Diagnostic::new(span, message, label));
            }
        }
    }

    /// For every array type: can a value of it reach a task other than the one that made it? It can if it
    /// is a part of a global, of what is passed to a task, or of what a promise or future gives.
    fn reached_by_tasks(&self) -> Vec<bool> {
        let mut reached = vec![false; self.types.len()];
        let mut pending = self.crossing.clone();
        pending.extend(self.types.all_given());
        while let Some(ty) = pending.pop() {
            let root = self.types.root(ty);
            if std::mem::replace(&mut reached[root.index()], true) {
                continue;
            }
            if let Type::Array(element) = self.types.get(root) {
                pending.push(element);
            }
        }
        reached
    }
}

/// The closing brace of a block.
fn closing_brace(span: Span) -> Span {
    Span { start: span.end.saturating_sub(1), end: span.end }
}

fn item_span(item: &Item) -> Span {
    match item {
        Item::Shared(name, _) | Item::SharedArray(name, _) | Item::Promise(name, _) => name.span,
        Item::Region(name) | Item::Let(name, _) => name.span,
        Item::Proc(procedure) => procedure.name.span,
    }
}
