//! DagSan's task language: every construct of the papers, to be written, run and judged.
//!
//! docs/language.md has the grammar and the meaning. The way of a program:
//!
//! ```text
//!   text ─ syntax ─► tree ─ check ─► Hir ─ eliminate ─► Plan ─ compile ─► Code ─ vm ─► events and accesses
//!                          names,         which accesses        operations            to the core
//!                          types          need no check
//! ```

mod check;
mod commute;
mod compile;
mod eliminate;
mod hir;
mod limits;
mod lines;
mod run;
mod schedule;
mod span;
mod syntax;
mod vm;

use dagsan_core::{Consumer, SiteId};

use compile::Mode;
use compile::op::{Code, Op};
use eliminate::Plan;
pub use eliminate::{Elimination, Eliminations};
use hir::Hir;
pub use limits::Limits;
pub use lines::Lines;
pub use run::{Blocked, Counts, End, Failure, Run, TaskInfo};
pub use schedule::{CellName, Choice, Point, Scheduler, TaskPath};
pub use span::{Diagnostic, Span};
use vm::{Gate, Machine};

/// How a program is compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileOptions {
    /// The static check eliminations to apply.
    pub eliminations: Eliminations,
    /// Collect accesses? If not, the program can only be run plainly.
    pub checks: bool,
    /// Count accesses, for statistics?
    pub count: bool,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions { eliminations: Eliminations::all(), checks: true, count: false }
    }
}

/// The largest source, in bytes: more than enough accesses for 30-bit site numbers.
const MAX_SOURCE: usize = 1 << 28;

/// A compiled program.
#[derive(Debug)]
pub struct Program {
    hir: Hir,
    plan: Plan,
    code: Code,
    lines: Lines,
    checks: bool,
    /// For every access: see [`Program::commutes`].
    commuting: Vec<bool>,
}

impl Program {
    /// Compiles `source`, or says all that is wrong with it, in the order of the text.
    pub fn compile(source: &str, options: &CompileOptions) -> Result<Program, Vec<Diagnostic>> {
        if source.len() > MAX_SOURCE {
            let message = format!("this file is larger than {MAX_SOURCE} bytes");
            return Err(vec![Diagnostic::new(Span::default(), message, "")]);
        }
        let mut diagnostics = Vec::new();
        let tree = syntax::parse(source, &mut diagnostics);
        // Names and types of what could not be read would only raise errors that are not there.
        let hir = if diagnostics.is_empty() { check::check(&tree, &mut diagnostics) } else { None };
        let Some(hir) = hir else {
            diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
            return Err(diagnostics);
        };
        debug_assert!(hir.accesses.len() <= SiteId::MAX as usize);
        let plan = Plan::new(&hir, options.eliminations);
        let mode = Mode { checks: options.checks, count: options.count };
        let code = compile::compile(&hir, &plan, mode).map_err(|diagnostic| vec![diagnostic])?;
        let commuting = commute::commuting(&hir);
        Ok(Program { hir, plan, code, lines: Lines::new(source), checks: options.checks, commuting })
    }

    /// Runs the program and tells `consumer`. Nothing is told if it was compiled without checks.
    pub fn run<'c>(&self, limits: &'c Limits, consumer: &'c mut (dyn Consumer + 'c)) -> Run<'_> {
        let mut machine = self.machine(limits, Some(consumer));
        let end = machine.run();
        self.result(machine, end)
    }

    /// Runs the program, and tells nobody.
    pub fn run_plain(&self, limits: &Limits) -> Run<'_> {
        let mut machine = self.machine(limits, None);
        let end = machine.run();
        self.result(machine, end)
    }

    /// As [`Program::run`], with a scheduler that decides the order of isolated sections and what ewait joins.
    /// Everything else runs before it is asked.
    pub fn run_scheduled<'c>(
        &self,
        limits: &'c Limits,
        consumer: &'c mut (dyn Consumer + 'c),
        scheduler: &mut dyn Scheduler,
    ) -> Run<'_> {
        let mut machine = self.machine(limits, Some(consumer));
        let end = machine.run_scheduled(scheduler);
        self.result(machine, end)
    }

    /// As [`Program::run_plain`], with a scheduler.
    pub fn run_plain_scheduled(&self, limits: &Limits, scheduler: &mut dyn Scheduler) -> Run<'_> {
        let mut machine = self.machine(limits, None);
        let end = machine.run_scheduled(scheduler);
        self.result(machine, end)
    }

    /// Runs the program so that `second` comes before `first`, which it follows in the schedule, if that can be; says
    /// whether it could. The program must have been compiled to count accesses.
    pub fn run_reversed(
        &self,
        limits: &Limits,
        scheduler: &mut dyn Scheduler,
        (first, second): (Point, Point),
    ) -> (Run<'_>, bool) {
        let mut machine = self.machine(limits, None);
        machine.gate = Some(Gate::new(first, second));
        let end = machine.run_scheduled(scheduler);
        let passed = machine.gate.as_ref().is_some_and(Gate::passed);
        (self.result(machine, end), passed)
    }

    fn machine<'p, 'c>(
        &'p self,
        limits: &'c Limits,
        consumer: Option<&'c mut (dyn Consumer + 'c)>,
    ) -> Machine<'p, 'c> {
        Machine::new(&self.hir, &self.code, limits, consumer.filter(|_| self.checks))
    }

    fn result<'p>(&'p self, machine: Machine<'p, '_>, end: End) -> Run<'p> {
        Run::new(machine, end, &self.code, &self.plan, &self.lines)
    }

    /// Does the program contain isolated sections or ewait, so that one run may not be enough?
    pub fn has_choices(&self) -> bool {
        self.has_isolated() || self.has_ewait()
    }

    /// Does it contain isolated sections?
    pub fn has_isolated(&self) -> bool {
        self.code.ops.contains(&Op::IsolatedBegin)
    }

    /// Does it contain an ewait?
    pub fn has_ewait(&self) -> bool {
        self.code.ops.iter().any(|op| matches!(op, Op::Ewait(_)))
    }

    /// Do isolated sections do nothing to the target of this access but what commutes: only add to it, for example?
    pub fn commutes(&self, site: SiteId) -> bool {
        self.commuting.get(site.number() as usize).copied().unwrap_or(false)
    }
}
