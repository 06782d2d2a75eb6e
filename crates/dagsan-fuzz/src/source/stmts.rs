//! Sequential statements: what the static eliminations look at.

use super::scope::{Kind, Perm, Var};
use super::tasks::TASK;
use super::{Body, Cost, Generator, MAX_TIMES, SHORTEST, SourceClass};

/// What a statement can be.
#[derive(Debug, Clone, Copy)]
enum Op {
    Store,
    Update,
    ReadThenWrite,
    Local,
    Variable,
    Assign,
    Alias,
    NewArray,
    NewRow,
    For,
    While,
    Walk,
    If,
    Call,
    Return,
    Print,
    Nest,
    Probe,
    Task,
    Promise,
    Isolated,
    Region,
}

/// How deep blocks nest.
const MAX_DEPTH: usize = 4;

const SIMPLE: &[(u32, Op)] = &[
    (12, Op::Store),
    (8, Op::Update),
    (4, Op::ReadThenWrite),
    (2, Op::Local),
    (2, Op::Variable),
    (4, Op::Assign),
    (2, Op::Alias),
    (2, Op::NewArray),
    (1, Op::NewRow),
    (2, Op::Walk),
    (4, Op::Call),
    (4, Op::Return),
    (1, Op::Print),
];

const BLOCKS: &[(u32, Op)] = &[(9, Op::For), (5, Op::While), (7, Op::If), (1, Op::Nest)];

impl Generator {
    /// Up to `count` statements.
    pub(super) fn statements(&mut self, count: u32) {
        let mut written = false;
        for _ in 0..count.min(self.left.max(1)) {
            self.left = self.left.saturating_sub(1);
            written |= self.statement();
        }
        if !written {
            self.line("skip;");
        }
    }

    /// A few statements: the inside of a block.
    pub(super) fn inside(&mut self) {
        let count = self.rng.u32(1..=3);
        self.statements(count);
    }

    fn statement(&mut self) -> bool {
        let mut choices = SIMPLE.to_vec();
        let blocks = self.left > 0 && self.indent < MAX_DEPTH;
        if blocks {
            choices.extend(BLOCKS);
        }
        if blocks && !self.body.isolated {
            let (task, promise, isolated, region) = match self.class {
                SourceClass::Loops => (1, 0, 0, 0),
                SourceClass::Tasks => (50, 0, 0, 0),
                SourceClass::Promises => (14, 30, 0, 0),
                SourceClass::Isolated => (14, 0, 22, 0),
                SourceClass::Regions => (14, 0, 0, 30),
                SourceClass::All => (25, 12, 12, 12),
                SourceClass::Sections => unreachable!("this class has a generator of its own"),
            };
            let probe = if self.slip == 1.0 { 4 } else { 0 };
            choices.extend([
                (probe, Op::Probe),
                (task, Op::Task),
                (promise, Op::Promise),
                (isolated, Op::Isolated),
                (region, Op::Region),
            ]);
        }
        // What cannot be written here gives way to something else.
        (0..5).any(|_| {
            let op = self.weighted(&choices);
            self.write(op)
        })
    }

    fn write(&mut self, op: Op) -> bool {
        match op {
            Op::Store => self.store(),
            Op::Update => self.update(),
            Op::ReadThenWrite => self.read_then_write(),
            Op::Local => self.local(false),
            Op::Variable => self.local(true),
            Op::Assign => self.assign(),
            Op::Alias => self.alias(),
            Op::NewArray => self.new_array(),
            Op::NewRow => self.new_row(),
            Op::For => self.for_loop(),
            Op::While => self.while_loop(),
            Op::Walk => self.walk(),
            Op::If => self.if_else(),
            Op::Call => self.call_statement(),
            Op::Return => self.early_return(),
            Op::Print => self.print(),
            Op::Nest => {
                self.braces("", Generator::inside);
                true
            }
            Op::Probe => self.probe(),
            Op::Task => self.task(),
            Op::Promise => self.promise(),
            Op::Isolated => self.isolated(),
            Op::Region => self.region(),
        }
    }

    fn store(&mut self) -> bool {
        let value = self.int();
        let Some(place) = self.place(true) else { return false };
        self.line(format!("{} = {value};", place.text));
        true
    }

    fn update(&mut self) -> bool {
        let Some(place) = self.place(true).map(|place| place.text) else { return false };
        let value = self.int();
        match self.rng.u32(0..3) {
            0 => self.line(format!("{place} = {place} + 1;")),
            1 => self.line(format!("{place} = ({place} + {value}) % 10;")),
            _ => self.line(format!("{place} = {value} - {place} % 3;")),
        }
        true
    }

    /// A read, something between, and a write of the same place.
    fn read_then_write(&mut self) -> bool {
        let Some(place) = self.place(true).map(|place| place.text) else { return false };
        let name = self.name("t");
        self.line(format!("let {name} = {place};"));
        if self.chance(0.6) {
            self.statements(1);
        }
        if self.chance(0.5) {
            let condition = self.condition();
            self.line(format!("if {condition} {{ {place} = {name} + 1; }} else {{ {place} = {name}; }}"));
        } else {
            self.line(format!("{place} = {name} + 1;"));
        }
        true
    }

    /// A local number from 0 to 3.
    fn local(&mut self, mutable: bool) -> bool {
        let value = self.small();
        let name = self.name("t");
        let var = Var::int(&name, 0, 3);
        self.line(format!("{} {name} = {value};", if mutable { "var" } else { "let" }));
        self.vars.push(if mutable { var.mutable() } else { var });
        true
    }

    fn assign(&mut self) -> bool {
        let mutable: Vec<Var> = self.vars.iter().filter(|var| var.mutable).cloned().collect();
        match self.pick(&mutable) {
            Some(Var { name, kind: Kind::Array { objects, len }, .. }) => {
                let same = |var: &&Var| matches!(&var.kind, Kind::Array { objects: others, len: longer } if *longer >= len && others.iter().all(|o| objects.contains(o)));
                let fitting: Vec<Var> = self.vars.iter().filter(same).cloned().collect();
                let Some(other) = self.pick(&fitting) else { return false };
                self.line(format!("{name} = {};", other.name));
            }
            Some(Var { name, .. }) => {
                let value = self.small();
                self.line(format!("{name} = {value};"));
            }
            None => return false,
        }
        true
    }

    /// Another name for an array, or a name for one of several.
    fn alias(&mut self) -> bool {
        let arrays: Vec<Var> =
            self.vars.iter().filter(|var| matches!(var.kind, Kind::Array { .. })).cloned().collect();
        let name = self.name("r");
        let (Some(first), Some(second)) = (self.pick(&arrays), self.pick(&arrays)) else { return false };
        let (Kind::Array { mut objects, len }, Kind::Array { objects: others, len: other_len }) =
            (first.kind, second.kind)
        else {
            return false;
        };
        let sliced =
            objects.iter().chain(&others).any(|&object| matches!(self.perms[object], Perm::Slice { .. }));
        if sliced && self.slip < 1.0 {
            return false;
        }
        if self.chance(0.5) {
            self.line(format!("let {name} = {};", first.name));
            self.vars.push(Var::new(&name, Kind::Array { objects, len }));
        } else {
            objects.extend(others);
            let condition = self.condition();
            self.line(format!("var {name} = {};", first.name));
            self.line(format!("if {condition} {{ {name} = {}; }}", second.name));
            self.vars.push(Var::new(&name, Kind::Array { objects, len: len.min(other_len) }).mutable());
        }
        true
    }

    fn new_array(&mut self) -> bool {
        let name = self.name("q");
        let len = self.rng.i64(SHORTEST..=6);
        self.line(format!("let {name} = new [{len}];"));
        let object = self.object(Perm::Write);
        self.vars.push(Var::new(&name, Kind::Array { objects: vec![object], len }));
        true
    }

    /// Another row, another array behind a shared reference.
    fn new_row(&mut self) -> bool {
        let careless = self.chance(self.slip);
        let fits = |var: &&Var| match &var.kind {
            Kind::Rows { outer, .. } | Kind::Reference { outer, .. } => {
                careless || self.may_all(&[*outer], true)
            }
            _ => false,
        };
        let fitting: Vec<Var> = self.vars.iter().filter(fits).cloned().collect();
        let Some(Var { name, kind, .. }) = self.pick(&fitting) else { return false };
        let place = match kind {
            Kind::Rows { count, .. } => format!("{name}[{}]", self.index(count)),
            _ => name,
        };
        self.line(format!("{place} = new [{SHORTEST}];"));
        true
    }

    // ---- loops -----------------------------------------------------------------------------------

    /// Can a loop of so many iterations stand here?
    pub(super) fn can_repeat(&self, trips: i64) -> bool {
        self.times * trips.max(1) as u64 <= MAX_TIMES
    }

    /// What `inner` writes is executed so many times. Tasks that are started in it and not joined there may be parallel to
    /// the next iteration.
    pub(super) fn repeated(&mut self, trips: i64, inner: impl FnOnce(&mut Self)) {
        let (times, in_loop, perms) = (self.times, self.body.in_loop, self.perms.clone());
        self.times *= trips.max(1) as u64;
        self.body.in_loop = true;
        inner(self);
        self.times = times;
        self.body.in_loop = in_loop;
        self.fewer_perms(perms);
    }

    /// What may be done after a block that may have been skipped.
    fn fewer_perms(&mut self, before: Vec<Perm>) {
        for (now, before) in self.perms.iter_mut().zip(before) {
            *now = (*now).min(before);
        }
    }

    /// The bounds of a loop, as text, and the range of its iterator.
    pub(super) fn bounds(&mut self) -> (String, String, i64, i64) {
        let outer = self.ints_within(0, 5);
        match (self.rng.u32(0..100), self.pick(&outer)) {
            (0..8, _) => {
                let low = self.rng.i64(0..4);
                (low.to_string(), self.rng.i64(-1..=low).to_string(), low, low)
            }
            (8..25, Some(Var { name, kind: Kind::Int { high, .. }, .. })) => {
                let more = self.rng.i64(0..2);
                let text = if more == 0 { name } else { format!("{name} + {more}") };
                ("0".to_owned(), text, 0, (high + more - 1).max(0))
            }
            (25..35, Some(Var { name, kind: Kind::Int { low, .. }, .. })) => {
                (name, "n".to_owned(), low.min(3), 3)
            }
            (35..40, _) => {
                let high = self.small();
                ("0".to_owned(), high, 0, 2)
            }
            (40..60, _) => ("0".to_owned(), "n".to_owned(), 0, 3),
            _ => {
                let low = self.rng.i64(-1..3);
                let trips = self.rng.i64(1..=4);
                (low.to_string(), (low + trips).to_string(), low, low + trips - 1)
            }
        }
    }

    fn for_loop(&mut self) -> bool {
        let (low, high, least, most) = self.bounds();
        let trips = most - least + 1;
        if !self.can_repeat(trips) {
            return false;
        }
        let name = self.name("i");
        self.braces(&format!("for {name} in {low}..{high}"), |g| {
            g.vars.push(Var::int(&name, least, most));
            g.repeated(trips, Generator::inside);
        });
        true
    }

    /// A `while` that counts, up or down, somewhere in its body.
    fn while_loop(&mut self) -> bool {
        let step = self.weighted(&[(4, 1), (2, 2), (3, -1), (1, -2)]);
        let (first, last) = if step > 0 { (0, self.rng.i64(0..5)) } else { (self.rng.i64(0..5), 0) };
        let (least, most) = (first.min(last), first.max(last));
        if !self.can_repeat(most - least + 1) {
            return false;
        }
        let name = self.name("k");
        self.line(format!("var {name} = {first};"));
        let test = if step > 0 { format!("{name} < {last}") } else { format!("{name} > {last}") };
        let more = if self.chance(0.25) { format!(" && {}", self.comparison_text()) } else { String::new() };
        self.braces(&format!("while {test}{more}"), |g| {
            let place = g.vars.len();
            let inside =
                if step > 0 { (least, (most - 1).max(least)) } else { ((least + 1).min(most), most) };
            g.vars.push(Var::int(&name, inside.0, inside.1));
            g.repeated(most - least + 1, |g| {
                g.inside();
                g.line(if step > 0 {
                    format!("{name} = {name} + {step};")
                } else {
                    format!("{name} = {name} - {};", -step)
                });
                if g.chance(0.4) {
                    g.vars[place] = Var::int(&name, inside.0 + step, inside.1 + step);
                    g.inside();
                }
            });
        });
        self.vars.push(Var::int(&name, least.min(last + step), most.max(last + step)));
        true
    }

    fn comparison_text(&mut self) -> String {
        format!("{} < {}", self.read(), self.rng.u32(1..8))
    }

    /// A loop over all of an array, however long it is.
    fn walk(&mut self) -> bool {
        let careless = self.chance(self.slip);
        let fits = |var: &&Var| match &var.kind {
            Kind::Array { objects, .. } => careless || self.may_all(objects, true),
            _ => false,
        };
        let fitting: Vec<Var> = self.vars.iter().filter(fits).cloned().collect();
        let Some(array) = self.pick(&fitting).map(|var| var.name) else { return false };
        if !self.can_repeat(10) {
            return false;
        }
        let (i, mut value) = (self.name("i"), String::new());
        self.repeated(10, |g| value = g.int());
        let line = match self.rng.u32(0..3) {
            0 => format!("for {i} in 0..len({array}) {{ {array}[{i}] = {value}; }}"),
            1 => format!("for {i} in 0..len({array}) {{ {array}[len({array}) - 1 - {i}] = {i}; }}"),
            _ => {
                format!("for {i} in 1..len({array}) {{ {array}[{i}] = ({array}[{i} - 1] + {value}) % 10; }}")
            }
        };
        self.line(line);
        true
    }

    // ---- branches and calls ----------------------------------------------------------------------

    fn if_else(&mut self) -> bool {
        let condition = self.condition();
        self.branches(&condition);
        true
    }

    /// `if` with one or two branches.
    pub(super) fn branches(&mut self, condition: &str) {
        let (perms, unsynced) = (self.perms.clone(), self.body.unsynced.clone());
        self.braces(&format!("if {condition}"), Generator::inside);
        if self.chance(0.4) {
            let after_then = self.perms.clone();
            self.set_perms(perms);
            self.lines.pop();
            self.braces("} else", Generator::inside);
            self.fewer_perms(after_then);
        } else {
            self.fewer_perms(perms);
        }
        self.body.unsynced.extend(unsynced);
    }

    fn call_statement(&mut self) -> bool {
        let procs = self.callable(|_| true);
        let Some(proc) = self.pick(&procs) else { return false };
        let call = self.call(&proc);
        self.line(format!("{call};"));
        true
    }

    fn early_return(&mut self) -> bool {
        if !self.body.may_return || self.body.handler {
            return false;
        }
        let condition = self.condition();
        let value = if self.body.returns { format!(" {}", self.small()) } else { String::new() };
        self.line(format!("if {condition} {{ return{value}; }}"));
        true
    }

    fn print(&mut self) -> bool {
        let value = self.int();
        self.line(format!("print {value};"));
        true
    }

    /// A few tasks with long sequential bodies.
    pub(super) fn few_tasks(&mut self) {
        while self.left > 0 {
            self.pay(Cost { tasks: 3, sections: 0 });
            let before = self.perms.clone();
            if self.slip == 1.0 && self.chance(0.8) {
                self.braces("finish", |g| {
                    g.probe();
                    g.body.in_finish = true;
                    g.task_or_not(7);
                    g.body.in_finish = false;
                });
            } else if self.chance(0.25) {
                self.parallel_loop("forall", 3);
            } else {
                self.braces("finish", |g| {
                    for _ in 0..g.rng.u32(1..=2) {
                        let (child, _) = g.lend();
                        g.in_task(child, "async", |g| g.statements(6));
                    }
                    g.statements(4);
                });
            }
            self.set_perms(before);
            self.statements(2);
        }
    }

    fn task_or_not(&mut self, statements: u32) {
        if self.chance(0.5) {
            let perms = self.perms.clone();
            self.in_task(perms, "async", |g| g.statements(statements));
        } else {
            self.statements(statements);
        }
    }

    /// A task that touches all of an object: what runs in parallel races on exactly the cells that it touches, or
    /// writes, there.
    pub(super) fn probe(&mut self) -> bool {
        if !self.afford(TASK) {
            return false;
        }
        let probed: Vec<Var> = self.vars.iter().filter(|var| var.is_shared()).cloned().collect();
        self.pay(TASK);
        self.body.events = true;
        self.body.escapes |= !self.body.in_finish;
        let reads = self.chance(0.3);
        let mut done = String::new();
        for var in probed {
            if self.chance(0.2) {
                continue;
            }
            let (name, i) = (var.name, self.name("i"));
            done += &match (var.kind, reads) {
                (Kind::Scalar { .. }, false) => format!(" {name} = 1;"),
                (Kind::Scalar { .. }, true) => format!(" print {name};"),
                (_, false) => format!(" for {i} in 0..len({name}) {{ {name}[{i}] = 2; }}"),
                (_, true) => format!(" for {i} in 0..len({name}) {{ print {name}[{i}]; }}"),
            };
        }
        self.line(format!("async {{{done} }}"));
        true
    }

    /// `head { … }`, in a task that may do what `perms` say.
    pub(super) fn in_task(&mut self, perms: Vec<Perm>, head: &str, inner: impl FnOnce(&mut Self)) {
        let body = Body { may_return: true, ..Body::default() };
        let body = std::mem::replace(&mut self.body, body);
        let mine = std::mem::replace(&mut self.perms, perms);
        self.braces(head, inner);
        self.set_perms(mine);
        self.body = body;
        self.body.events = true;
    }
}
