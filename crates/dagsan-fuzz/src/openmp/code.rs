//! A program as code: for each task, and for what all threads of a region do, a list of operations without blocks.
//!
//! The numbers of operations are what a process tells of them: see [`super::write`].

use dagsan_core::{AccessKind, Bytes, SiteId};

use super::tree::{Clauses, Depend, Lock, Program, Share, Stmt};

/// An operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    Access {
        kind: AccessKind,
        bytes: Bytes,
        site: SiteId,
        atomic: bool,
    },
    /// A task, or a thread of a region, begins and ends.
    Begin,
    End,
    /// A deferred task is created, with this code.
    Create {
        code: usize,
        clauses: Clauses,
    },
    /// A task that is part of the present one begins, when what it depends on is over, and ends. In a final task nothing is left to
    /// depend on.
    Include {
        clauses: Clauses,
        in_final: bool,
    },
    Included,
    Taskwait(Vec<Depend>),
    Group,
    Grouped,
    Take(Lock),
    Give(Lock),
    /// A region of so many threads, with this code, begins and ends.
    Fork {
        code: usize,
        threads: u32,
    },
    Join,
    /// A piece of work that any thread may get, up to the operation of that number: one of them comes here.
    Piece {
        end: usize,
        nowait: bool,
    },
    PieceDone,
    /// What only the thread of this number does, up to the operation of that number.
    Masked {
        thread: u32,
        end: usize,
    },
    MaskedDone,
    /// Shared work, of so many chunks, up to the operation of that number.
    Deal {
        how: Share,
        nowait: bool,
        chunks: u32,
        end: usize,
    },
    /// A chunk of it, up to the operation of that number: one thread comes here.
    Chunk {
        number: u32,
        how: Share,
        end: usize,
    },
    ChunkDone(Share),
    Dealt(Share),
    /// A loop of tasks: so many are created, with the codes of these numbers, in a group or not. And its end.
    Taskloop {
        first: usize,
        count: u32,
        nogroup: bool,
    },
    Looped {
        nogroup: bool,
    },
    /// The thread goes on behind a barrier, which is the end of a piece or stands for itself.
    Pass {
        of_piece: bool,
    },
}

/// The operation of a code by which the task waits that makes it for all its children, those that it creates at operation `at` among them, if there is one.
pub fn waits_for(code: &[Op], at: usize) -> Option<usize> {
    let mut depth = 0;
    for (number, op) in code.iter().enumerate().skip(at + 1) {
        match op {
            Op::Taskwait(depend) if depth == 0 && depend.is_empty() => return Some(number),
            // Tasks that are part of this one, and pieces of work, have children of their own.
            Op::Include { .. } | Op::Piece { .. } | Op::Chunk { .. } => depth += 1,
            Op::Included | Op::PieceDone | Op::ChunkDone(_) if depth == 0 => return None,
            Op::Included | Op::PieceDone | Op::ChunkDone(_) => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The codes of a program. The first is that of the initial thread.
pub fn codes(program: &Program) -> Vec<Vec<Op>> {
    let mut codes = vec![Vec::new()];
    codes[0] = code(&program.body, false, &mut codes);
    codes
}

fn code(body: &[Stmt], is_final: bool, codes: &mut Vec<Vec<Op>>) -> Vec<Op> {
    let mut ops = vec![Op::Begin];
    statements(body, is_final, &mut ops, codes);
    ops.push(Op::End);
    ops
}

fn statements(body: &[Stmt], is_final: bool, ops: &mut Vec<Op>, codes: &mut Vec<Vec<Op>>) {
    for stmt in body {
        statement(stmt, is_final, ops, codes);
    }
}

/// Appends what a statement does. Final tasks have no dependences among their children: all of these are part of them.
fn statement(stmt: &Stmt, is_final: bool, ops: &mut Vec<Op>, codes: &mut Vec<Vec<Op>>) {
    let mut new = |body: &[Stmt], is_final| {
        codes.push(Vec::new());
        let number = codes.len() - 1;
        codes[number] = code(body, is_final, codes);
        number
    };
    match stmt {
        &Stmt::Access { kind, bytes, site, atomic } => ops.push(Op::Access { kind, bytes, site, atomic }),
        Stmt::Task(clauses, body) if clauses.undeferred || is_final => {
            ops.push(Op::Include { clauses: clauses.clone(), in_final: is_final });
            statements(body, is_final || clauses.is_final, ops, codes);
            ops.push(Op::Included);
        }
        Stmt::Task(clauses, body) => {
            let code = new(body, clauses.is_final);
            ops.push(Op::Create { code, clauses: clauses.clone() });
        }
        Stmt::Taskwait(depend) => ops.push(Op::Taskwait(depend.clone())),
        Stmt::Taskgroup(body) => {
            ops.push(Op::Group);
            statements(body, is_final, ops, codes);
            ops.push(Op::Grouped);
        }
        Stmt::Section(lock, body) => {
            ops.push(Op::Take(*lock));
            statements(body, is_final, ops, codes);
            ops.push(Op::Give(*lock));
        }
        Stmt::Parallel(threads, body) => {
            let code = new(body, is_final);
            ops.extend([Op::Fork { code, threads: *threads }, Op::Join]);
        }
        Stmt::Single { nowait, body } => {
            let start = ops.len();
            ops.push(Op::PieceDone);
            statements(body, is_final, ops, codes);
            ops.push(Op::PieceDone);
            ops[start] = Op::Piece { end: ops.len(), nowait: *nowait };
            if !nowait {
                ops.push(Op::Pass { of_piece: true });
            }
        }
        Stmt::Masked(thread, body) => {
            let start = ops.len();
            ops.push(Op::MaskedDone);
            statements(body, is_final, ops, codes);
            ops.push(Op::MaskedDone);
            ops[start] = Op::Masked { thread: *thread, end: ops.len() };
        }
        Stmt::Deal { how, nowait, body } => {
            let start = ops.len();
            ops.push(Op::Dealt(*how));
            for (number, chunk) in body.iter().enumerate() {
                let at = ops.len();
                ops.push(Op::ChunkDone(*how));
                statements(chunk.body().map_or(&[][..], Vec::as_slice), is_final, ops, codes);
                ops.push(Op::ChunkDone(*how));
                ops[at] = Op::Chunk { number: number as u32, how: *how, end: ops.len() };
            }
            ops.push(Op::Dealt(*how));
            let (chunks, end) = (body.len() as u32, ops.len());
            ops[start] = Op::Deal { how: *how, nowait: *nowait, chunks, end };
            if !nowait {
                ops.push(Op::Pass { of_piece: true });
            }
        }
        // Its tasks are part of the one that creates them.
        Stmt::Taskloop { nogroup, body } if is_final => {
            ops.extend((!nogroup).then_some(Op::Group));
            for chunk in body {
                ops.push(Op::Include { clauses: Clauses::default(), in_final: true });
                statements(chunk.body().map_or(&[][..], Vec::as_slice), is_final, ops, codes);
                ops.push(Op::Included);
            }
            ops.extend((!nogroup).then_some(Op::Grouped));
        }
        Stmt::Taskloop { nogroup, body } => {
            let first = codes.len();
            codes.extend(body.iter().map(|_| Vec::new()));
            for (number, chunk) in body.iter().enumerate() {
                let body = chunk.body().map_or(&[][..], Vec::as_slice);
                codes[first + number] = code(body, is_final, codes);
            }
            ops.push(Op::Taskloop { first, count: body.len() as u32, nogroup: *nogroup });
            ops.push(Op::Looped { nogroup: *nogroup });
        }
        Stmt::Chunk(body) => statements(body, is_final, ops, codes),
        Stmt::Barrier => ops.push(Op::Pass { of_piece: false }),
    }
}
