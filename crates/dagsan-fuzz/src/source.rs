//! Random programs of the task language, as text, the same for the same seed.
//!
//! A program type-checks by construction, and mostly ends, soon and without an error: loops are counted, every
//! integer that is used as an index has a known range, procedures call only earlier ones, and what a task waits
//! for is made before. Now and then one of this is broken on purpose. About half of the programs are racy: the
//! generator keeps, for every object and task, what the task may do to it without a race (`Perm`), and each
//! program has its own chance to ignore that.
//!
//! ```text
//!   source.rs   classes, the layout of a program, its budget
//!   scope.rs    variables, objects, and who may touch them
//!   exprs.rs    values, indices in range, conditions, calls
//!   stmts.rs    sequential statements: what the static eliminations look at
//!   tasks.rs    async, finish, forall, spawn, sync, futures
//!   waits.rs    promises, isolated sections, regions
//!   sections.rs a generator of its own, for the class that explorations are compared on exactly
//!   shrink.rs   deletes lines and blocks as long as something stays as it is
//! ```
//!
//! What is said above of permissions and ends does not hold for [`SourceClass::Sections`]: see its file.

mod exprs;
mod scope;
mod sections;
mod shrink;
mod stmts;
mod tasks;
mod waits;

use std::fmt;
use std::str::FromStr;

use fastrand::Rng;

pub use shrink::shrink;

use scope::{Kind, Loan, Perm, Place, Var};

/// What a random program is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceClass {
    /// Loops, indices, aliases, branches and calls in a few tasks: a test of the static eliminations.
    Loops,
    /// async, finish, forall, spawn, sync, futures.
    Tasks,
    /// Promises, and some of the above.
    Promises,
    /// Isolated sections, at most [`MAX_SECTIONS`] of them in a run, and decisions that depend on their order.
    Isolated,
    /// Regions and return handlers.
    Regions,
    /// Everything.
    All,
    /// Isolated sections, whose order decides which locations race, and nothing else does.
    Sections,
}

impl SourceClass {
    /// All classes.
    pub const ALL: [SourceClass; 7] = [
        SourceClass::Loops,
        SourceClass::Tasks,
        SourceClass::Promises,
        SourceClass::Isolated,
        SourceClass::Regions,
        SourceClass::All,
        SourceClass::Sections,
    ];

    /// The name of the class.
    pub fn name(self) -> &'static str {
        match self {
            SourceClass::Loops => "loops",
            SourceClass::Tasks => "tasks",
            SourceClass::Promises => "promises",
            SourceClass::Isolated => "isolated",
            SourceClass::Regions => "regions",
            SourceClass::All => "all",
            SourceClass::Sections => "sections",
        }
    }
}

impl fmt::Display for SourceClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A class name that is not in the table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no class is called `{0}`; there are: {all}", all = SourceClass::ALL.map(SourceClass::name).join(", "))]
pub struct UnknownSourceClass(pub String);

impl FromStr for SourceClass {
    type Err = UnknownSourceClass;

    fn from_str(name: &str) -> Result<SourceClass, UnknownSourceClass> {
        let found = SourceClass::ALL.into_iter().find(|class| class.name() == name);
        found.ok_or_else(|| UnknownSourceClass(name.to_owned()))
    }
}

/// How many isolated sections a run executes at most: few enough to try all their orders.
pub const MAX_SECTIONS: u64 = 5;
/// How many tasks a run starts, about.
const MAX_TASKS: u64 = 30;
/// How often a statement is executed, about.
const MAX_TIMES: u64 = 120;

/// A random program of the task language.
pub fn generate(seed: u64, class: SourceClass) -> String {
    if class == SourceClass::Sections {
        return sections::generate(seed);
    }
    // Classes share seeds; their programs should not start alike.
    let mut rng = Rng::with_seed(seed);
    for _ in 0..=class as u32 {
        rng = rng.fork();
    }
    let slip = match rng.u32(0..100) {
        0..30 => 0.0,
        30..60 => 0.08,
        _ => 1.0,
    };
    let mut generator = Generator {
        rng,
        class,
        slip,
        lines: Vec::new(),
        indent: 0,
        left: 0,
        vars: Vec::new(),
        recent: Vec::new(),
        perms: Vec::new(),
        procs: Vec::new(),
        body: Body::default(),
        spent: Cost::default(),
        limit: Cost { tasks: MAX_TASKS, sections: MAX_SECTIONS },
        times: 1,
        names: 0,
        uses_wrap: false,
        global_region: false,
    };
    generator.program()
}

/// What a run of a piece of program takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Cost {
    tasks: u64,
    sections: u64,
}

/// A procedure that can be called.
#[derive(Debug, Clone)]
struct Proc {
    name: String,
    params: Vec<Param>,
    /// Does it return a number? It is 0 to 3 then.
    returns: bool,
    /// May it end the strand of its caller?
    events: bool,
    /// May it leave tasks behind?
    escapes: bool,
    cost: Cost,
}

/// A parameter: a number from 0 to 3, or an array of at least [`SHORTEST`] elements.
#[derive(Debug, Clone)]
struct Param {
    name: String,
    array: bool,
    /// May the array be written?
    writes: bool,
}

/// Every array of numbers has at least so many elements.
const SHORTEST: i64 = 4;

/// The body that is being written: of a procedure or of a task.
#[derive(Debug, Clone, Default)]
struct Body {
    /// Must `return` have a value?
    returns: bool,
    /// Can it return here at all?
    may_return: bool,
    /// Inside an isolated section?
    isolated: bool,
    /// Inside a return handler?
    handler: bool,
    /// In a loop that some task may outlive?
    in_loop: bool,
    /// Inside a finish of this body?
    in_finish: bool,
    /// Has it done something that ends a strand?
    events: bool,
    /// May it have left tasks behind?
    escapes: bool,
    /// What tasks hold that the next sync joins.
    unsynced: Loan,
}

struct Generator {
    rng: Rng,
    class: SourceClass,
    /// How often an access ignores what its task may do.
    slip: f64,
    lines: Vec<String>,
    indent: usize,
    /// How many statements may still be written.
    left: u32,
    /// The variables in scope, globals first.
    vars: Vec<Var>,
    /// Places that were accessed in this scope or around it.
    recent: Vec<Place>,
    /// By object: what the running task may do to it.
    perms: Vec<Perm>,
    procs: Vec<Proc>,
    body: Body,
    /// What has been spent, in the body and in what it calls.
    spent: Cost,
    /// What may be.
    limit: Cost,
    /// How often the present place is executed in a run of the body, at most.
    times: u64,
    names: u32,
    uses_wrap: bool,
    global_region: bool,
}

impl Generator {
    fn chance(&mut self, probability: f64) -> bool {
        self.rng.f64() < probability
    }

    fn pick<T: Clone>(&mut self, among: &[T]) -> Option<T> {
        (!among.is_empty()).then(|| among[self.rng.usize(..among.len())].clone())
    }

    /// One of the weighted choices.
    fn weighted<T: Copy>(&mut self, choices: &[(u32, T)]) -> T {
        let total = choices.iter().map(|&(weight, _)| weight).sum();
        let mut at = self.rng.u32(0..total);
        for &(weight, choice) in choices {
            match at.checked_sub(weight) {
                Some(rest) => at = rest,
                None => return choice,
            }
        }
        unreachable!("the number is below the sum of the weights")
    }

    /// A new name.
    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn line(&mut self, text: impl AsRef<str>) {
        self.lines.push(format!("{}{}", "    ".repeat(self.indent), text.as_ref()));
    }

    /// `head {`, what `inner` writes, and `}`, in a scope of its own.
    fn braces(&mut self, head: &str, inner: impl FnOnce(&mut Self)) {
        self.line(format!("{head} {{").trim_start());
        self.indent += 1;
        let vars = self.vars.len();
        inner(self);
        self.leave_scope(vars);
        self.indent -= 1;
        self.line("}");
    }

    /// Can this be paid, as often as the present place is executed?
    fn afford(&self, cost: Cost) -> bool {
        self.spent.tasks + self.times * cost.tasks <= self.limit.tasks
            && self.spent.sections + self.times * cost.sections <= self.limit.sections
    }

    fn pay(&mut self, cost: Cost) {
        self.spent.tasks += self.times * cost.tasks;
        self.spent.sections += self.times * cost.sections;
    }

    // ---- the layout of a program -----------------------------------------------------------------

    fn program(&mut self) -> String {
        self.globals();
        let globals = std::mem::take(&mut self.lines);
        for _ in 0..self.weighted(&[(2, 1), (3, 2), (1, 3)]) {
            self.procedure();
        }
        self.main();
        let mut lines = globals;
        if self.uses_wrap {
            lines.extend(["", "proc wrap(i, m) {", "    return (i % m + m) % m;", "}"].map(str::to_owned));
        }
        lines.append(&mut self.lines);
        lines.join("\n") + "\n"
    }

    fn globals(&mut self) {
        self.line("let n = 4;");
        self.vars.push(Var::int("n", 4, 4));
        let has_sections = matches!(self.class, SourceClass::Isolated | SourceClass::All);
        for name in ["x", "y", "z"].into_iter().take(self.weighted(&[(3, 1), (2, 2), (1, 3)])) {
            let value = self.rng.u32(0..4);
            self.line(if value == 0 {
                format!("shared {name};")
            } else {
                format!("shared {name} = {value};")
            });
            let guarded = has_sections && name != "z";
            let object = self.object(if guarded { Perm::Guarded } else { Perm::Write });
            self.vars.push(Var::new(name, Kind::Scalar { object }));
        }
        for name in ["a", "b", "c"].into_iter().take(self.weighted(&[(3, 1), (2, 2), (2, 3)])) {
            let len = self.rng.i64(SHORTEST..=10);
            self.line(format!("shared {name}[{len}];"));
            let object = self.object(Perm::Write);
            self.vars.push(Var::new(name, Kind::Array { objects: vec![object], len }));
        }
        if self.chance(0.35) {
            self.line("shared rows[3];");
            let (outer, inner) = (self.object(Perm::Read), self.object(Perm::Write));
            self.vars.push(Var::new("rows", Kind::Rows { outer, inner, count: 3, len: SHORTEST }));
        }
        if self.chance(0.2) {
            self.line("shared ref = new [5];");
            let (outer, inner) = (self.object(Perm::Read), self.object(Perm::Write));
            self.vars.push(Var::new("ref", Kind::Reference { outer, inner, len: SHORTEST }));
        }
        if matches!(self.class, SourceClass::Regions | SourceClass::All) && self.chance(0.3) {
            self.line("region pool;");
            self.global_region = true;
        }
    }

    fn procedure(&mut self) {
        let name = self.name("work");
        let mut params = Vec::new();
        for _ in 0..self.weighted(&[(1, 0), (3, 1), (3, 2), (1, 3)]) {
            let array = params.is_empty() || self.chance(0.5);
            let writes = self.chance(0.75);
            params.push(Param { name: self.name(if array { "v" } else { "k" }), array, writes });
        }
        let returns = self.chance(0.6);
        let (spent, limit) = (self.spent, self.limit);
        self.spent = Cost::default();
        self.limit = Cost { tasks: 5, sections: 2 };
        // A task that calls it holds what it passes, and what nobody writes.
        let perms = self.perms.clone();
        for perm in &mut self.perms {
            *perm = match perm {
                Perm::Guarded => Perm::Guarded,
                Perm::Read => Perm::Read,
                _ => Perm::Nothing,
            };
        }
        self.body = Body { returns, may_return: true, ..Body::default() };
        let list = params.iter().map(|param| param.name.as_str()).collect::<Vec<_>>().join(", ");
        self.line("");
        self.left = self.rng.u32(1..=5);
        self.braces(&format!("proc {name}({list})"), |g| {
            for param in &params {
                let kind = if param.array {
                    let object = g.object(if param.writes { Perm::Write } else { Perm::Read });
                    Kind::Array { objects: vec![object], len: SHORTEST }
                } else {
                    Kind::Int { low: 0, high: 3 }
                };
                g.vars.push(Var::new(&param.name, kind));
            }
            g.statements(4);
            if returns {
                let value = g.small();
                g.line(format!("return {value};"));
            }
        });
        self.set_perms(perms);
        let body = std::mem::take(&mut self.body);
        let cost = std::mem::replace(&mut self.spent, spent);
        self.limit = limit;
        self.procs.push(Proc { name, params, returns, events: body.events, escapes: body.escapes, cost });
    }

    fn main(&mut self) {
        self.body = Body { may_return: true, ..Body::default() };
        self.line("");
        self.braces("proc main()", |g| {
            g.initialise();
            // Sections are long already.
            g.left = if g.class == SourceClass::Isolated { g.rng.u32(4..10) } else { g.rng.u32(6..18) };
            g.body.may_return = g.chance(0.1);
            match g.class {
                SourceClass::Loops => g.few_tasks(),
                SourceClass::Isolated => g.sections(),
                _ => {
                    while g.left > 0 {
                        g.statements(4);
                    }
                }
            }
            if let Some(place) = g.place(false) {
                g.line(format!("print {};", place.text));
            }
        });
    }

    /// Gives arrays some values, while nothing runs in parallel.
    fn initialise(&mut self) {
        for var in self.vars.clone() {
            match var.kind {
                Kind::Array { len, .. } if self.chance(0.4) => {
                    let i = self.name("i");
                    let factor = self.rng.u32(1..4);
                    self.line(format!("for {i} in 0..{len} {{ {}[{i}] = {factor} * {i} % 5; }}", var.name));
                }
                Kind::Rows { count, len, .. } => {
                    let i = self.name("i");
                    self.line(format!("for {i} in 0..{count} {{ {}[{i}] = new [{len}]; }}", var.name));
                }
                _ => {}
            }
        }
        // What nobody writes from here on, everybody may read.
        for object in 0..self.perms.len() {
            if self.perms[object] == Perm::Write && self.chance(0.2) {
                self.perms[object] = Perm::Read;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_program() {
        for class in SourceClass::ALL {
            assert_eq!(generate(7, class), generate(7, class));
            assert_ne!(generate(7, class), generate(8, class));
            assert_eq!(class.name().parse(), Ok(class));
        }
        assert!("no such class".parse::<SourceClass>().is_err());
    }

    #[test]
    fn programs_are_small_and_have_what_their_class_is_about() {
        for class in SourceClass::ALL {
            let words: &[&str] = match class {
                SourceClass::Loops => &["for ", "while ", "async", "forall"],
                SourceClass::Tasks => {
                    &["async", "finish", "forall", "forasync", "spawn", "sync;", "future", "get"]
                }
                SourceClass::Promises => &["promise", "set", "get", "async"],
                SourceClass::Isolated => &["isolated", "async", "if "],
                SourceClass::Regions => &["region", "post", "then", "await", "ewait"],
                SourceClass::All => &["isolated", "promise", "region", "future", "spawn"],
                SourceClass::Sections => &["isolated", "async", "finish", "promise", "if "],
            };
            let programs: Vec<String> = (0..200).map(|seed| generate(seed, class)).collect();
            for word in words {
                assert!(
                    programs.iter().any(|program| program.contains(word)),
                    "no `{word}` in class {class}"
                );
            }
            let lines: usize = programs.iter().map(|program| program.lines().count()).sum();
            assert!((2_000..14_000).contains(&lines), "{lines} lines in 200 programs of class {class}");
        }
    }
}
