//! async, finish, forall, spawn, sync, futures.

use super::scope::{Kind, Loan, Perm, Var};
use super::{Body, Cost, Generator};

/// A task.
pub(super) const TASK: Cost = Cost { tasks: 1, sections: 0 };

#[derive(Debug, Clone, Copy)]
enum Op {
    Async,
    Finish,
    Forall,
    Forasync,
    Spawn,
    Sync,
    Future,
    Get,
    Futures,
}

impl Generator {
    /// Something with tasks, if it can stand here.
    pub(super) fn task(&mut self) -> bool {
        let op = self.weighted(&[
            (6, Op::Async),
            (5, Op::Finish),
            (3, Op::Forall),
            (1, Op::Forasync),
            (5, Op::Spawn),
            (3, Op::Sync),
            (5, Op::Future),
            (6, Op::Get),
            (1, Op::Futures),
        ]);
        match op {
            Op::Finish => self.finish(),
            Op::Sync => self.sync(),
            Op::Get => self.get_future(),
            Op::Forall => self.parallel_loop("forall", 2),
            _ if !self.can_start(TASK) => false,
            Op::Async => self.async_task(),
            Op::Spawn => self.spawn(),
            Op::Future => self.future(),
            Op::Forasync => self.parallel_loop("forasync", 2),
            Op::Futures => self.futures(),
        }
    }

    /// Can a task be started here that the present block does not join?
    pub(super) fn can_start(&self, cost: Cost) -> bool {
        self.afford(cost) && !(self.body.in_loop && self.slip < 1.0)
    }

    pub(super) fn finish(&mut self) -> bool {
        let perms = self.perms.clone();
        let (in_loop, in_finish) = (self.body.in_loop, self.body.in_finish);
        (self.body.in_loop, self.body.in_finish) = (false, true);
        self.body.events = true;
        self.braces("finish", Generator::inside);
        (self.body.in_loop, self.body.in_finish) = (in_loop, in_finish);
        self.set_perms(perms);
        true
    }

    /// Starts a task, with a block or a procedure, after `head`. What it holds until it is joined.
    fn start(&mut self, head: &str, end: &str) -> Loan {
        self.pay(TASK);
        self.body.events = true;
        let procs = self.callable(|_| true);
        match self.pick(&procs) {
            Some(proc) if self.chance(0.3) => {
                self.pay(proc.cost);
                let (call, passed) = self.call_text(&proc);
                self.line(format!("{head} {call};"));
                self.pass(&passed)
            }
            _ => {
                let (child, loan) = self.lend();
                self.in_task(child, head, Generator::inside);
                self.end_with(end);
                loan
            }
        }
    }

    /// Writes something after the closing brace.
    fn end_with(&mut self, end: &str) {
        if let Some(last) = self.lines.last_mut() {
            last.push_str(end);
        }
    }

    fn async_task(&mut self) -> bool {
        self.body.escapes |= !self.body.in_finish;
        self.start("async", "");
        true
    }

    fn spawn(&mut self) -> bool {
        let loan = self.start("spawn", "");
        self.body.unsynced.extend(loan);
        true
    }

    fn sync(&mut self) -> bool {
        self.body.events = true;
        self.line("sync;");
        let loan = std::mem::take(&mut self.body.unsynced);
        self.give_back(&loan);
        true
    }

    /// `forall` or `forasync`, over slices.
    pub(super) fn parallel_loop(&mut self, keyword: &str, statements: u32) -> bool {
        let (low, high, least, most) = self.bounds();
        let trips = most - least + 1;
        let joined = keyword == "forall";
        let cost = Cost { tasks: trips as u64, sections: 0 };
        if !self.afford(cost) || !self.can_repeat(trips) || !(joined || self.can_start(cost)) {
            return false;
        }
        self.pay(cost);
        self.body.events = true;
        self.body.escapes |= !joined && !self.body.in_finish;
        let name = self.name("i");
        let (perms, times) = (self.perms.clone(), self.times);
        self.times *= trips as u64;
        let iterator = self.vars.len();
        self.vars.push(Var::int(&name, least, most));
        if least == 0 {
            self.slice(iterator, trips);
        } else {
            self.perms.iter_mut().for_each(|perm| *perm = (*perm).min(Perm::Read));
        }
        let inside = self.perms.clone();
        self.in_task(inside, &format!("{keyword} {name} in {low}..{high}"), |g| g.statements(statements));
        self.leave_scope(iterator);
        self.times = times;
        if joined {
            self.set_perms(perms);
        } else {
            // Who owns which slice is not known after the loop.
            self.perms.iter_mut().for_each(|perm| {
                if matches!(perm, Perm::Slice { .. }) {
                    *perm = Perm::Nothing;
                }
            });
        }
        true
    }

    // ---- futures ---------------------------------------------------------------------------------

    fn future(&mut self) -> bool {
        self.body.escapes |= !self.body.in_finish;
        self.pay(TASK);
        self.body.events = true;
        let name = self.name("f");
        let procs = self.callable(|proc| proc.returns);
        let (value, loan) = match self.pick(&procs) {
            Some(proc) if self.chance(0.35) => {
                self.pay(proc.cost);
                let (call, passed) = self.call_text(&proc);
                self.line(format!("future {name} = {call};"));
                (true, self.pass(&passed))
            }
            _ => {
                let (child, loan) = self.lend();
                let value = self.chance(0.6);
                self.in_task(child, &format!("future {name} ="), |g| {
                    g.body = Body { returns: value, ..g.body.clone() };
                    g.inside();
                    if value {
                        let value = g.small();
                        g.line(format!("return {value};"));
                    }
                });
                self.end_with(";");
                (value, loan)
            }
        };
        self.vars.push(Var::new(&name, Kind::Future { value, loan }));
        true
    }

    fn get_future(&mut self) -> bool {
        let futures: Vec<Var> =
            self.vars.iter().filter(|var| matches!(var.kind, Kind::Future { .. })).cloned().collect();
        let Some(Var { name, kind: Kind::Future { value, loan }, .. }) = self.pick(&futures) else {
            return false;
        };
        self.get(&name, value, &loan);
        true
    }

    /// Gets a future or promise, and what came with it.
    pub(super) fn get(&mut self, handle: &str, value: bool, loan: &Loan) {
        self.body.events = true;
        if value && self.chance(0.6) {
            let name = self.name("t");
            self.line(format!("let {name} = get {handle};"));
            // What is given is small by construction.
            self.vars.push(Var::int(&name, 0, 3));
        } else {
            self.line(format!("get {handle};"));
        }
        self.give_back(loan);
    }

    /// Futures in an array, of which all or some are got.
    fn futures(&mut self) -> bool {
        let trips = self.rng.i64(2..=4);
        let cost = Cost { tasks: trips as u64, sections: 0 };
        if !self.can_start(cost) || !self.can_repeat(trips) {
            return false;
        }
        self.body.escapes |= !self.body.in_finish;
        self.pay(cost);
        let (all, i, f) = (self.name("fs"), self.name("i"), self.name("f"));
        let (perms, times) = (self.perms.clone(), self.times);
        self.line(format!("let {all} = new [{trips}];"));
        self.times *= trips as u64;
        self.braces(&format!("for {i} in 0..{trips}"), |g| {
            g.vars.push(Var::int(&i, 0, trips - 1));
            g.slice(g.vars.len() - 1, trips);
            let child = g.perms.clone();
            g.in_task(child, &format!("future {f} ="), |g| {
                g.body.returns = true;
                g.inside();
                let value = g.small();
                g.line(format!("return {value};"));
            });
            g.end_with(";");
            g.line(format!("{all}[{i}] = {f};"));
        });
        self.times = times;
        let missing = i64::from(self.chance(self.slip.max(0.2)));
        let t = self.name("t");
        self.line(format!("var {t} = 0;"));
        self.line(format!("for {i} in {missing}..{trips} {{ {t} = ({t} + get {all}[{i}]) % n; }}"));
        if missing == 0 {
            self.set_perms(perms);
        } else {
            let left = self.perms.iter().map(|&perm| perm.min(Perm::Read)).collect();
            self.set_perms(left);
        }
        self.vars.push(Var::int(&t, 0, 3).mutable());
        true
    }
}
