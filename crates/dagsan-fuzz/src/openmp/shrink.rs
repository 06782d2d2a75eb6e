//! Programs that one edit makes of another: all are smaller, and legal.

use std::collections::BTreeSet;

use dagsan_core::Bytes;

use super::tidy::tidy;
use super::tree::{Clauses, Program, Share, Stmt};

/// Every program that one edit makes of this one, the smallest first.
pub fn smaller(program: &Program) -> Vec<Program> {
    let mut all = Vec::new();
    let mut known = BTreeSet::from([format!("{program:?}")]);
    let mut add = |body: Vec<Stmt>| {
        let edited = tidy(&Program { body });
        if size(&edited) < size(program) && known.insert(format!("{edited:?}")) {
            all.push(edited);
        }
    };
    edits(&program.body, &mut add);
    all.sort_by_key(size);
    all
}

/// Statements first, then what is said of them, then what they touch.
fn size(program: &Program) -> (usize, usize, u64, u64) {
    let mut words = 0;
    program.for_each(|stmt| {
        words += match stmt {
            Stmt::Task(Clauses { depend, undeferred, is_final, untied }, _) => {
                depend.len() + usize::from(*undeferred) + usize::from(*is_final) + usize::from(*untied)
            }
            Stmt::Taskwait(depend) => depend.len(),
            Stmt::Parallel(threads, _) => *threads as usize,
            Stmt::Masked(thread, _) => *thread as usize,
            Stmt::Single { nowait, .. } => usize::from(*nowait),
            Stmt::Deal { how, nowait, .. } => {
                how.iterations() as usize + usize::from(how.is_open()) + usize::from(*nowait)
            }
            Stmt::Taskloop { nogroup, .. } => usize::from(*nogroup),
            _ => 0,
        };
    });
    let ranges = program.ranges();
    let starts = ranges.iter().map(|bytes| bytes.start()).sum();
    (program.len(), words, ranges.iter().map(|bytes| bytes.len()).sum(), starts)
}

/// Calls `add` with every body that one edit makes of this one.
fn edits(body: &[Stmt], add: &mut dyn FnMut(Vec<Stmt>)) {
    // Runs of statements, the longest first.
    let mut run = body.len();
    while run > 0 {
        for start in (0..body.len()).step_by(run) {
            let end = (start + run).min(body.len());
            add([&body[..start], &body[end..]].concat());
        }
        run /= 2;
    }
    for (at, stmt) in body.iter().enumerate() {
        let mut put = |instead: &[Stmt]| add([&body[..at], instead, &body[at + 1..]].concat());
        if let Some(inner) = stmt.body() {
            put(inner);
            edits(inner, &mut |edited| {
                let mut stmt = stmt.clone();
                if let Some(inner) = stmt.body_mut() {
                    *inner = edited;
                }
                put(&[stmt]);
            });
        }
        for plainer in plainer(stmt) {
            put(&[plainer]);
        }
    }
}

/// The statement with less said of it.
fn plainer(stmt: &Stmt) -> Vec<Stmt> {
    match stmt {
        Stmt::Access { kind, bytes, site, atomic } => {
            let (start, len) = (bytes.start(), bytes.len());
            let ranges = [(start, 1), (start, len / 2), (start + len / 2, len - len / 2)];
            let ranges = ranges.into_iter().filter_map(|(start, len)| Bytes::new(start, len).ok());
            let ranges = ranges.filter(|bytes| !bytes.is_empty() && bytes.len() < len);
            ranges.map(|bytes| Stmt::Access { kind: *kind, bytes, site: *site, atomic: *atomic }).collect()
        }
        Stmt::Task(clauses, body) => {
            let task = |clauses| Stmt::Task(clauses, body.clone());
            let mut all: Vec<Stmt> = (0..clauses.depend.len())
                .map(|at| {
                    let mut clauses = clauses.clone();
                    clauses.depend.remove(at);
                    task(clauses)
                })
                .collect();
            all.push(task(Clauses { undeferred: false, ..clauses.clone() }));
            all.push(task(Clauses { is_final: false, ..clauses.clone() }));
            all.push(task(Clauses { untied: false, ..clauses.clone() }));
            all
        }
        Stmt::Taskwait(depend) if !depend.is_empty() => vec![Stmt::Taskwait(Vec::new())],
        Stmt::Parallel(threads, body) if *threads > 1 => {
            vec![Stmt::Parallel(1, body.clone()), Stmt::Parallel(threads - 1, body.clone())]
        }
        Stmt::Masked(thread, body) if *thread > 0 => vec![Stmt::Masked(0, body.clone())],
        Stmt::Deal { how, nowait, body } => {
            let deal = |how, nowait| Stmt::Deal { how, nowait, body: body.clone() };
            let shorter = match how {
                Share::Dynamic(_) => Share::Dynamic(1),
                Share::StaticChunk(_) => Share::StaticChunk(1),
                how => *how,
            };
            vec![deal(*how, false), deal(shorter, *nowait), deal(Share::Static, *nowait)]
        }
        Stmt::Taskloop { nogroup: true, body } => vec![Stmt::Taskloop { nogroup: false, body: body.clone() }],
        Stmt::Single { nowait: true, body } => vec![Stmt::Single { nowait: false, body: body.clone() }],
        _ => Vec::new(),
    }
}
