//! Programs of rayon's joins alone, whose second halves may run beside the first (`part` in dagsan-rt).
//!
//! | program | Rust |
//! |---|---|
//! | a task of any kind, and what follows up to the next sync or the end | a join |
//! | a finish, a procedure, an isolated section | what is in it |
//!
//! What orders tasks otherwise is left out, but for locks, releases and acquires; so are frees, as a task that uses pages which another one gives back to the system
//! at that moment is the program's end.

use super::Said;
use super::nest::JOINS;
use super::said::say;
use crate::program::{Program, Stmt};

/// Puts joins in the place of all that starts tasks. `nest` is as for [`say`].
pub fn say_joins(program: &Program, structured: bool, nest: u64) -> Said {
    let body = sequence(&mut program.body.iter(), false);
    say(&Program { body }, structured, nest.max(2) | JOINS)
}

/// The statements up to the end, or to a sync.
fn sequence(rest: &mut std::slice::Iter<'_, Stmt>, to_sync: bool) -> Vec<Stmt> {
    let mut said = Vec::new();
    while let Some(stmt) = rest.next() {
        let inner = || sequence(&mut stmt.body().map_or(&[][..], Vec::as_slice).iter(), false);
        match stmt {
            Stmt::Async(_) | Stmt::Spawn(_) | Stmt::Future(..) | Stmt::Child(..) => {
                said.push(join(inner(), rest));
            }
            Stmt::Detached(_) | Stmt::Post(..) => said.push(join(inner(), rest)),
            Stmt::Finish(_) | Stmt::Call(_) | Stmt::Isolated(_) => said.extend(inner()),
            Stmt::Sync if to_sync => break,
            Stmt::Sync | Stmt::Set(_) | Stmt::Get(_) | Stmt::GetFuture(_) => {}
            Stmt::Await(_) | Stmt::Ewait(_) | Stmt::Free { .. } => {}
            _ => said.push(stmt.clone()),
        }
    }
    said
}

/// A procedure that spawns the first, and does the rest before it syncs.
fn join(first: Vec<Stmt>, rest: &mut std::slice::Iter<'_, Stmt>) -> Stmt {
    let second = sequence(rest, true);
    Stmt::Call([vec![Stmt::Spawn(first)], second, vec![Stmt::Sync]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_parallel_is_a_join() {
        let program =
            Program::parse("w 0x0+1 async { r 0x1+1 } finish { spawn { r 0x2+1 } w 0x3+1 } sync r 0x4+1")
                .unwrap();
        let said = say_joins(&program, true, 0);
        let again = say_joins(&said.program, true, 0);
        assert_eq!(said.program.to_string(), again.program.to_string());
        let text: String = said.program.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        let joined = "call { spawn { r 0x1+1 } call { spawn { r 0x2+1 } w 0x3+1 sync } sync }";
        assert!(text.contains(joined), "{text}");
    }
}
