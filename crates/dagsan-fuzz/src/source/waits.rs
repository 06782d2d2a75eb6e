//! Promises, isolated sections, regions.
//!
//! What a task waits for is started before, or in the same group of statements: a getter may be started before its setter,
//! as long as nothing between them waits for the getter. Rarely this is broken, for a deadlock.

use super::scope::{Kind, Loan, Var};
use super::tasks::TASK;
use super::{Cost, Generator};

const SECTION: Cost = Cost { tasks: 0, sections: 1 };

impl Generator {
    // ---- promises --------------------------------------------------------------------------------

    /// Something with promises, if it can stand here.
    pub(super) fn promise(&mut self) -> bool {
        match self.rng.u32(0..10) {
            0..3 => self.get_promise(),
            3..5 => self.pipeline(),
            _ => self.setter_and_getters(),
        }
    }

    fn get_promise(&mut self) -> bool {
        let promises: Vec<Var> =
            self.vars.iter().filter(|var| matches!(var.kind, Kind::Promise { .. })).cloned().collect();
        let Some(Var { name, kind: Kind::Promise { value, loan }, .. }) = self.pick(&promises) else {
            return false;
        };
        self.get(&name, value, &loan);
        true
    }

    /// A promise, a task that sets it, and tasks that get it, in any order.
    fn setter_and_getters(&mut self) -> bool {
        if !self.can_start(Cost { tasks: 3, ..TASK }) {
            return false;
        }
        self.body.escapes |= !self.body.in_finish;
        self.body.events = true;
        let name = self.name("p");
        let value = self.chance(0.5);
        self.line(format!("promise {name};"));
        let getters = self.rng.u32(0..3);
        let setter_at = self.rng.u32(0..=getters);
        // What the setter holds goes to the first getter, or comes back to whoever gets the promise here.
        let (setter, mut loan) = self.lend();
        let handed_over: Loan = loan.iter().map(|&(object, _)| (object, setter[object])).collect();
        if getters > 0 {
            loan.clear();
        }
        for number in 0..=getters {
            if number == setter_at {
                self.setter(&name, value, setter.clone(), &handed_over);
            } else {
                let (child, _) = self.lend();
                let first = number == u32::from(setter_at == 0);
                self.pay(TASK);
                self.in_task(child, "async", |g| {
                    if g.chance(0.4) {
                        g.statements(1);
                    }
                    g.get(&name, value, &if first { handed_over.clone() } else { Loan::new() });
                    g.inside();
                });
            }
        }
        self.vars.push(Var::new(&name, Kind::Promise { value, loan }));
        true
    }

    fn setter(&mut self, name: &str, value: bool, perms: Vec<super::Perm>, handed_over: &Loan) {
        self.pay(TASK);
        self.in_task(perms, "async", |g| {
            // A setter that returns before would leave its getters waiting.
            g.body.may_return = g.chance(0.02);
            g.inside();
            g.set(name, value);
            for &(object, _) in handed_over {
                g.perms[object] = super::Perm::Nothing;
            }
            if g.slip < 1.0 {
                g.recent.clear();
            }
            g.body.may_return = true;
            if g.chance(0.5) {
                g.inside();
            }
        });
    }

    fn set(&mut self, promise: &str, value: bool) {
        self.body.events = true;
        let value = if value { format!(" = {}", self.small()) } else { String::new() };
        let line = format!("set {promise}{value};");
        if self.chance(0.01) {
            self.line(&line);
        }
        self.line(line);
    }

    /// Tasks that wait for one another along an array of promises.
    fn pipeline(&mut self) -> bool {
        let stages = self.rng.i64(2..=4);
        let cost = Cost { tasks: stages as u64, sections: 0 };
        if !self.can_start(cost) || !self.can_repeat(stages) {
            return false;
        }
        self.pay(cost);
        self.body.escapes |= !self.body.in_finish;
        self.body.events = true;
        let (all, i, stage) = (self.name("ps"), self.name("i"), self.name("s"));
        self.line(format!("promise {all}[{stages}];"));
        let (before, times) = (self.perms.clone(), self.times);
        let (child, _) = self.lend();
        self.times *= stages as u64;
        let backwards = self.chance(0.5);
        self.braces(&format!("for {i} in 0..{stages}"), |g| {
            let order = if backwards { format!("{} - {i}", stages - 1) } else { i.clone() };
            g.line(format!("let {stage} = {order};"));
            g.vars.push(Var::int(&stage, 0, stages - 1));
            g.in_task(child, "async", |g| {
                g.body.may_return = false;
                if g.chance(0.8) {
                    g.line(format!("if {stage} > 0 {{ get {all}[{stage} - 1]; }}"));
                }
                g.inside();
                g.line(format!("set {all}[{stage}];"));
            });
        });
        self.times = times;
        if self.chance(0.6) {
            let last = if self.chance(0.8) { stages - 1 } else { self.rng.i64(0..stages) };
            self.line(format!("get {all}[{last}];"));
            if last == stages - 1 {
                self.set_perms(before);
            }
        }
        true
    }

    // ---- isolated sections -----------------------------------------------------------------------

    /// A few tasks with a section each: what happens depends on the order of the sections.
    pub(super) fn sections(&mut self) {
        while self.left > 0 {
            if self.afford(Cost { tasks: 3, sections: 2 }) {
                let perms = self.perms.clone();
                self.braces("finish", |g| {
                    for _ in 0..g.rng.u32(2..=3) {
                        g.pay(TASK);
                        let (child, _) = g.lend();
                        g.in_task(child, "async", |g| {
                            if g.chance(0.4) {
                                g.statements(1);
                            }
                            g.isolated();
                            if g.chance(0.6) {
                                g.statements(1);
                            }
                        });
                    }
                    if g.chance(0.4) {
                        g.statements(1);
                    }
                });
                self.set_perms(perms);
            }
            self.statements(3);
        }
    }

    /// A section, and often a decision by what it read.
    pub(super) fn isolated(&mut self) -> bool {
        if !self.afford(SECTION) {
            return false;
        }
        self.pay(SECTION);
        self.body.events = true;
        let seen = self.chance(0.6).then(|| self.name("t"));
        if let Some(seen) = &seen {
            self.line(format!("var {seen} = 0;"));
        }
        self.braces("isolated", |g| {
            g.body.isolated = true;
            if let Some(seen) = &seen {
                let value = g.read();
                g.line(format!("{seen} = {value};"));
            }
            match g.place(true).map(|place| place.text) {
                Some(place) => g.section_step(&place),
                None => g.line("skip;"),
            }
            if g.chance(0.3) {
                g.statements(1);
            }
            g.body.isolated = false;
        });
        if let Some(seen) = &seen
            && self.chance(0.8)
        {
            let operator = self.pick(&["==", "<", ">", "!="]).unwrap_or("==");
            let condition = format!("{seen} {operator} {}", self.rng.u32(0..4));
            self.branches(&condition);
        }
        true
    }

    /// A step that commutes with its like, or does not.
    fn section_step(&mut self, place: &str) {
        let (value, limit) = (self.rng.u32(1..5), self.rng.u32(0..4));
        let line = match self.rng.u32(0..6) {
            0..2 => format!("{place} = {place} + {value};"),
            2 => format!("{place} = {value};"),
            3 => format!("{place} = (2 * {place} + {value}) % 10;"),
            4 => format!("if {place} < {value} {{ {place} = {value}; }}"),
            _ => {
                let Some(other) = self.place(true) else { return self.line(format!("{place} = {value};")) };
                format!("if {place} == {limit} {{ {} = {value}; }} else {{ {place} = {limit}; }}", other.text)
            }
        };
        self.line(line);
    }

    // ---- regions ---------------------------------------------------------------------------------

    /// Something with regions, if it can stand here.
    pub(super) fn region(&mut self) -> bool {
        match self.rng.u32(0..10) {
            0 if self.global_region && !self.body.handler => {
                self.body.events = true;
                self.line("await pool;");
                true
            }
            1..3 if self.global_region => self.post_to_pool(),
            _ if self.body.handler => false,
            _ => self.posts_and_waits(),
        }
    }

    fn post_to_pool(&mut self) -> bool {
        let procs = self.callable(|_| true);
        let Some(proc) = self.pick(&procs) else { return false };
        if !self.can_start(Cost { tasks: 1 + proc.cost.tasks, ..proc.cost }) {
            return false;
        }
        self.body.escapes |= !self.body.in_finish;
        self.post("pool", &proc, false);
        true
    }

    /// Posts a task; what it holds until it is joined.
    fn post(&mut self, region: &str, proc: &super::Proc, handler: bool) -> Loan {
        self.pay(TASK);
        self.pay(proc.cost);
        self.body.events = true;
        let (call, passed) = self.call_text(proc);
        let loan = self.pass(&passed);
        if !handler {
            self.line(format!("post {region} <- {call};"));
            return loan;
        }
        let value = self.name("w");
        let outer = self.body.clone();
        let perms = self.perms.clone();
        self.braces(&format!("post {region} <- {call} then {value}"), |g| {
            g.vars.push(Var::int(&value, 0, 3));
            g.body.handler = true;
            g.body.may_return = false;
            // The task of the handler has been joined when it runs.
            g.give_back(&loan);
            g.inside();
        });
        self.set_perms(perms);
        self.body = super::Body { events: true, escapes: self.body.escapes, ..outer };
        loan
    }

    /// A region, some posts, and what waits for them.
    fn posts_and_waits(&mut self) -> bool {
        let procs = self.callable(|proc| proc.returns);
        let Some(proc) = self.pick(&procs) else { return false };
        let trips = self.rng.i64(1..=3);
        let cost =
            Cost { tasks: trips as u64 * (1 + proc.cost.tasks), sections: trips as u64 * proc.cost.sections };
        if !self.can_start(cost) || !self.can_repeat(trips) {
            return false;
        }
        let name = self.name("r");
        self.line(format!("region {name};"));
        let handler = self.chance(0.6);
        let finish = self.chance(0.15);
        let looping = trips > 1 && self.chance(0.4);
        let mut loan = Loan::new();
        let mut posts = |g: &mut Generator| {
            if looping {
                // Handlers run after the loop: they do not see its iterator.
                let i = g.name("i");
                g.braces(&format!("for {i} in 0..{trips}"), |g| {
                    g.repeated(trips, |g| loan = g.post(&name, &proc, handler));
                });
                return;
            }
            for _ in 0..trips {
                let more = g.post(&name, &proc, handler);
                loan.splice(0..0, more);
                if g.chance(0.3) {
                    g.statements(1);
                }
            }
        };
        if finish {
            self.braces("finish", posts);
        } else {
            posts(self);
        }
        if self.chance(0.4) {
            self.statements(1);
        }
        self.wait(&name, trips);
        self.give_back(&loan);
        true
    }

    fn wait(&mut self, region: &str, posted: i64) {
        match self.rng.u32(0..10) {
            0..5 => self.line(format!("await {region};")),
            5..7 => {
                let i = self.name("i");
                self.line(format!("for {i} in 0..{posted} {{ ewait {region}; }}"));
            }
            7..9 => {
                self.line(format!("ewait {region};"));
                if self.chance(0.5) {
                    self.statements(1);
                }
                if self.chance(0.7) {
                    self.line(format!("await {region};"));
                }
            }
            _ => self.body.escapes |= !self.body.in_finish,
        }
    }
}
