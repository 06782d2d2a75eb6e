//! OpenMP programs as trees. There are no values and branches in them; loops are lists of what their chunks do.

use dagsan_core::{AccessKind, Bytes, SiteId};

/// A program: what the initial thread does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// Its statements.
    pub body: Vec<Stmt>,
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stmt {
    /// An access.
    Access {
        /// A read or a write.
        kind: AccessKind,
        /// What is touched.
        bytes: Bytes,
        /// From where.
        site: SiteId,
        /// Is it atomic? Then it is of an aligned word.
        atomic: bool,
    },
    /// `task`.
    Task(Clauses, Vec<Stmt>),
    /// `taskwait`, of all children or of those that these name.
    Taskwait(Vec<Depend>),
    /// `taskgroup`.
    Taskgroup(Vec<Stmt>),
    /// A section of a lock.
    Section(Lock, Vec<Stmt>),
    /// `parallel`, with so many threads, all of which do this. In no more than one other region.
    Parallel(u32, Vec<Stmt>),
    /// `single`, directly in a region.
    Single {
        /// Without the barrier at its end?
        nowait: bool,
        /// What one thread does.
        body: Vec<Stmt>,
    },
    /// `masked`: the thread of that number does it. Directly in a region.
    Masked(u32, Vec<Stmt>),
    /// Work that the threads of a region share: each of the [`Stmt::Chunk`]s in it is done by one of them. Directly in a region.
    Deal {
        /// How it is dealt out.
        how: Share,
        /// Without the barrier at its end?
        nowait: bool,
        /// The chunks.
        body: Vec<Stmt>,
    },
    /// `taskloop`: each of the [`Stmt::Chunk`]s in it is a task.
    Taskloop {
        /// Without the group around it?
        nogroup: bool,
        /// The chunks.
        body: Vec<Stmt>,
    },
    /// A part of shared work, or of a loop of tasks.
    Chunk(Vec<Stmt>),
    /// `barrier`, directly in a region.
    Barrier,
}

/// How work is dealt out to threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// `schedule(static)`: a chunk is an iteration, each thread has some that follow each other.
    Static,
    /// `schedule(static, n)`: a chunk is so many iterations, and the threads have them in turn.
    StaticChunk(u32),
    /// `schedule(dynamic, n)`: any thread may get it.
    Dynamic(u32),
    /// `schedule(guided)`: a chunk is an iteration.
    Guided,
    /// `sections`.
    Sections,
}

impl Share {
    /// May any thread get any chunk?
    pub fn is_open(self) -> bool {
        matches!(self, Share::Dynamic(_) | Share::Guided | Share::Sections)
    }

    /// How many iterations a chunk has.
    pub fn iterations(self) -> u32 {
        match self {
            Share::StaticChunk(iterations) | Share::Dynamic(iterations) => iterations,
            Share::Static | Share::Guided | Share::Sections => 1,
        }
    }
}

/// A lock, by a number: who holds one takes only those with higher numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lock(pub u32);

impl Lock {
    /// Is it an `omp_lock_t`? Else it is the name of a critical section.
    pub fn is_object(self) -> bool {
        self.0 % 2 == 1
    }
}

/// What is said of a task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clauses {
    /// `depend`, one item each.
    pub depend: Vec<Depend>,
    /// `if(0)`.
    pub undeferred: bool,
    /// `final(1)`.
    pub is_final: bool,
    /// `untied`.
    pub untied: bool,
}

/// An item of a `depend` clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depend {
    /// Its type.
    pub how: Use,
    /// The number of the variable that is named.
    pub on: u32,
}

/// The types of dependences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Comes after those that write.
    In,
    /// Comes after all others.
    Out,
    /// The same.
    Inout,
    /// Comes after all others but those of this type, from which it is kept apart.
    Mutexinoutset,
    /// Comes after all others but those of this type.
    Inoutset,
}

impl Use {
    /// In a clause.
    pub fn name(self) -> &'static str {
        match self {
            Use::In => "in",
            Use::Out => "out",
            Use::Inout => "inout",
            Use::Mutexinoutset => "mutexinoutset",
            Use::Inoutset => "inoutset",
        }
    }
}

impl Stmt {
    /// What is inside of it.
    pub fn body(&self) -> Option<&Vec<Stmt>> {
        match self {
            Stmt::Task(_, body) | Stmt::Taskgroup(body) | Stmt::Section(_, body) => Some(body),
            Stmt::Parallel(_, body) | Stmt::Single { body, .. } | Stmt::Masked(_, body) => Some(body),
            Stmt::Deal { body, .. } | Stmt::Taskloop { body, .. } | Stmt::Chunk(body) => Some(body),
            Stmt::Access { .. } | Stmt::Taskwait(_) | Stmt::Barrier => None,
        }
    }

    /// The same, to change.
    pub fn body_mut(&mut self) -> Option<&mut Vec<Stmt>> {
        match self {
            Stmt::Task(_, body) | Stmt::Taskgroup(body) | Stmt::Section(_, body) => Some(body),
            Stmt::Parallel(_, body) | Stmt::Single { body, .. } | Stmt::Masked(_, body) => Some(body),
            Stmt::Deal { body, .. } | Stmt::Taskloop { body, .. } | Stmt::Chunk(body) => Some(body),
            Stmt::Access { .. } | Stmt::Taskwait(_) | Stmt::Barrier => None,
        }
    }
}

impl Program {
    /// Calls `visit` on every statement, in text order.
    pub fn for_each<'p>(&'p self, mut visit: impl FnMut(&'p Stmt)) {
        for_each(&self.body, &mut visit);
    }

    /// How many statements there are.
    pub fn len(&self) -> usize {
        let mut count = 0;
        self.for_each(|_| count += 1);
        count
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// How many tasks it creates.
    pub fn tasks(&self) -> usize {
        let mut count = 0;
        self.for_each(|stmt| {
            count += match stmt {
                Stmt::Task(..) => 1,
                Stmt::Taskloop { body, .. } => body.len(),
                _ => 0,
            };
        });
        count
    }

    /// The ranges that it touches.
    pub fn ranges(&self) -> Vec<Bytes> {
        let mut ranges = Vec::new();
        self.for_each(|stmt| {
            if let Stmt::Access { bytes, .. } = stmt {
                ranges.push(*bytes);
            }
        });
        ranges
    }
}

/// The same for a part of a program.
pub(super) fn for_each<'p>(body: &'p [Stmt], visit: &mut dyn FnMut(&'p Stmt)) {
    for stmt in body {
        visit(stmt);
        if let Some(inner) = stmt.body() {
            for_each(inner, visit);
        }
    }
}
