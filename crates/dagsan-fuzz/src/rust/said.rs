//! What Rust can say of a program.

use std::collections::{BTreeMap, BTreeSet};

use dagsan_core::{Bytes, Construct, LockMode};

use super::nest::{JOINS, Nest, can_be_detached};
use crate::program::{Program, Stmt};

/// The name of the lock that stands for isolated sections.
const ISOLATED: u32 = u32::MAX;

/// A program that can be written in Rust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The program. A future is got only where its handle is: in a slot that was filled before.
    pub program: Program,
    /// How many statements of the original were left out, or became others.
    pub changed: usize,
    /// Which constructs are written with rayon, none below 2: see `nest.rs`. If it is odd, the arena is a block of the heap; with `JOINS` of `nest.rs` there are joins only.
    pub nest: u64,
    /// Are its tasks threads?
    pub threads: bool,
}

impl Said {
    /// Is it written with joins of rayon's alone?
    pub fn is_joins(&self) -> bool {
        self.nest & JOINS != 0
    }
}

/// Puts what Rust can say in the place of what it cannot. If the program is `structured`, whoever gets a future has come
/// by its handle in order; otherwise handles are sent through promises, one for each future. `nest` says which constructs are
/// written with rayon, none below 2; see [`Said::nest`].
pub fn say(program: &Program, structured: bool, nest: u64) -> Said {
    let promises = program.walk().filter_map(|stmt| match stmt {
        Stmt::Set(name) | Stmt::Get(name) => Some(name + 1),
        _ => None,
    });
    let handles = (!structured).then_some(promises.max().unwrap_or(0));
    let mut speaker = Speaker { handles, nests: nest >= 2, changed: 0 };
    let mut program = Program { body: speaker.body(&program.body, false) };
    speaker.changed += widen_frees(&mut program);
    program.number_sites();
    Said { program, changed: speaker.changed, nest, threads: false }
}

struct Speaker {
    /// The promise that the handle of future 0 is sent through; that of the next one follows.
    handles: Option<u32>,
    nests: bool,
    changed: usize,
}

impl Speaker {
    fn body(&mut self, body: &[Stmt], isolated: bool) -> Vec<Stmt> {
        let mut said = Vec::new();
        let mut held = BTreeSet::new();
        for (at, stmt) in body.iter().enumerate() {
            let before = said.len();
            match stmt {
                Stmt::Atomic { kind, bytes, .. } => {
                    let word = word(*bytes);
                    self.changed += usize::from(word != *bytes);
                    said.push(Stmt::atomic(*kind, word));
                    continue;
                }
                Stmt::Read { .. } | Stmt::Write { .. } | Stmt::Free { .. } => said.push(stmt.clone()),
                Stmt::Set(_) | Stmt::Release(..) | Stmt::Acquire(_) => said.push(stmt.clone()),
                Stmt::Isolated(inner) if isolated => said.extend(self.body(inner, true)),
                Stmt::Isolated(inner) => said.push(Stmt::Isolated(self.body(inner, true))),
                // A section may not wait, nor start tasks, and its locks would be those around it.
                _ if isolated => {}
                Stmt::Sync | Stmt::Get(_) => said.push(stmt.clone()),
                Stmt::Async(inner) => said.push(Stmt::Async(self.body(inner, false))),
                Stmt::Finish(inner) => said.push(Stmt::Finish(self.body(inner, false))),
                Stmt::Spawn(inner) => said.push(Stmt::Spawn(self.body(inner, false))),
                Stmt::Call(inner) => said.push(Stmt::Call(self.body(inner, false))),
                Stmt::Future(name, inner) | Stmt::Child(name, inner) => {
                    // Rust has no tasks of this kind.
                    self.changed += usize::from(matches!(stmt, Stmt::Child(..)));
                    said.push(Stmt::Future(*name, self.body(inner, false)));
                    said.extend(self.handles.map(|first| Stmt::Set(first + name)));
                }
                Stmt::GetFuture(name) => {
                    said.extend(self.handles.map(|first| Stmt::Get(first + name)));
                    said.push(Stmt::GetFuture(*name));
                }
                Stmt::Detached(inner) | Stmt::Post(_, inner) => {
                    // What it is depends on what its own tasks become.
                    let inner = self.body(inner, false);
                    if self.nests && matches!(stmt, Stmt::Detached(_)) && can_be_detached(&inner) {
                        said.push(Stmt::Detached(inner));
                    } else {
                        // Tasks of dagsan-task always have a finish.
                        self.changed += 1;
                        said.push(Stmt::Async(inner));
                    }
                }
                Stmt::Await(_) | Stmt::Ewait(_) => {}
                Stmt::Lock(name, _) => {
                    if given_back(*name, &body[at + 1..]) && held.insert(*name) {
                        said.push(stmt.clone());
                    }
                }
                Stmt::Unlock(name) => {
                    if held.remove(name) {
                        said.push(stmt.clone());
                    }
                }
            }
            self.changed += usize::from(said.len() == before);
        }
        said
    }
}

/// Memory is freed in blocks: a block is what ranges that overlap cover together. How many frees become others.
pub(super) fn widen_frees(program: &mut Program) -> usize {
    let (blocks, mut changed) = (blocks(program), 0);
    program.for_each_mut(|stmt| {
        if let Stmt::Free { bytes, .. } = stmt {
            let block = block_of(&blocks, *bytes);
            changed += usize::from(*bytes != block);
            *bytes = block;
        }
    });
    changed
}

/// Is the lock given back before the task does anything that lets others run? Tasks that are joined before are no others, if
/// they take no locks and wait for nothing.
fn given_back(name: u32, rest: &[Stmt]) -> bool {
    let quiet = |stmt: &&Stmt| is_quiet(stmt) || matches!(stmt, Stmt::Lock(..) | Stmt::Unlock(_));
    rest.iter().take_while(quiet).any(|stmt| *stmt == Stmt::Unlock(name))
}

fn is_quiet(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Set(_) | Stmt::Release(..) | Stmt::Acquire(_) => true,
        Stmt::Finish(inner) => inner.iter().all(|stmt| match stmt {
            Stmt::Async(inner) => inner.iter().all(is_quiet),
            _ => is_quiet(stmt),
        }),
        _ => stmt.bytes().is_some(),
    }
}

/// An aligned word that the range touches.
pub(super) fn word(bytes: Bytes) -> Bytes {
    let len = 1 << bytes.len().min(8).ilog2();
    Bytes::new(bytes.start() & !(len - 1), len).unwrap_or(bytes)
}

/// The ranges of the program, those that overlap as one, lowest first.
fn blocks(program: &Program) -> Vec<Bytes> {
    let mut ranges: Vec<Bytes> = program.walk().filter_map(Stmt::bytes).collect();
    ranges.sort_unstable_by_key(|range| range.start());
    let mut blocks: Vec<Bytes> = Vec::new();
    for range in ranges {
        match blocks.last_mut() {
            Some(last) if range.start() < last.end() => {
                let end = last.end().max(range.end());
                *last = Bytes::new(last.start(), end - last.start()).unwrap_or(*last);
            }
            _ => blocks.push(range),
        }
    }
    blocks
}

fn block_of(blocks: &[Bytes], bytes: Bytes) -> Bytes {
    let at = blocks.partition_point(|block| block.end() <= bytes.start());
    blocks.get(at).copied().unwrap_or(bytes)
}

impl Said {
    /// The program as the runtime sees it: an isolated section is a lock of its own.
    pub fn judged(&self) -> Program {
        Program { body: judged(&self.program.body) }
    }

    /// Is the arena a block of the heap?
    pub(super) fn heap(&self) -> bool {
        self.nest % 2 == 1
    }

    /// Do all its tasks run where they are started?
    pub fn is_depth_first(&self) -> bool {
        let nest = Nest::of(self);
        self.program.walk().all(|stmt| match stmt {
            Stmt::Finish(body) => nest.is_depth_first(body),
            _ => true,
        })
    }

    /// What an engine must support to judge it. A program that starts asyncs or futures runs in a finish.
    pub fn constructs(&self) -> BTreeSet<Construct> {
        let mut uses = BTreeSet::new();
        let mut gets = BTreeMap::new();
        for stmt in self.program.walk() {
            match stmt {
                Stmt::Async(_) | Stmt::Finish(_) => uses.extend([Construct::AsyncFinish]),
                Stmt::Spawn(_) | Stmt::Sync | Stmt::Call(_) => uses.extend([Construct::SpawnSync]),
                Stmt::Future(..) => uses.extend([Construct::AsyncFinish, Construct::StructuredFuture]),
                Stmt::GetFuture(name) => *gets.entry(name).or_insert(0) += 1,
                Stmt::Set(_) | Stmt::Get(_) => uses.extend([Construct::Promise]),
                Stmt::Isolated(_) | Stmt::Lock(..) | Stmt::Unlock(_) => uses.extend([Construct::Lock]),
                Stmt::Release(..) | Stmt::Acquire(_) => uses.extend([Construct::Atomic]),
                Stmt::Read { .. } | Stmt::Write { .. } | Stmt::Free { .. } | Stmt::Atomic { .. } => {}
                Stmt::Post(..) | Stmt::Await(_) | Stmt::Ewait(_) => uses.extend([Construct::Region]),
                Stmt::Detached(_) => uses.extend([Construct::Detached]),
                Stmt::Child(..) => uses.extend([Construct::Child]),
            }
        }
        // Handles that go through promises go anywhere.
        if uses.contains(&Construct::Promise) || gets.values().any(|&gets| gets > 1) {
            uses.insert(Construct::GeneralFuture);
        }
        uses
    }
}

fn judged(body: &[Stmt]) -> Vec<Stmt> {
    let mut judged_body = Vec::new();
    for stmt in body {
        match stmt {
            Stmt::Isolated(inner) => {
                judged_body.push(Stmt::Lock(ISOLATED, LockMode::Exclusive));
                judged_body.extend(judged(inner));
                judged_body.push(Stmt::Unlock(ISOLATED));
            }
            _ => {
                let mut stmt = stmt.clone();
                if let Some(inner) = stmt.body_mut() {
                    *inner = judged(inner);
                }
                judged_body.push(stmt);
            }
        }
    }
    judged_body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, structured: bool, expected: &str, changed: usize) {
        let said = say(&Program::parse(text).unwrap(), structured, 0);
        assert_eq!((said.program.to_string().as_str(), said.changed), (expected, changed));
        assert_eq!(say(&said.program, true, 0), Said { changed: 0, ..said }, "said twice");
    }

    #[test]
    fn handles_go_through_promises_of_their_own() {
        let text = "future f1 { set p2 } get f1";
        check(text, true, "future f1 { set p2 }\nget f1\n", 0);
        check(text, false, "future f1 { set p2 }\nset p4\nget p4\nget f1\n", 0);
    }

    #[test]
    fn locks_are_given_back_before_anything_happens() {
        check(
            "lock l0; r 0+1; share l0; lock l1; unlock l0; unlock l1; unlock l1",
            true,
            "lock l0\nr 0x0+1\nlock l1\nunlock l0\nunlock l1\n",
            2,
        );
        check("lock l0; sync; unlock l0", true, "sync\n", 2);
        check("lock l0; async { unlock l0 }", true, "async { }\n", 2);
    }

    /// A job has no finish for tasks of its own, also if these are asyncs only because they cannot be jobs or posts.
    #[test]
    fn a_detached_task_is_one_if_what_it_starts_is() {
        for (text, expected) in [
            ("detached { detached { w 0+1 } }", "detached {\n  detached { w 0x0+1 }\n}\n"),
            ("detached { detached { get p0 } }", "async {\n  async { get p0 }\n}\n"),
            ("detached { post r0 { w 0+1 } }", "async {\n  async { w 0x0+1 }\n}\n"),
        ] {
            assert_eq!(say(&Program::parse(text).unwrap(), true, 2).program.to_string(), expected);
        }
    }

    #[test]
    fn what_has_no_name_in_rust_becomes_something_else() {
        check("post r0 { w 0+1 } await r0; ewait r0", true, "async { w 0x0+1 }\n", 3);
        check("ar 5+7; aw 8+8", true, "ar 0x4+4\naw 0x8+8\n", 1);
        check("isolated { isolated { w 0+1 } sync }", true, "isolated { w 0x0+1 }\n", 1);
        check(
            "w 0+8; w 4+8; free 6+1; w 12+4; free 20+1",
            true,
            "w 0x0+8\nw 0x4+8\nfree 0x0+12\nw 0xc+4\nfree 0x14+1\n",
            1,
        );
    }

    #[test]
    fn the_runtime_sees_a_section_as_a_lock() {
        let said = say(&Program::parse("async { isolated { w 0+1 } }").unwrap(), true, 0);
        let judged = said.judged();
        let Stmt::Async(body) = &judged.body[0] else { panic!("{judged}") };
        assert_eq!(body[0], Stmt::Lock(ISOLATED, LockMode::Exclusive));
        assert_eq!(body[2], Stmt::Unlock(ISOLATED));
        assert!(said.constructs().into_iter().eq([Construct::AsyncFinish, Construct::Lock]));
    }
}
