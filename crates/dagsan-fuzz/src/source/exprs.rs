//! Values, indices in range, conditions, calls.

use super::scope::{Kind, Perm, Var};
use super::{Cost, Generator, Proc, SHORTEST};

impl Generator {
    /// An index from 0 to `len - 1`; rarely one that is out of range.
    pub(super) fn index(&mut self, len: i64) -> String {
        match self.rng.u32(0..200) {
            0 => self.rng.i64(-2..=len).to_string(),
            1..25 => self.value_index(len),
            25..40 => self.bent_index(len),
            40..80 => self.rng.i64(0..len).to_string(),
            _ => self.affine_index(len),
        }
    }

    /// An index that depends on shared memory, or on what a procedure returns. The procedure starts nothing: the
    /// text of a place may be written more than once.
    fn value_index(&mut self, len: i64) -> String {
        let procs = self.callable(|proc| proc.returns && proc.cost == Cost::default());
        let value = match self.pick(&procs) {
            Some(proc) if self.chance(0.25) => self.call(&proc),
            _ => self.read(),
        };
        self.wrap(&value, len)
    }

    fn wrap(&mut self, value: &str, len: i64) -> String {
        if self.chance(0.5) {
            self.uses_wrap = true;
            format!("wrap({value}, {len})")
        } else {
            format!("(({value}) % {len} + {len}) % {len}")
        }
    }

    /// An index that is no affine function of iterators.
    fn bent_index(&mut self, len: i64) -> String {
        let ints = self.ints_within(0, 20);
        match (self.pick(&ints), self.pick(&ints), self.rng.u32(0..3)) {
            (Some(i), Some(j), 0) => format!("{} * {} % {len}", i.name, j.name),
            (Some(i), Some(j), 1) => format!("({} + {}) % {len}", i.name, j.name),
            (Some(Var { name, kind: Kind::Int { high, .. }, .. }), ..) if high < 2 * len => {
                format!("{name} / 2")
            }
            _ => self.affine_index(len),
        }
    }

    /// `c + c1 * i + c2 * j`, with a `c` that keeps it in range.
    fn affine_index(&mut self, len: i64) -> String {
        for _ in 0..4 {
            let mut terms: Vec<(i64, String)> = Vec::new();
            let (mut least, mut most) = (0, 0);
            for _ in 0..self.weighted(&[(6, 1), (3, 2), (1, 3)]) {
                let Some(Var { name, kind: Kind::Int { low, high }, .. }) = self.recent_int() else { break };
                let factor = self.weighted(&[(8, 1), (3, 2), (1, 3), (1, 4), (3, -1), (1, -2)]);
                terms.push((factor, name));
                least += (factor * low).min(factor * high);
                most += (factor * low).max(factor * high);
            }
            if !terms.is_empty() && most - least < len {
                let constant = self.rng.i64(-least..=len - 1 - most);
                return self.sum(&terms, constant);
            }
        }
        self.rng.i64(0..len).to_string()
    }

    /// `constant + Σ factor * name`, written in one of several ways.
    fn sum(&mut self, terms: &[(i64, String)], constant: i64) -> String {
        let mut text = String::new();
        let constant_first = terms[0].0 < 0 || self.chance(0.2);
        if constant_first {
            text = constant.to_string();
        }
        for (factor, name) in terms {
            let size = match factor.abs() {
                1 => String::new(),
                4 => "n * ".to_owned(),
                size => format!("{size} * "),
            };
            let sign = match (text.is_empty(), *factor < 0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            text += &format!("{sign}{size}{name}");
        }
        if !constant_first && constant != 0 {
            text += &if constant < 0 { format!(" - {}", -constant) } else { format!(" + {constant}") };
        }
        text
    }

    /// A number in scope, most likely one of the innermost.
    pub(super) fn recent_int(&mut self) -> Option<Var> {
        let mut ints = self.ints_within(i64::MIN, i64::MAX);
        // A constant tells little.
        ints.retain(|var| !matches!(var.kind, Kind::Int { low, high } if low == high));
        let from = if self.chance(0.7) { ints.len().saturating_sub(3) } else { 0 };
        self.pick(&ints[from..])
    }

    /// The value of some shared memory.
    pub(super) fn read(&mut self) -> String {
        match self.place(false) {
            Some(place) => place.text,
            None => self.rng.u32(0..6).to_string(),
        }
    }

    /// A number.
    pub(super) fn int(&mut self) -> String {
        match self.rng.u32(0..100) {
            0..15 => self.rng.u32(0..6).to_string(),
            15..35 => self.recent_int().map_or_else(|| "1".to_owned(), |var| var.name),
            35..65 => self.read(),
            65..80 => {
                let (a, b) = (self.read(), self.recent_int().map_or_else(|| "2".to_owned(), |var| var.name));
                let operator = self.pick(&["+", "-", "*"]).unwrap_or("+");
                format!("({a} {operator} {b}) % 10")
            }
            80..90 => format!("({} + {}) % 7", self.read(), self.read()),
            90..93 => format!("-{}", self.read()),
            _ => self.small(),
        }
    }

    /// A number from 0 to 3.
    pub(super) fn small(&mut self) -> String {
        let within = self.ints_within(0, 3);
        match self.rng.u32(0..10) {
            0..3 => self.rng.u32(0..4).to_string(),
            3..5 => {
                let value = self.read();
                self.wrap(&value, 4)
            }
            5..7 => {
                let procs = self.callable(|proc| proc.returns);
                match self.pick(&procs) {
                    Some(proc) => self.call(&proc),
                    None => "3".to_owned(),
                }
            }
            _ => self.pick(&within).map_or_else(|| "1".to_owned(), |var| var.name),
        }
    }

    /// A condition.
    pub(super) fn condition(&mut self) -> String {
        match self.rng.u32(0..100) {
            0..30 => match self.recent_int() {
                Some(var) if self.chance(0.5) => format!("{} % 2 == {}", var.name, self.rng.u32(0..2)),
                Some(var) => {
                    let operator = self.pick(&["<", "<=", ">", ">=", "==", "!="]).unwrap_or("<");
                    format!("{} {operator} {}", var.name, self.rng.u32(0..4))
                }
                None => "true".to_owned(),
            },
            30..75 => {
                let operator = self.pick(&["<", ">", "==", "!="]).unwrap_or("<");
                format!("{} {operator} {}", self.int(), self.rng.u32(0..4))
            }
            75..80 => format!("!({})", self.condition()),
            _ => {
                let (left, right) = (self.comparison(), self.comparison());
                format!("{left} {} {right}", self.pick(&["&&", "||"]).unwrap_or("&&"))
            }
        }
    }

    fn comparison(&mut self) -> String {
        format!("{} > {}", self.int(), self.rng.u32(0..3))
    }

    // ---- calls -----------------------------------------------------------------------------------

    /// The procedures that can be called here.
    pub(super) fn callable(&mut self, keep: impl Fn(&Proc) -> bool) -> Vec<Proc> {
        let outlived = self.body.in_loop && self.slip < 1.0;
        let fits = |proc: &&Proc| {
            keep(proc)
                && self.afford(proc.cost)
                && !(proc.events && self.body.isolated)
                && !(proc.escapes && outlived)
        };
        self.procs.iter().filter(fits).cloned().collect()
    }

    /// A call. What a procedure leaves behind keeps what it was given.
    pub(super) fn call(&mut self, proc: &Proc) -> String {
        self.pay(proc.cost);
        self.body.events |= proc.events;
        self.body.escapes |= proc.escapes && !self.body.in_finish;
        let (text, passed) = self.call_text(proc);
        if proc.escapes {
            self.pass(&passed);
        }
        text
    }

    /// The text of a call, and the objects that are passed to be read or written.
    pub(super) fn call_text(&mut self, proc: &Proc) -> (String, Vec<(usize, bool)>) {
        let mut passed = Vec::new();
        let mut args = Vec::new();
        for param in &proc.params {
            if !param.array {
                let within = self.ints_within(0, 3);
                let arg = match self.pick(&within) {
                    Some(var) if self.chance(0.6) => var.name,
                    _ => self.rng.u32(0..4).to_string(),
                };
                args.push(arg);
                continue;
            }
            let careless = self.chance(self.slip);
            let fits = |var: &&Var| match &var.kind {
                Kind::Array { objects, .. } => careless || self.may_all(objects, param.writes),
                Kind::Rows { inner, .. } => careless || self.may_all(&[*inner], param.writes),
                _ => false,
            };
            let fitting: Vec<Var> = self.vars.iter().filter(fits).cloned().collect();
            match self.pick(&fitting) {
                Some(Var { name, kind: Kind::Array { objects, .. }, .. }) => {
                    passed.extend(objects.iter().map(|&object| (object, param.writes)));
                    args.push(name);
                }
                Some(Var { name, kind: Kind::Rows { inner, count, .. }, .. }) => {
                    passed.push((inner, param.writes));
                    args.push(format!("{name}[{}]", self.rng.i64(0..count)));
                }
                _ => args.push(format!("new [{}]", self.rng.i64(SHORTEST..8))),
            }
        }
        (format!("{}({})", proc.name, args.join(", ")), passed)
    }

    /// Another task has these objects now: what comes back when it is joined.
    pub(super) fn pass(&mut self, passed: &[(usize, bool)]) -> super::Loan {
        let mut loan = super::Loan::new();
        for &(object, writes) in passed {
            let perm = self.perms[object];
            let left = if writes { Perm::Nothing } else { perm.min(Perm::Read) };
            if left != perm {
                loan.push((object, perm));
                self.perms[object] = left;
            }
        }
        loan
    }
}
