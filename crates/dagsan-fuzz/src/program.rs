//! Event/access programs: what the fuzzer generates, runs, shrinks and keeps.
//!
//! A program is the smallest thing that has every task construct of [`dagsan_core::Event`] and accesses
//! to byte ranges. Promises, futures and regions have static names. There are no values, branches or
//! loops, so every statement runs at most once, and no statement runs in one schedule but not in
//! another (unless the program deadlocks).

use std::fmt;
use std::slice;
use std::str::FromStr;

use dagsan_core::{AccessKind, Bytes, Construct, LockMode, SiteId};

/// A program: the body of its main task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// What the main task does.
    pub body: Vec<Stmt>,
}

/// A statement. A block statement owns its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stmt {
    /// A read.
    Read {
        /// What is read.
        bytes: Bytes,
        /// From where: see [`Program::number_sites`].
        site: SiteId,
    },
    /// A write.
    Write {
        /// What is written.
        bytes: Bytes,
        /// From where.
        site: SiteId,
    },
    /// Memory is freed: a write, after which the bytes are other memory.
    Free {
        /// What is freed.
        bytes: Bytes,
        /// From where.
        site: SiteId,
    },
    /// An atomic read or write.
    Atomic {
        /// Which of them.
        kind: AccessKind,
        /// What is touched.
        bytes: Bytes,
        /// From where.
        site: SiteId,
    },
    /// A task that the enclosing finish joins.
    Async(Vec<Stmt>),
    /// Runs the body, then joins every task started in it.
    Finish(Vec<Stmt>),
    /// A task that the next sync of the procedure instance joins.
    Spawn(Vec<Stmt>),
    /// Joins the unsynced spawns of the innermost procedure instance (task body or call).
    Sync,
    /// A procedure instance; it syncs before it ends.
    Call(Vec<Stmt>),
    /// A task with a name. If several have the same, the name means the first one created.
    Future(u32, Vec<Stmt>),
    /// A task with a name, as a future, that the next sync of the procedure instance joins, if its parent does not end before.
    Child(u32, Vec<Stmt>),
    /// Joins the future of that name; waits until it has been created and has ended.
    GetFuture(u32),
    /// Sets the promise; does nothing if it is set.
    Set(u32),
    /// Waits until the promise is set.
    Get(u32),
    /// An isolated section. Inside another one it is only a block.
    Isolated(Vec<Stmt>),
    /// A task of the region.
    Post(u32, Vec<Stmt>),
    /// Joins all tasks posted to the region and not yet joined through it.
    Await(u32),
    /// Joins one task of the region that has ended; does nothing if there is none to wait for.
    Ewait(u32),
    /// The task holds the lock from here on, in that mode, also if it held it in the other. Nobody waits: that
    /// it is alone with the lock is taken on trust, as in the core.
    Lock(u32, LockMode),
    /// The task holds the lock no longer, if it did.
    Unlock(u32),
    /// Releases the object: if `true`, what was released before stays so.
    Release(u32, bool),
    /// Acquires what is released.
    Acquire(u32),
    /// A task that only the end of the program joins.
    Detached(Vec<Stmt>),
}

/// The site of an access that has not been numbered.
const NO_SITE: SiteId = site(0);

/// The site of that number; all beyond the largest number share it.
pub(crate) const fn site(number: u32) -> SiteId {
    match SiteId::new(number) {
        Some(site) => site,
        None => site(SiteId::MAX),
    }
}

impl Stmt {
    /// A read, not numbered.
    pub fn read(bytes: Bytes) -> Stmt {
        Stmt::Read { bytes, site: NO_SITE }
    }

    /// A write, not numbered.
    pub fn write(bytes: Bytes) -> Stmt {
        Stmt::Write { bytes, site: NO_SITE }
    }

    /// A free, not numbered.
    pub fn free(bytes: Bytes) -> Stmt {
        Stmt::Free { bytes, site: NO_SITE }
    }

    /// An atomic access, not numbered.
    pub fn atomic(kind: AccessKind, bytes: Bytes) -> Stmt {
        Stmt::Atomic { kind, bytes, site: NO_SITE }
    }

    /// The body of a block statement.
    pub fn body(&self) -> Option<&Vec<Stmt>> {
        use Stmt::*;
        match self {
            Async(body) | Finish(body) | Spawn(body) | Call(body) | Isolated(body) => Some(body),
            Future(_, body) | Child(_, body) | Post(_, body) | Detached(body) => Some(body),
            Read { .. } | Write { .. } | Free { .. } | Atomic { .. } => None,
            Sync | GetFuture(_) | Set(_) | Get(_) | Await(_) | Ewait(_) => None,
            Lock(..) | Unlock(_) | Release(..) | Acquire(_) => None,
        }
    }

    /// The body of a block statement, to change.
    pub fn body_mut(&mut self) -> Option<&mut Vec<Stmt>> {
        use Stmt::*;
        match self {
            Async(body) | Finish(body) | Spawn(body) | Call(body) | Isolated(body) => Some(body),
            Future(_, body) | Child(_, body) | Post(_, body) | Detached(body) => Some(body),
            Read { .. } | Write { .. } | Free { .. } | Atomic { .. } => None,
            Sync | GetFuture(_) | Set(_) | Get(_) | Await(_) | Ewait(_) => None,
            Lock(..) | Unlock(_) | Release(..) | Acquire(_) => None,
        }
    }

    /// The bytes of an access.
    pub fn bytes(&self) -> Option<Bytes> {
        use Stmt::*;
        match *self {
            Read { bytes, .. } | Write { bytes, .. } | Free { bytes, .. } | Atomic { bytes, .. } => {
                Some(bytes)
            }
            _ => None,
        }
    }

    /// The site of an access.
    pub fn site(&self) -> Option<SiteId> {
        use Stmt::*;
        match *self {
            Read { site, .. } | Write { site, .. } | Free { site, .. } | Atomic { site, .. } => Some(site),
            _ => None,
        }
    }

    /// The bytes of an access, to change.
    pub fn bytes_mut(&mut self) -> Option<&mut Bytes> {
        use Stmt::*;
        match self {
            Read { bytes, .. } | Write { bytes, .. } | Free { bytes, .. } | Atomic { bytes, .. } => {
                Some(bytes)
            }
            _ => None,
        }
    }

    /// Does the statement create a task?
    pub fn creates_task(&self) -> bool {
        use Stmt::*;
        matches!(self, Async(_) | Spawn(_) | Future(..) | Child(..) | Post(..) | Detached(_))
    }
}

impl Program {
    /// Every statement in text order: a block before its body.
    pub fn walk(&self) -> Walk<'_> {
        walk(&self.body)
    }

    /// Calls `visit` on every statement, in text order.
    pub fn for_each_mut(&mut self, mut visit: impl FnMut(&mut Stmt)) {
        let mut open = vec![self.body.iter_mut()];
        while let Some(body) = open.last_mut() {
            let Some(stmt) = body.next() else {
                open.pop();
                continue;
            };
            visit(stmt);
            if let Some(inner) = stmt.body_mut() {
                open.push(inner.iter_mut());
            }
        }
    }

    /// Gives every access its own site number: 0, 1, 2, … in text order.
    pub fn number_sites(&mut self) {
        let mut next = 0;
        self.for_each_mut(|stmt| {
            if let Stmt::Read { site: at, .. }
            | Stmt::Write { site: at, .. }
            | Stmt::Free { site: at, .. }
            | Stmt::Atomic { site: at, .. } = stmt
            {
                *at = site(next);
                next = next.saturating_add(1);
            }
        });
    }

    /// How many tasks the program creates, with the main task.
    pub fn task_count(&self) -> usize {
        1 + self.walk().filter(|stmt| stmt.creates_task()).count()
    }
}

/// The same for a part of a program.
pub(crate) fn walk(body: &[Stmt]) -> Walk<'_> {
    Walk { open: vec![body.iter()] }
}

/// Iterator over all statements; see [`Program::walk`]. Its stack is on the heap: nesting may be deep.
#[derive(Debug, Clone)]
pub struct Walk<'p> {
    open: Vec<slice::Iter<'p, Stmt>>,
}

impl<'p> Iterator for Walk<'p> {
    type Item = &'p Stmt;

    fn next(&mut self) -> Option<&'p Stmt> {
        loop {
            let Some(stmt) = self.open.last_mut()?.next() else {
                self.open.pop();
                continue;
            };
            if let Some(inner) = stmt.body() {
                self.open.push(inner.iter());
            }
            return Some(stmt);
        }
    }
}

/// A class of programs: which constructs they use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// async/finish: series-parallel.
    Sp,
    /// spawn/sync.
    SpawnSync,
    /// spawn/sync and futures whose handles are passed on linearly.
    StructuredFutures,
    /// async/finish, spawn/sync and futures that anyone may get.
    Futures,
    /// Those, and promises.
    Promises,
    /// async/finish, spawn/sync and isolated sections.
    Isolated,
    /// Everything that the task language has, regions too.
    All,
    /// async/finish, spawn/sync, isolated sections, and locks; some accesses are atomic.
    Locks,
    /// What the task language has, and atomics.
    Atomics,
    /// Those, and locks.
    Native,
    /// What the task language has, and tasks that nobody joins.
    Detached,
    /// Futures, atomics, and tasks that a sync of their parent joins and that may outlive it.
    Children,
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 12] = [
        Class::Sp,
        Class::SpawnSync,
        Class::StructuredFutures,
        Class::Futures,
        Class::Promises,
        Class::Isolated,
        Class::All,
        Class::Locks,
        Class::Atomics,
        Class::Native,
        Class::Detached,
        Class::Children,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Class::Sp => "sp",
            Class::SpawnSync => "spawn-sync",
            Class::StructuredFutures => "structured-futures",
            Class::Futures => "futures",
            Class::Promises => "promises",
            Class::Isolated => "isolated",
            Class::All => "all",
            Class::Locks => "locks",
            Class::Atomics => "atomics",
            Class::Native => "native",
            Class::Detached => "detached",
            Class::Children => "children",
        }
    }

    /// What an engine must support to judge every program of the class.
    pub fn constructs(self) -> &'static [Construct] {
        use Construct::*;
        match self {
            Class::Sp => &[AsyncFinish],
            Class::SpawnSync => &[SpawnSync],
            Class::StructuredFutures => &[SpawnSync, StructuredFuture],
            Class::Futures => &[AsyncFinish, SpawnSync, StructuredFuture, GeneralFuture],
            Class::Promises => &[AsyncFinish, SpawnSync, StructuredFuture, GeneralFuture, Promise],
            Class::Isolated => &[AsyncFinish, SpawnSync, Isolated],
            Class::All => {
                &[AsyncFinish, SpawnSync, StructuredFuture, GeneralFuture, Promise, Isolated, Region]
            }
            Class::Locks => &[AsyncFinish, SpawnSync, Isolated, Lock],
            Class::Atomics => {
                &[AsyncFinish, SpawnSync, StructuredFuture, GeneralFuture, Promise, Isolated, Region, Atomic]
            }
            Class::Native => &[
                AsyncFinish,
                SpawnSync,
                StructuredFuture,
                GeneralFuture,
                Promise,
                Isolated,
                Region,
                Lock,
                Atomic,
            ],
            Class::Detached => &[
                AsyncFinish,
                SpawnSync,
                StructuredFuture,
                GeneralFuture,
                Promise,
                Isolated,
                Region,
                Detached,
            ],
            Class::Children => &[AsyncFinish, SpawnSync, StructuredFuture, GeneralFuture, Atomic, Child],
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A class name that is not in the table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no class is called `{0}`; there are: {all}", all = Class::ALL.map(Class::name).join(", "))]
pub struct UnknownClass(pub String);

impl FromStr for Class {
    type Err = UnknownClass;

    fn from_str(name: &str) -> Result<Class, UnknownClass> {
        let found = Class::ALL.into_iter().find(|class| class.name() == name);
        found.ok_or_else(|| UnknownClass(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_names_are_parsed_back() {
        for class in Class::ALL {
            assert_eq!(class.to_string().parse(), Ok(class));
        }
        let error = "sq".parse::<Class>().unwrap_err().to_string();
        assert!(error.contains("`sq`") && error.contains("spawn-sync, structured-futures"), "{error}");
    }

    #[test]
    fn sites_are_numbered_in_text_order() {
        let bytes = Bytes::new(0, 1).unwrap();
        let atomic = Stmt::atomic(AccessKind::Read, bytes);
        let child = Stmt::Async(vec![Stmt::read(bytes), Stmt::Sync, atomic]);
        let mut program = Program { body: vec![Stmt::write(bytes), child, Stmt::free(bytes)] };
        program.number_sites();
        let sites: Vec<u32> = program.walk().filter_map(Stmt::site).map(SiteId::number).collect();
        assert_eq!(sites, [0, 1, 2, 3]);
        assert!(matches!(program.body[2], Stmt::Free { site, .. } if site.number() == 3));
        assert_eq!(program.task_count(), 2);
    }
}
