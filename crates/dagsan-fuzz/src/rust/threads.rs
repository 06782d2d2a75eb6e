//! Programs whose tasks are threads.
//!
//! | program | Rust |
//! |---|---|
//! | `finish` and its asyncs, spawns, posts | a `thread::scope` and its threads |
//! | a future, a get of it | a `thread::spawn`, a join |
//! | a detached task | a `thread::spawn` whose handle is dropped |
//! | a promise | a flag with a mutex and a condition variable; if it is set and got once, perhaps a channel |
//! | an isolated section | one of a mutex |
//!
//! A thread that yields by chance lets others go first, also in the middle of a section. What a run shows depends on its order, so the program
//! tells it, statement by statement, and the oracle judges that run (`replay.rs`).
//!
//! What cannot be said: syncs and calls (left out, and what is called stands in their place), regions, a second get of a future, a get
//! of what nobody sets, locks around threads that are joined (the runtime does not know that they are under it: docs/native.md), and
//! locks that are taken in an order in which threads could wait for each other.

use std::collections::{BTreeMap, BTreeSet};

use dagsan_core::LockMode;

use super::Said;
use super::said::{widen_frees, word};
use crate::program::{Program, Stmt};

/// What a promise is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handover {
    /// A flag, a mutex and a condition variable.
    Flag,
    Channel,
}

impl Handover {
    /// By the names of all promises. `nest` decides where there is a choice.
    pub(super) fn of(program: &Program, nest: u64) -> BTreeMap<u32, Handover> {
        let mut uses: BTreeMap<u32, [u32; 2]> = BTreeMap::new();
        for stmt in program.walk() {
            match stmt {
                Stmt::Set(name) => uses.entry(*name).or_default()[0] += 1,
                Stmt::Get(name) => uses.entry(*name).or_default()[1] += 1,
                _ => {}
            }
        }
        let choice = |(name, uses): (u32, [u32; 2])| {
            let channel = uses == [1, 1] && (nest >> (name % 32)) & 2 != 0;
            (name, if channel { Handover::Channel } else { Handover::Flag })
        };
        uses.into_iter().map(choice).collect()
    }
}

/// Puts what threads can say in the place of what they cannot. `structured` and `nest` are as for [`super::say`].
pub fn say_threads(program: &Program, structured: bool, nest: u64) -> Said {
    let names = |name: fn(&Stmt) -> Option<u32>| program.walk().filter_map(name).collect::<BTreeSet<u32>>();
    let set = names(|stmt| match stmt {
        Stmt::Set(name) => Some(*name),
        _ => None,
    });
    let started = names(|stmt| match stmt {
        Stmt::Future(name, _) | Stmt::Child(name, _) => Some(*name),
        _ => None,
    });
    let locks = names(|stmt| match stmt {
        Stmt::Lock(name, _) => Some(*name),
        _ => None,
    });
    let next = |names: &BTreeSet<u32>| names.last().map_or(0, |last| last + 1);
    let mut speaker = Speaker {
        handles: (!structured).then_some(next(&set)),
        isolated: next(&locks),
        set,
        started,
        got: BTreeSet::new(),
        changed: 0,
    };
    let body = speaker.body(&program.body);
    let mut program = Program { body: in_scope(body) };
    speaker.changed += widen_frees(&mut program);
    program.number_sites();
    Said { program, changed: speaker.changed, nest, threads: true }
}

struct Speaker {
    /// The promise that the handle of thread 0 is sent through, if it is; that of the next one follows.
    handles: Option<u32>,
    /// The lock of isolated sections.
    isolated: u32,
    /// The promises that are set.
    set: BTreeSet<u32>,
    /// The futures that are started.
    started: BTreeSet<u32>,
    /// The futures that are got.
    got: BTreeSet<u32>,
    changed: usize,
}

impl Speaker {
    fn body(&mut self, body: &[Stmt]) -> Vec<Stmt> {
        let mut flat = Vec::new();
        self.flatten(body, &mut flat);
        let (mut said, mut held) = (Vec::new(), BTreeSet::new());
        for (at, &stmt) in flat.iter().enumerate() {
            let before = said.len();
            match stmt {
                Stmt::Async(inner) => said.push(Stmt::Async(self.body(inner))),
                Stmt::Spawn(inner) | Stmt::Post(_, inner) => {
                    self.changed += 1;
                    said.push(Stmt::Async(self.body(inner)));
                }
                Stmt::Finish(inner) => said.push(Stmt::Finish(self.body(inner))),
                Stmt::Detached(inner) => said.push(Stmt::Detached(in_scope(self.body(inner)))),
                Stmt::Future(name, inner) | Stmt::Child(name, inner) => {
                    self.changed += usize::from(matches!(stmt, Stmt::Child(..)));
                    said.push(Stmt::Future(*name, in_scope(self.body(inner))));
                    said.extend(self.handles.map(|first| Stmt::Set(first + name)));
                }
                Stmt::GetFuture(name) if self.started.contains(name) && self.got.insert(*name) => {
                    said.extend(self.handles.map(|first| Stmt::Get(first + name)));
                    said.push(Stmt::GetFuture(*name));
                }
                Stmt::Get(name) if self.set.contains(name) => said.push(stmt.clone()),
                Stmt::Isolated(inner) => {
                    said.push(Stmt::Lock(self.isolated, LockMode::Exclusive));
                    said.extend(self.section(inner));
                    said.push(Stmt::Unlock(self.isolated));
                }
                Stmt::Lock(name, _) => {
                    let in_order = held.last().is_none_or(|last| last < name);
                    if in_order && given_back(*name, &flat[at + 1..]) {
                        held.insert(*name);
                        said.push(stmt.clone());
                    }
                }
                Stmt::Unlock(name) => {
                    if held.remove(name) {
                        said.push(stmt.clone());
                    }
                }
                _ => said.extend(self.plain(stmt)),
            }
            self.changed += usize::from(said.len() == before);
        }
        said
    }

    /// Calls are what they call.
    fn flatten<'p>(&mut self, body: &'p [Stmt], into: &mut Vec<&'p Stmt>) {
        for stmt in body {
            match stmt {
                Stmt::Call(inner) => {
                    self.changed += 1;
                    self.flatten(inner, into);
                }
                _ => into.push(stmt),
            }
        }
    }

    /// What an isolated section does.
    fn section(&mut self, body: &[Stmt]) -> Vec<Stmt> {
        let mut said = Vec::new();
        for stmt in body {
            match stmt {
                Stmt::Isolated(inner) => said.extend(self.section(inner)),
                _ => said.extend(self.plain(stmt)),
            }
        }
        said
    }

    /// A statement that neither waits nor starts anything.
    fn plain(&mut self, stmt: &Stmt) -> Option<Stmt> {
        match stmt {
            Stmt::Atomic { kind, bytes, .. } => {
                let word = word(*bytes);
                self.changed += usize::from(word != *bytes);
                Some(Stmt::atomic(*kind, word))
            }
            _ => is_quiet(stmt).then(|| stmt.clone()),
        }
    }
}

/// The body of a thread. If it starts scoped threads, it has a scope for them.
fn in_scope(body: Vec<Stmt>) -> Vec<Stmt> {
    let scoped = body.iter().any(|stmt| matches!(stmt, Stmt::Async(_)));
    if scoped { vec![Stmt::Finish(body)] } else { body }
}

/// Is the lock given back before the thread waits, or starts another?
fn given_back(name: u32, rest: &[&Stmt]) -> bool {
    let quiet = |stmt: &&&Stmt| {
        is_quiet(stmt) || matches!(stmt, Stmt::Lock(..) | Stmt::Unlock(_) | Stmt::Isolated(_))
    };
    rest.iter().take_while(quiet).any(|stmt| **stmt == Stmt::Unlock(name))
}

fn is_quiet(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Set(_) | Stmt::Release(..) | Stmt::Acquire(_)) || stmt.bytes().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let said = say_threads(&Program::parse(text).unwrap(), true, 0);
        assert_eq!(said.program, Program::parse(expected).map(numbered).unwrap(), "{}", said.program);
        assert_eq!(say_threads(&said.program, true, 0), Said { changed: 0, ..said }, "said twice");
    }

    fn numbered(mut program: Program) -> Program {
        program.number_sites();
        program
    }

    #[test]
    fn threads_that_are_joined_by_a_scope_have_one() {
        check("async { spawn { w 0+1 } sync }", "finish { async { async { w 0+1 } } }");
        check("future f0 { async { } } get f0; get f0", "future f0 { finish { async { } } } get f0");
        check("detached { call { w 0+1 } } get f1; get p1", "detached { w 0+1 }");
    }

    #[test]
    fn locks_cannot_make_threads_wait_for_each_other() {
        check("lock l1; lock l0; unlock l0; unlock l1", "lock l1; unlock l1");
        check(
            "lock l0; lock l1; unlock l0; w 0+1; unlock l1",
            "lock l0; lock l1; unlock l0; w 0+1; unlock l1",
        );
        check("lock l0; finish { async { } } unlock l0", "finish { async { } }");
        check("lock l0; isolated { w 0+1 } unlock l0", "lock l0; lock l1; w 0+1; unlock l1; unlock l0");
    }

    #[test]
    fn a_promise_is_a_channel_only_if_it_is_set_and_got_once() {
        let of = |text: &str| Handover::of(&Program::parse(text).unwrap(), u64::MAX)[&0];
        assert_eq!(of("future f0 { set p0 } get p0"), Handover::Channel);
        assert_eq!(of("set p0; get p0; get p0"), Handover::Flag);
        assert_eq!(of("set p0"), Handover::Flag);
    }
}
