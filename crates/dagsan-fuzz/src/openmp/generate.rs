//! Random OpenMP programs: those of the task language's generator, said in OpenMP.
//!
//! All its tasks become `task`s, which are then given dependences, most of them on variables that go with what the task touches, and other
//! clauses. A sync, a get, an await becomes a `taskwait`, a finish a `taskgroup`, an isolated section a critical one. What the main task does is
//! cut into pieces, which the initial thread, a `single`, a thread of a number or all threads of a region do.

use dagsan_core::{AccessKind, Bytes};
use fastrand::Rng;

use super::tidy::tidy;
use super::tree::{Clauses, Depend, Lock, Program, Share, Stmt, Use};
use crate::generate::Size;
use crate::program::{self, Class};

/// The classes of programs that there is most of in OpenMP.
const CLASSES: [Class; 5] = [Class::Sp, Class::SpawnSync, Class::Futures, Class::Isolated, Class::Locks];

/// The critical section that stands for isolated ones.
const ISOLATED: Lock = Lock(2);

/// The program of a seed; with so many threads in each region, or any number.
pub fn generate(seed: u64, threads: Option<u32>) -> Program {
    let mut rng = Rng::with_seed(seed);
    let class = CLASSES[rng.usize(0..CLASSES.len())];
    let size = Size { tasks: Size::pick(&mut rng).tasks.min(40) };
    let program = crate::generate(class, &mut rng, size);
    let mut likes = Likes {
        depend: [0, 0, 30, 70, 100][rng.usize(0..5)],
        fitting: [0, 60, 90, 100][rng.usize(0..4)],
        variables: rng.u32(1..=4),
        uses: rng.choice(USES).copied().unwrap_or(USES[0]),
        clauses: [0, 0, 10, 40][rng.usize(0..4)],
        rng: &mut rng,
    };
    let body = likes.body(&program.body);
    let body = regions(body, threads, &mut rng);
    let of_100 = [0, 0, 0, 3, 10][rng.usize(0..5)];
    tidy(&Program { body: nest(body, of_100, &mut rng) })
}

/// What tasks do that write, apart from `out`.
const USES: &[&[Use]] = &[
    &[Use::Out, Use::Inout],
    &[Use::Mutexinoutset],
    &[Use::Inoutset],
    &[Use::Inout, Use::Mutexinoutset, Use::Inoutset],
    &[Use::In, Use::Out, Use::Inout, Use::Mutexinoutset, Use::Inoutset],
];

struct Likes<'r> {
    /// How many of 100 tasks have dependences, and how many of 100 items fit to what the task does.
    depend: u32,
    fitting: u32,
    variables: u32,
    uses: &'static [Use],
    /// How many of 100 tasks have other clauses.
    clauses: u32,
    rng: &'r mut Rng,
}

impl Likes<'_> {
    fn chance(&mut self, of_100: u32) -> bool {
        self.rng.u32(0..100) < of_100
    }

    fn body(&mut self, stmts: &[program::Stmt]) -> Vec<Stmt> {
        let mut body = Vec::new();
        let mut rest = stmts;
        while let Some((stmt, after)) = rest.split_first() {
            rest = after;
            if let program::Stmt::Lock(name, _) = stmt {
                let given_back = rest
                    .iter()
                    .position(|stmt| matches!(stmt, program::Stmt::Unlock(other) if other == name));
                if let Some(end) = given_back {
                    let lock = Lock(ISOLATED.0 + 1 + name);
                    body.push(Stmt::Section(lock, self.body(&rest[..end])));
                    rest = &rest[end + 1..];
                }
                continue;
            }
            self.statement(stmt, &mut body);
        }
        body
    }

    fn statement(&mut self, stmt: &program::Stmt, body: &mut Vec<Stmt>) {
        use program::Stmt::*;
        match stmt {
            Read { bytes, site } => {
                body.push(Stmt::Access { kind: AccessKind::Read, bytes: *bytes, site: *site, atomic: false });
            }
            Write { bytes, site } | Free { bytes, site } => {
                body.push(Stmt::Access {
                    kind: AccessKind::Write,
                    bytes: *bytes,
                    site: *site,
                    atomic: false,
                });
            }
            Atomic { kind, bytes, site } => {
                body.push(Stmt::Access { kind: *kind, bytes: *bytes, site: *site, atomic: true });
            }
            Async(inner)
            | Spawn(inner)
            | Future(_, inner)
            | Child(_, inner)
            | Post(_, inner)
            | Detached(inner) => {
                let clauses = self.clauses(inner);
                body.push(Stmt::Task(clauses, self.body(inner)));
            }
            Finish(inner) if self.chance(15) => {
                let chunks = self.body(inner).into_iter().map(|stmt| Stmt::Chunk(vec![stmt])).collect();
                body.push(Stmt::Taskloop { nogroup: self.chance(40), body: chunks });
            }
            Finish(inner) => body.push(Stmt::Taskgroup(self.body(inner))),
            Call(inner) => body.extend(self.body(inner)),
            Isolated(inner) => body.push(Stmt::Section(ISOLATED, self.body(inner))),
            Sync | GetFuture(_) | Await(_) | Ewait(_) => {
                let depend = if self.chance(self.depend / 2) { vec![self.item(None)] } else { Vec::new() };
                body.push(Stmt::Taskwait(depend));
            }
            Set(_) | Get(_) | Lock(..) | Unlock(_) | Release(..) | Acquire(_) => {}
        }
    }

    fn clauses(&mut self, body: &[program::Stmt]) -> Clauses {
        let mut clauses = Clauses::default();
        if self.chance(self.depend) {
            for _ in 0..self.rng.u32(1..=3) {
                let touched: Vec<(AccessKind, Bytes)> = body.iter().filter_map(access).collect();
                let fits = self.chance(self.fitting);
                let touched = self.rng.choice(touched).filter(|_| fits);
                clauses.depend.push(self.item(touched));
            }
        }
        if self.chance(self.clauses) {
            match self.rng.u32(0..4) {
                0 | 1 => clauses.undeferred = true,
                2 => clauses.is_final = true,
                _ => clauses.untied = true,
            }
        }
        clauses
    }

    /// A dependence, that of a task which touches these bytes.
    fn item(&mut self, touched: Option<(AccessKind, Bytes)>) -> Depend {
        let writes = self.rng.choice(self.uses).copied().unwrap_or(Use::Inout);
        match touched {
            // Bytes of a line have a variable.
            Some((kind, bytes)) => Depend {
                how: if kind == AccessKind::Read { Use::In } else { writes },
                on: (bytes.start() / 64 % u64::from(self.variables)) as u32,
            },
            None => Depend {
                how: if self.rng.u32(0..3) == 0 { Use::In } else { writes },
                on: self.rng.u32(0..self.variables),
            },
        }
    }
}

fn access(stmt: &program::Stmt) -> Option<(AccessKind, Bytes)> {
    match stmt {
        program::Stmt::Read { bytes, .. } => Some((AccessKind::Read, *bytes)),
        program::Stmt::Write { bytes, .. } => Some((AccessKind::Write, *bytes)),
        _ => None,
    }
}

/// Shared work: these statements, in chunks.
fn deal(part: Vec<Stmt>, rng: &mut Rng) -> Stmt {
    let how = match rng.u32(0..6) {
        0 => Share::Static,
        1 => Share::StaticChunk(rng.u32(1..4)),
        2 | 3 => Share::Dynamic(rng.u32(1..4)),
        4 => Share::Guided,
        _ => Share::Sections,
    };
    let mut chunks: Vec<Vec<Stmt>> = Vec::new();
    for stmt in part {
        match chunks.last_mut().filter(|_| rng.u32(0..3) == 0) {
            Some(chunk) => chunk.push(stmt),
            None => chunks.push(vec![stmt]),
        }
    }
    let body = chunks.into_iter().map(Stmt::Chunk).collect();
    Stmt::Deal { how, nowait: rng.bool(), body }
}

/// Makes regions of some of what is done in others: by one thread, or in a task.
fn nest(body: Vec<Stmt>, of_100: u32, rng: &mut Rng) -> Vec<Stmt> {
    let mut nested = Vec::new();
    for mut stmt in body {
        if let Some(inner) = stmt.body_mut() {
            *inner = nest(std::mem::take(inner), of_100, rng);
        }
        let is_one = matches!(stmt, Stmt::Access { .. } | Stmt::Task(..) | Stmt::Taskgroup(_));
        if is_one && rng.u32(0..100) < of_100 {
            let inner = match rng.u32(0..4) {
                0 => stmt,
                1 => Stmt::Masked(rng.u32(0..2), vec![stmt]),
                2 => deal(vec![stmt], rng),
                _ => Stmt::Single { nowait: rng.bool(), body: vec![stmt] },
            };
            stmt = Stmt::Parallel(rng.u32(1..=3), vec![inner]);
        }
        nested.push(stmt);
    }
    nested
}

/// Deals out what the main task does.
fn regions(mut body: Vec<Stmt>, threads: Option<u32>, rng: &mut Rng) -> Vec<Stmt> {
    let any = [1, 2, 2, 3, 4, 4, 8];
    let threads = |rng: &mut Rng| threads.unwrap_or_else(|| any[rng.usize(0..any.len())]);
    match rng.u32(0..10) {
        // No region at all: tasks of the initial thread.
        0 => body,
        1..5 => {
            let nowait = rng.bool();
            vec![Stmt::Parallel(threads(rng), vec![Stmt::Single { nowait, body }])]
        }
        // Regions, and what is between them.
        5..7 => {
            let mut all = Vec::new();
            while !body.is_empty() {
                let rest = body.split_off(rng.usize(1..=body.len()));
                let part = std::mem::replace(&mut body, rest);
                match rng.u32(0..4) {
                    0 => all.extend(part),
                    _ => {
                        let part = vec![Stmt::Single { nowait: rng.bool(), body: part }];
                        all.push(Stmt::Parallel(threads(rng), part));
                    }
                }
            }
            all
        }
        _ => {
            let team = threads(rng);
            let mut all = Vec::new();
            while !body.is_empty() {
                let rest = body.split_off(rng.usize(1..=body.len().min(4)));
                let part = std::mem::replace(&mut body, rest);
                match rng.u32(0..12) {
                    0..4 => all.push(Stmt::Single { nowait: rng.u32(0..3) > 0, body: part }),
                    4..8 => all.push(deal(part, rng)),
                    8..11 => all.push(Stmt::Masked(rng.u32(0..team), part)),
                    _ => all.extend(part),
                }
                if rng.u32(0..4) == 0 {
                    all.push(Stmt::Barrier);
                }
            }
            vec![Stmt::Parallel(team, all)]
        }
    }
}
