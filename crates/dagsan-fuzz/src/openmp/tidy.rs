//! Puts what OpenMP allows, and what cannot wait for ever, in the place of what does not. What is legal stays as it is.
//!
//! A task that holds a lock and waits for others must not have descendants that take locks: a thread that waits may run any of these,
//! and would wait for itself. Locks are taken in the order of their numbers.

use dagsan_core::Bytes;

use super::depend::alone;
use super::tree::{Clauses, Lock, Program, Share, Stmt, Use, for_each};

/// The program, made legal.
pub fn tidy(program: &Program) -> Program {
    let locks_below = takes_locks(&program.body);
    let place =
        Place { code: Code::Initial, sections: None, locks_below, is_final: false, threads: 0, regions: 0 };
    Program { body: body(&program.body, place) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Code {
    /// What the initial thread does.
    Initial,
    /// What all threads of a region do.
    Region,
    /// What one task does, or one thread.
    Task,
}

#[derive(Clone, Copy)]
struct Place {
    code: Code,
    /// The last lock that is held, or `Lock(0)` for those of a dependence; if any.
    sections: Option<Lock>,
    /// Do tasks that the present one creates take locks?
    locks_below: bool,
    /// Is it in a final task?
    is_final: bool,
    /// Of the region; none outside.
    threads: u32,
    /// How many regions it is in.
    regions: u32,
}

impl Place {
    /// May the present task wait for others?
    fn may_wait(self) -> bool {
        self.sections.is_none() || !self.locks_below
    }
}

fn body(stmts: &[Stmt], place: Place) -> Vec<Stmt> {
    stmts.iter().flat_map(|stmt| statement(stmt, place)).collect()
}

fn statement(stmt: &Stmt, place: Place) -> Vec<Stmt> {
    let inside = |inner: &[Stmt], place| body(inner, place);
    match stmt {
        Stmt::Access { kind, bytes, site, atomic } => {
            let bytes = if *atomic { word(*bytes) } else { *bytes };
            vec![Stmt::Access { kind: *kind, bytes, site: *site, atomic: *atomic }]
        }
        Stmt::Task(clauses, inner) => vec![task(clauses, inner, place)],
        Stmt::Taskwait(depend) if place.may_wait() => {
            let mut depend = depend.clone();
            // A taskwait has no such set.
            depend.retain(|item| !matches!(item.how, Use::Mutexinoutset | Use::Inoutset));
            vec![Stmt::Taskwait(depend)]
        }
        Stmt::Taskwait(_) => Vec::new(),
        Stmt::Taskgroup(inner) if place.may_wait() => {
            let code = if place.code == Code::Region { Code::Task } else { place.code };
            vec![Stmt::Taskgroup(inside(inner, Place { code, ..place }))]
        }
        Stmt::Taskgroup(inner) => inside(inner, place),
        Stmt::Section(lock, inner) if place.sections.is_none_or(|last| last < *lock) => {
            vec![Stmt::Section(*lock, inside(inner, Place { sections: Some(*lock), ..place }))]
        }
        Stmt::Section(_, inner) => inside(inner, place),
        Stmt::Parallel(threads, inner)
            if place.code != Code::Region && place.regions < 2 && place.sections.is_none() =>
        {
            let (locks_below, regions) = (takes_locks(inner), place.regions + 1);
            let place = Place { code: Code::Region, locks_below, threads: *threads, regions, ..place };
            vec![Stmt::Parallel(*threads, inside(inner, place))]
        }
        Stmt::Single { nowait, body } if place.code == Code::Region && place.sections.is_none() => {
            vec![Stmt::Single { nowait: *nowait, body: inside(body, Place { code: Code::Task, ..place }) }]
        }
        Stmt::Masked(thread, inner) if place.code == Code::Region && place.sections.is_none() => {
            let place = Place { code: Code::Task, ..place };
            vec![Stmt::Masked(thread % place.threads.max(1), inside(inner, place))]
        }
        Stmt::Deal { how, nowait, body } if place.code == Code::Region && place.sections.is_none() => {
            let mut chunks = chunks(body, Place { code: Code::Task, ..place });
            if *how == Share::Sections {
                // The interpreter has no more.
                let rest = chunks.split_off(chunks.len().min(SECTIONS - 1));
                let rest: Vec<Stmt> = rest.iter().filter_map(Stmt::body).flatten().cloned().collect();
                chunks.extend((!rest.is_empty()).then_some(Stmt::Chunk(rest)));
            }
            vec![Stmt::Deal { how: *how, nowait: *nowait, body: chunks }]
        }
        Stmt::Taskloop { nogroup, body } if *nogroup || place.may_wait() => {
            let sections = if place.is_final { place.sections } else { None };
            let locks_below = takes_locks(body) || place.is_final && place.locks_below;
            let included = place.is_final && place.code == Code::Initial;
            let code = if included { Code::Initial } else { Code::Task };
            // Outside of regions tasks run at once: they could wait for a lock of their creator's.
            if place.threads == 0 && place.sections.is_some() {
                return inside(body, place);
            }
            let body = chunks(body, Place { code, sections, locks_below, ..place });
            vec![Stmt::Taskloop { nogroup: *nogroup, body }]
        }
        Stmt::Deal { body: inner, .. } | Stmt::Taskloop { body: inner, .. } | Stmt::Chunk(inner) => {
            inside(inner, place)
        }
        Stmt::Barrier if place.code == Code::Region && place.sections.is_none() => vec![Stmt::Barrier],
        Stmt::Barrier => Vec::new(),
        Stmt::Parallel(_, inner) | Stmt::Single { body: inner, .. } | Stmt::Masked(_, inner) => {
            inside(inner, place)
        }
    }
}

/// How many sections there are at most.
const SECTIONS: usize = 6;

/// What is shared, in chunks.
fn chunks(stmts: &[Stmt], place: Place) -> Vec<Stmt> {
    let chunk = |stmt: &Stmt| match stmt {
        Stmt::Chunk(inner) => Stmt::Chunk(body(inner, place)),
        other => Stmt::Chunk(statement(other, place)),
    };
    stmts.iter().map(chunk).collect()
}

fn task(clauses: &Clauses, inner: &[Stmt], place: Place) -> Stmt {
    let mut clauses = clauses.clone();
    // Outside of regions tasks run at once: where the creator holds a lock, a task could wait for it.
    clauses.undeferred |= place.threads == 0 && place.sections.is_some();
    // clang 19 crashes on a taskgroup in an untied task.
    for_each(inner, &mut |stmt| {
        clauses.untied &= !matches!(stmt, Stmt::Taskgroup(_) | Stmt::Taskloop { nogroup: false, .. });
    });
    let included = clauses.undeferred || place.is_final;
    if included {
        // It waits for what it depends on, and is part of the section.
        if place.sections.is_some() {
            clauses.depend.retain(|item| item.how != Use::Mutexinoutset);
        }
        if !place.may_wait() {
            clauses.depend.clear();
        }
    }
    let own = (!alone(&clauses.depend).is_empty()).then_some(Lock(0));
    let sections = if included { place.sections.or(own) } else { own };
    let locks_below = takes_locks(inner) || included && place.locks_below;
    let is_final = place.is_final || clauses.is_final;
    let code = if included && place.code == Code::Initial { Code::Initial } else { Code::Task };
    let place = Place { code, sections, locks_below, is_final, ..place };
    Stmt::Task(clauses, body(inner, place))
}

/// Does a task take a lock that is created in these statements, or in a task of them?
fn takes_locks(stmts: &[Stmt]) -> bool {
    let mut takes = false;
    for_each(stmts, &mut |stmt| {
        if let Stmt::Task(clauses, inner) = stmt {
            takes |= !alone(&clauses.depend).is_empty();
            for_each(inner, &mut |stmt| takes |= matches!(stmt, Stmt::Section(..)));
        }
        if let Stmt::Taskloop { body, .. } = stmt {
            for_each(body, &mut |stmt| takes |= matches!(stmt, Stmt::Section(..)));
        }
    });
    takes
}

/// An aligned word that overlaps the range.
fn word(bytes: Bytes) -> Bytes {
    let len = (bytes.len().min(8) as u32).next_power_of_two();
    let len = if len > bytes.len() as u32 { len / 2 } else { len };
    let len = u64::from(len.max(1));
    Bytes::new(bytes.start() & !(len - 1), len).unwrap_or(bytes)
}
