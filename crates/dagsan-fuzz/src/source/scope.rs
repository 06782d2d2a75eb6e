//! Variables, objects, and who may touch them.
//!
//! An object is a shared variable, an array, or all rows of an array of arrays. The generator keeps for each what
//! the running task may do to it so that nothing races: a task that is started takes some objects along, and
//! gives them back when it is joined.

use super::Generator;

/// What a task may do to an object without a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Perm {
    /// Nothing: another task may write it.
    Nothing,
    /// Access it in an isolated section.
    Guarded,
    /// Read it.
    Read,
    /// Access the elements `iterator * width` to `iterator * width + width - 1`; the iterator is a variable, by its
    /// index in the scope.
    Slice { iterator: usize, width: i64 },
    /// Everything.
    Write,
}

/// Objects, and what the task that lent them might do to them.
pub(super) type Loan = Vec<(usize, Perm)>;

/// What a variable is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A local or fixed number in this range, both ends included.
    Int { low: i64, high: i64 },
    /// A shared number.
    Scalar { object: usize },
    /// An array of numbers: one of these objects, with at least so many elements.
    Array { objects: Vec<usize>, len: i64 },
    /// An array of `count` arrays.
    Rows { outer: usize, inner: usize, count: i64, len: i64 },
    /// A shared reference to an array.
    Reference { outer: usize, inner: usize, len: i64 },
    /// A future; does it give a number? And what comes back with it.
    Future { value: bool, loan: Loan },
    /// A promise that is or will be set; does it give a number? And what comes back with it.
    Promise { value: bool, loan: Loan },
}

/// A variable in scope.
#[derive(Debug, Clone)]
pub(super) struct Var {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Can it be assigned to? Numbers only within their range.
    pub(super) mutable: bool,
}

impl Var {
    pub(super) fn new(name: &str, kind: Kind) -> Var {
        Var { name: name.to_owned(), kind, mutable: false }
    }

    pub(super) fn int(name: &str, low: i64, high: i64) -> Var {
        Var::new(name, Kind::Int { low, high })
    }

    /// Is it a shared variable or an array?
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.kind, Kind::Scalar { .. } | Kind::Array { .. })
    }

    pub(super) fn mutable(self) -> Var {
        Var { mutable: true, ..self }
    }
}

/// A place in shared memory, as text.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) text: String,
    /// May it be written?
    pub(super) writable: bool,
    /// How many variables were in scope.
    scope: usize,
}

impl Generator {
    /// A new object.
    pub(super) fn object(&mut self, perm: Perm) -> usize {
        self.perms.push(perm);
        self.perms.len() - 1
    }

    /// Forgets all variables but the first `vars`, and the places that may depend on others.
    pub(super) fn leave_scope(&mut self, vars: usize) {
        self.vars.truncate(vars);
        self.recent.retain(|place| place.scope <= vars);
    }

    /// Back to what was, with objects made since out of reach.
    pub(super) fn set_perms(&mut self, perms: Vec<Perm>) {
        let objects = self.perms.len();
        self.perms = perms;
        self.perms.resize(objects, Perm::Nothing);
    }

    fn may(&self, object: usize, write: bool) -> bool {
        match self.perms[object] {
            Perm::Nothing => false,
            Perm::Guarded => self.body.isolated,
            Perm::Read => !write,
            Perm::Slice { .. } | Perm::Write => true,
        }
    }

    /// May all of the variable's memory be accessed, and not only a slice of it?
    pub(super) fn may_all(&self, objects: &[usize], write: bool) -> bool {
        let whole =
            |&object: &usize| self.may(object, write) && !matches!(self.perms[object], Perm::Slice { .. });
        objects.iter().all(whole)
    }

    /// Some objects go to a new task: what it may do, and what comes back when it is joined.
    pub(super) fn lend(&mut self) -> (Vec<Perm>, Loan) {
        let mut loan = Loan::new();
        let mut child = Vec::with_capacity(self.perms.len());
        for object in 0..self.perms.len() {
            let perm = self.perms[object];
            let (mine, its) = match perm {
                Perm::Nothing | Perm::Guarded | Perm::Read => (perm, perm),
                Perm::Slice { .. } | Perm::Write => match self.rng.u32(0..100) {
                    0..45 => (Perm::Nothing, perm),
                    45..60 if perm == Perm::Write => (Perm::Read, Perm::Read),
                    _ => (perm, Perm::Nothing),
                },
            };
            if mine != perm {
                loan.push((object, perm));
                self.perms[object] = mine;
            }
            child.push(its);
        }
        self.forget_recent();
        (child, loan)
    }

    /// What was lent comes back.
    pub(super) fn give_back(&mut self, loan: &Loan) {
        for &(object, perm) in loan {
            self.perms[object] = perm;
        }
    }

    /// For the iterations of a parallel loop: arrays that are long enough are cut into slices, one per iteration, the
    /// rest may be read at most.
    pub(super) fn slice(&mut self, iterator: usize, trips: i64) {
        let mut perms: Vec<Perm> = self.perms.iter().map(|&perm| perm.min(Perm::Read)).collect();
        for var in self.vars.clone() {
            let Kind::Array { objects, len } = var.kind else { continue };
            let [object] = objects[..] else { continue };
            let width = len / trips.max(1);
            if self.perms[object] == Perm::Write && width > 0 && self.chance(0.6) {
                perms[object] = Perm::Slice { iterator, width: self.rng.i64(1..=width) };
            }
        }
        self.perms = perms;
        self.forget_recent();
    }

    /// Others may touch now what was touched before. A careless program does not mind: what was accessed before
    /// an event and is accessed again after it is what eliminations may get wrong.
    fn forget_recent(&mut self) {
        if self.slip < 1.0 {
            self.recent.clear();
        }
    }

    /// A place that the task may read or write, or any at all now and then.
    pub(super) fn place(&mut self, write: bool) -> Option<Place> {
        let again: Vec<Place> =
            self.recent.iter().filter(|place| place.writable || !write).cloned().collect();
        if let Some(place) = self.pick(&again)
            && self.chance(0.5)
        {
            return Some(place);
        }
        let careless = self.chance(self.slip);
        let fits = |g: &Generator, var: &Var| match &var.kind {
            Kind::Scalar { object } => careless || g.may(*object, write),
            Kind::Array { objects, .. } => {
                let slices = objects.iter().filter(|&&o| matches!(g.perms[o], Perm::Slice { .. })).count();
                careless || objects.iter().all(|&o| g.may(o, write)) && (slices == 0 || objects.len() == 1)
            }
            Kind::Rows { outer, inner, .. } | Kind::Reference { outer, inner, .. } => {
                careless || g.may(*outer, false) && g.may_all(&[*inner], write)
            }
            _ => false,
        };
        let fitting: Vec<Var> = self.vars.iter().filter(|var| fits(self, var)).cloned().collect();
        let var = self.pick(&fitting)?;
        let name = &var.name;
        let (text, writable) = match var.kind {
            Kind::Scalar { object } => (name.clone(), self.may(object, true)),
            Kind::Array { objects, len } => {
                let index = match self.perms[objects[0]] {
                    Perm::Slice { iterator, width } if !careless => self.slice_index(iterator, width),
                    _ => self.index(len),
                };
                (format!("{name}[{index}]"), objects.iter().all(|&object| self.may(object, true)))
            }
            Kind::Rows { count, len, inner, .. } => {
                let (row, column) = (self.index(count), self.index(len));
                (format!("{name}[{row}][{column}]"), self.may(inner, true))
            }
            Kind::Reference { len, inner, .. } => {
                let index = self.index(len);
                (format!("{name}[{index}]"), self.may(inner, true))
            }
            Kind::Int { .. } | Kind::Future { .. } | Kind::Promise { .. } => {
                unreachable!("these are not shared memory")
            }
        };
        let place = Place { text, writable: writable || careless, scope: self.vars.len() };
        self.recent.push(place.clone());
        Some(place)
    }

    fn slice_index(&mut self, iterator: usize, width: i64) -> String {
        let name = self.vars[iterator].name.clone();
        if width == 1 {
            return name;
        }
        match self.ints_within(0, width - 1) {
            inner if !inner.is_empty() && self.chance(0.5) => {
                let inner = self.pick(&inner).map_or_else(|| "0".to_owned(), |var| var.name);
                format!("{name} * {width} + {inner}")
            }
            _ => format!("{name} * {width} + {}", self.rng.i64(0..width)),
        }
    }

    /// The numbers in scope that lie in a range.
    pub(super) fn ints_within(&self, from: i64, to: i64) -> Vec<Var> {
        let fits = |var: &&Var| matches!(var.kind, Kind::Int { low, high } if low >= from && high <= to);
        self.vars.iter().filter(fits).cloned().collect()
    }
}
