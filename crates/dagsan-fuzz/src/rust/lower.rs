//! A program as bodies of plain operations: which function of `batch/support.rs` does what, with which numbers.
//!
//! Both forms of a program come from it: the one that is compiled, and the one that is interpreted. The main task runs in a finish
//! only if the program has asyncs, futures or other finishes; the body of a task is a procedure only if it spawns or syncs.

use std::collections::{BTreeMap, BTreeSet};

use dagsan_core::{AccessKind, Bytes, LockMode};

use super::nest::{Form as Written, Nest, is_procedure};
use super::op::{Form, OWN, Op, Place, Sizes, Word};
use super::threads::Handover;
use super::{Layout, Region, Said};
use crate::program::{Program, Stmt};

/// A program. The main task is the first of its bodies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lowered {
    pub sizes: Sizes,
    pub bodies: Vec<Body>,
}

/// What a task, or a part of one, does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// If it is a task's: does it spawn or sync?
    pub procedure: bool,
    pub ops: Vec<Op>,
}

/// Lowers a program.
pub fn lower(said: &Said, layout: &Layout) -> Lowered {
    let program = &said.program;
    let shared = program.walk().filter_map(|stmt| match stmt {
        Stmt::Lock(name, LockMode::Shared) => Some(*name),
        _ => None,
    });
    let mut lowering = Lowering {
        layout,
        nest: Nest::of(said),
        shared: shared.collect(),
        own: Own::of(program),
        threads: said.threads.then(|| Threads::of(said)),
        pending: Vec::new(),
        sections: 0,
    };
    lowering.task(&program.body);
    let mut bodies = Vec::new();
    while let Some(&Pending { body, procedure, in_section }) = lowering.pending.get(bodies.len()) {
        lowering.sections = u32::from(in_section);
        bodies.push(Body { procedure, ops: lowering.body(body) });
    }
    Lowered { sizes: sizes(said, layout), bodies }
}

fn sizes(said: &Said, layout: &Layout) -> Sizes {
    let mut sizes = Sizes {
        arena: layout.size(Region::Arena) as usize,
        heap: said.heap(),
        pages: layout.size(Region::Pages) as usize,
        promises: 0,
        futures: 0,
        locks: 0,
        syncs: 0,
        finish: false,
    };
    for stmt in said.program.walk() {
        sizes.finish |= !said.threads && matches!(stmt, Stmt::Async(_) | Stmt::Finish(_) | Stmt::Future(..));
        let (size, name) = match stmt {
            Stmt::Set(name) | Stmt::Get(name) => (&mut sizes.promises, name),
            Stmt::Future(name, _) | Stmt::GetFuture(name) => (&mut sizes.futures, name),
            Stmt::Lock(name, _) | Stmt::Unlock(name) => (&mut sizes.locks, name),
            Stmt::Release(name, _) | Stmt::Acquire(name) => (&mut sizes.syncs, name),
            _ => continue,
        };
        *size = (*size).max(*name as usize + 1);
    }
    sizes
}

/// Names that only one piece of code uses: what they stand for can be on its stack, and means nothing to others.
#[derive(Debug, Default)]
struct Own {
    /// Locks that are taken in one place, which runs once.
    locks: BTreeSet<u32>,
    /// Objects that one body alone releases and acquires.
    syncs: BTreeSet<u32>,
}

impl Own {
    fn of(program: &Program) -> Own {
        let mut taken: BTreeMap<u32, u32> = BTreeMap::new();
        let mut used: BTreeMap<u32, u32> = BTreeMap::new();
        let bodies = program.walk().filter_map(Stmt::body).chain([&program.body]);
        for body in bodies {
            let names: BTreeSet<u32> = body.iter().filter_map(sync_of).collect();
            names.into_iter().for_each(|name| *used.entry(name).or_default() += 1);
            for stmt in body {
                if let Stmt::Lock(name, _) = stmt {
                    *taken.entry(*name).or_default() += 1;
                }
            }
        }
        let once = |names: BTreeMap<u32, u32>| names.into_iter().filter(|(_, count)| *count == 1);
        Own {
            locks: once(taken).map(|(name, _)| name).collect(),
            syncs: once(used).map(|(name, _)| name).collect(),
        }
    }
}

fn sync_of(stmt: &Stmt) -> Option<u32> {
    match stmt {
        Stmt::Release(name, _) | Stmt::Acquire(name) => Some(*name),
        _ => None,
    }
}

/// The slots of a body, in the order in which names come.
#[derive(Default)]
struct Slots(Vec<u32>);

impl Slots {
    /// The slot of the name, if there is one left.
    fn of(&mut self, name: u32) -> Option<usize> {
        let slot = self.0.iter().position(|&other| other == name).unwrap_or(self.0.len());
        if slot == self.0.len() {
            self.0.push(name);
        }
        (slot < OWN).then_some(slot)
    }
}

/// What is needed to write tasks as threads.
struct Threads {
    /// The numbers of statements, by their addresses.
    numbers: BTreeMap<*const Stmt, usize>,
    handovers: BTreeMap<u32, Handover>,
    /// Which threads yield before which statements.
    yields: fastrand::Rng,
}

impl Threads {
    fn of(said: &Said) -> Threads {
        let statements = said.program.walk().enumerate();
        Threads {
            numbers: statements.map(|(number, stmt)| (std::ptr::from_ref(stmt), number)).collect(),
            handovers: Handover::of(&said.program, said.nest),
            yields: fastrand::Rng::with_seed(said.nest),
        }
    }
}

struct Lowering<'p> {
    layout: &'p Layout,
    nest: Nest,
    /// The locks that are also held in shared mode.
    shared: BTreeSet<u32>,
    own: Own,
    /// If tasks are threads.
    threads: Option<Threads>,
    /// All bodies that there are so far.
    pending: Vec<Pending<'p>>,
    /// How many sections the present place is in.
    sections: u32,
}

/// A body that is to be lowered.
struct Pending<'p> {
    body: &'p [Stmt],
    procedure: bool,
    /// Is all of it in a section of a lock?
    in_section: bool,
}

impl<'p> Lowering<'p> {
    fn function(&mut self, body: &'p [Stmt], procedure: bool) -> usize {
        self.pending.push(Pending { body, procedure, in_section: self.sections > 0 });
        self.pending.len() - 1
    }

    /// The body of a task.
    fn task(&mut self, body: &'p [Stmt]) -> usize {
        self.function(body, !self.nest.is_joins() && is_procedure(body))
    }

    fn body(&mut self, mut body: &'p [Stmt]) -> Vec<Op> {
        let (mut ops, mut locks, mut syncs) = (Vec::new(), Slots::default(), Slots::default());
        while let Some((stmt, mut rest)) = body.split_first() {
            let half = match stmt {
                Stmt::Spawn(spawned) => self.nest.join(spawned, rest).map(|half| (spawned, half)),
                _ => None,
            };
            if let Some((spawned, half)) = half {
                let second;
                (second, rest) = rest.split_at(half);
                ops.push(Op::Join { first: self.task(spawned), second: self.function(second, true) });
            } else if self.nest.is_joins() && matches!(stmt, Stmt::Call(_) | Stmt::Sync) {
                // A procedure is a join and what is around it.
                ops.extend(self.body(stmt.body().map_or(&[], Vec::as_slice)));
            } else {
                let op = self.stmt(stmt, rest.first(), &mut locks, &mut syncs);
                ops.extend(op.into_iter().flat_map(|op| self.told(stmt, op)));
            }
            body = rest;
        }
        ops
    }

    /// The operation, and where it is told that it is made, if that is told. A thread that yields lets others go first.
    fn told(&mut self, stmt: &'p Stmt, op: Op) -> Vec<Op> {
        let Some(Threads { numbers, handovers, yields }) = &mut self.threads else { return vec![op] };
        let number = numbers.get(&std::ptr::from_ref(stmt)).copied().unwrap_or(usize::MAX);
        let tell = Op::Tell { number };
        let channel = |name: usize| handovers.get(&(name as u32)) == Some(&Handover::Channel);
        let mut ops = Vec::new();
        if yields.u32(0..6) == 0 {
            ops.push(Op::Yield);
        }
        ops.extend(match op {
            Op::Async { body } => vec![tell, Op::Scoped { body }],
            Op::Finish { body } | Op::Scope { body } | Op::ScopeElsewhere { body } => {
                vec![tell, Op::ThreadScope { body }]
            }
            Op::Future { name, body } => vec![tell, Op::Thread { name, body }],
            Op::GetFuture { name } => vec![Op::JoinThread { name }, tell],
            Op::Detach { body } => vec![tell, Op::DetachThread { body }],
            Op::Set { name } if channel(name) => vec![tell, Op::Send { name }],
            Op::Set { name } => vec![tell, Op::Notify { name }],
            Op::Get { name } if channel(name) => vec![Op::Receive { name, number }],
            Op::Get { name } => vec![Op::Wait { name, number }],
            Op::OwnLock { .. } | Op::Mutex { .. } | Op::Exclusive { .. } | Op::Shared { .. } => {
                vec![op, tell]
            }
            _ => vec![tell, op],
        });
        ops
    }

    fn stmt(
        &mut self,
        stmt: &'p Stmt,
        next: Option<&Stmt>,
        locks: &mut Slots,
        syncs: &mut Slots,
    ) -> Option<Op> {
        let named = |name: &u32| *name as usize;
        Some(match stmt {
            Stmt::Read { bytes, site } => {
                let (form, place, len) = self.access(*bytes, site.number());
                // A slice is copied to the heap and freed. A free is delivered at once, with what the strand did before: that is then not
                // ordered by what the section does later, as it is in the same strand.
                let form = if form == Form::Slice && self.sections > 0 { Form::Array } else { form };
                Op::Read { form, place, len }
            }
            Stmt::Write { bytes, site } => {
                let (form, place, len) = self.access(*bytes, site.number());
                Op::Write { form, place, len }
            }
            Stmt::Atomic { kind, bytes, .. } => {
                let (place, len) = (self.place(*bytes), bytes.len() as usize);
                match kind {
                    AccessKind::Read => Op::AtomicLoad { place, len },
                    AccessKind::Write => Op::AtomicStore { place, len },
                }
            }
            Stmt::Free { bytes, .. } => {
                let (start, size) = self.layout.pages_of(*bytes);
                Op::Free { at: start as usize, size: size as usize }
            }
            Stmt::Async(body) => Op::Async { body: self.task(body) },
            Stmt::Future(name, body) => Op::Future { name: named(name), body: self.task(body) },
            Stmt::Spawn(body) => Op::Spawn { body: self.task(body) },
            Stmt::Finish(inner) => {
                let body = self.task(inner);
                match self.nest.finish(inner) {
                    Written::Task => Op::Finish { body },
                    Written::AtOnce => Op::ScopeElsewhere { body },
                    Written::Late => Op::Scope { body },
                }
            }
            Stmt::Detached(body) => Op::Detach { body: self.task(body) },
            Stmt::Call(body) => Op::Call { body: self.function(body, true) },
            Stmt::Isolated(body) => {
                self.sections += 1;
                let body = self.function(body, false);
                self.sections -= 1;
                Op::Isolated { body }
            }
            Stmt::Sync => Op::Sync,
            Stmt::GetFuture(name) => Op::GetFuture { name: named(name) },
            Stmt::Set(name) => Op::Set { name: named(name) },
            Stmt::Get(name) => Op::Get { name: named(name) },
            Stmt::Lock(name, mode) => {
                self.sections += 1;
                let own = *mode == LockMode::Exclusive && self.own.locks.contains(name);
                match (own.then(|| locks.of(*name)).flatten(), mode) {
                    (Some(slot), _) => Op::OwnLock { name: named(name), slot },
                    (None, LockMode::Shared) => Op::Shared { name: named(name) },
                    (None, LockMode::Exclusive) if self.shared.contains(name) => {
                        Op::Exclusive { name: named(name) }
                    }
                    (None, LockMode::Exclusive) => Op::Mutex { name: named(name) },
                }
            }
            Stmt::Unlock(name) => {
                self.sections -= 1;
                Op::Unlock { name: named(name) }
            }
            Stmt::Release(name, false) => Op::Store { word: self.word(*name, syncs) },
            Stmt::Release(name, true) => Op::Update { word: self.word(*name, syncs) },
            // One operation for both.
            Stmt::Acquire(name) if next == Some(&Stmt::Release(*name, true)) => {
                Op::AcquireUpdate { word: self.word(*name, syncs) }
            }
            Stmt::Acquire(name) => Op::Load { word: self.word(*name, syncs) },
            Stmt::Child(..) | Stmt::Post(..) | Stmt::Await(_) | Stmt::Ewait(_) => return None,
        })
    }

    fn word(&self, name: u32, syncs: &mut Slots) -> Word {
        let own = self.own.syncs.contains(&name).then(|| syncs.of(name)).flatten();
        own.map_or(Word::Shared(name as usize), Word::Own)
    }

    fn place(&self, bytes: Bytes) -> Place {
        match self.layout.place(bytes.start()) {
            (Region::Arena, at) => Place::Arena(at as usize),
            (Region::Pages, at) => Place::Pages(at as usize),
        }
    }

    /// A word where that is possible, otherwise an array; for some a loop, or a copy. Some words are accessed in the
    /// body itself, with its hooks inlined; the others, which take less time to compile, by a call.
    fn access(&self, bytes: Bytes, site: u32) -> (Form, Place, usize) {
        let (_, at) = self.layout.place(bytes.start());
        let len = bytes.len();
        let form = match (len, site % 8) {
            (1 | 2 | 4 | 8 | 16, 4) if at % len == 0 => Form::Here,
            (1 | 2 | 4 | 8 | 16, 2..8) if at % len == 0 => Form::Word,
            (2 | 4 | 8 | 16, 2..8) => Form::Unaligned,
            (3 | 5 | 6 | 7 | 9..=15, 3) => Form::Value,
            (_, 0) => Form::Each,
            (_, 1) => Form::Slice,
            _ => Form::Array,
        };
        (form, self.place(bytes), len as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rust::op::Start;
    use crate::rust::{interpreted, say};

    fn lowered(text: &str, nest: u64) -> Lowered {
        let said = say(&Program::parse(text).unwrap(), true, nest);
        lower(&said, &Layout::new(&said.program))
    }

    #[test]
    fn what_one_body_uses_alone_is_on_its_stack() {
        let text =
            "async { lock l0; w 0+1; unlock l0; load s0; store s0 } lock l1; unlock l1; lock l1; unlock l1";
        let Lowered { bodies, .. } = lowered(text, 0);
        assert_eq!(bodies[1].ops[0], Op::OwnLock { name: 0, slot: 0 });
        assert_eq!(bodies[1].ops[3], Op::Load { word: Word::Own(0) });
        assert_eq!(bodies[0].ops[1], Op::Mutex { name: 1 }, "taken twice");
        let many: String = (0..6).map(|name| format!("lock l{name}; unlock l{name}; ")).collect();
        let own =
            lowered(&many, 0).bodies[0].ops.iter().filter(|op| matches!(op, Op::OwnLock { .. })).count();
        assert_eq!(own, OWN, "others are where all are");
    }

    /// What is written can be read: all operations are in the programs of some seeds.
    #[test]
    fn the_text_of_operations_is_parsed_back() {
        let mut names = BTreeSet::new();
        for (seed, class) in (0..400).zip(crate::Class::ALL.into_iter().cycle()) {
            let mut rng = fastrand::Rng::with_seed(seed);
            let program = crate::generate(class, &mut rng, crate::Size { tasks: 20 });
            let say = if seed / 12 % 3 == 0 { crate::rust::say_threads } else { say };
            let said = say(&program, false, seed);
            let layout = Layout::new(&said.program);
            let Lowered { sizes, bodies } = lower(&said, &layout);
            let text = interpreted(&said, &layout);
            let mut lines = text.lines();
            assert_eq!(lines.next().unwrap().parse(), Ok(sizes));
            for Body { procedure, ops } in bodies {
                assert_eq!(lines.next().unwrap().parse(), Ok(Start::Body { procedure }));
                for op in ops {
                    let line = lines.next().unwrap();
                    names.insert(line.split(" ").next().map(str::to_owned));
                    assert_eq!(line.parse(), Ok(op));
                }
            }
            assert_eq!(lines.next(), None);
        }
        assert_eq!(names.len(), 39, "{names:?}");
        assert!("Set".parse::<Op>().is_err() && "Sync 1".parse::<Op>().is_err());
        assert!("Load x1".parse::<Op>().is_err() && "Lead o1".parse::<Op>().is_err());
    }
}
