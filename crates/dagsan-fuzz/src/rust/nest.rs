//! Which constructs are written with rayon, so that both task runtimes run in each other's tasks.
//!
//! | program | rayon |
//! |---|---|
//! | `finish` and its asyncs | a scope and its jobs |
//! | `spawn`, and what follows up to the `sync` | a join |
//! | a detached task | a `spawn` in no scope |
//!
//! Which of them, a hash of the program's number and of the construct decides. What the oracle says must stay true:
//!
//! - A job, or the first half of a join, that waits keeps what started it from going on. So none of them waits.
//! - A scope of rayon's joins its own jobs and nothing else. So no future and no spawn is started in it that a finish there
//!   would join.
//! - Jobs come late, unless they are another pool's, which runs them at once (`batch/support.rs`). Late ones are only in
//!   programs in which the order of tasks makes no difference to what a run shows.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::Said;
use crate::program::{Stmt, walk};

/// How a finish is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As one of dagsan-task.
    Task,
    /// As a scope whose jobs run where they are spawned, those of its body at least.
    AtOnce,
    /// As a scope whose jobs run at its end.
    Late,
}

/// Added to the number of a program in which all that starts tasks is a join (`joins.rs`).
pub const JOINS: u64 = 1 << 63;

/// See the module's documentation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nest {
    /// Below 2 nothing is written with rayon.
    number: u64,
    /// May tasks come in another order?
    any_order: bool,
}

impl Nest {
    pub(super) fn of(said: &Said) -> Nest {
        let decides = |stmt: &Stmt| {
            waits(stmt)
                || matches!(stmt, Stmt::Free { .. } | Stmt::Release(..) | Stmt::Acquire(_))
                || matches!(stmt, Stmt::Lock(..) | Stmt::Unlock(_) | Stmt::Isolated(_))
        };
        Nest { number: said.nest, any_order: !said.program.walk().any(decides) }
    }

    /// Are there joins only?
    pub(super) fn is_joins(self) -> bool {
        self.number & JOINS != 0
    }

    fn chance(self, body: &[Stmt]) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.number.hash(&mut hasher);
        format!("{body:?}").hash(&mut hasher);
        hasher.finish() % 4
    }

    /// The form of a finish.
    pub(super) fn finish(self, body: &[Stmt]) -> Form {
        let mut asyncs = Asyncs::default();
        asyncs.look(body, false);
        let late = asyncs.inside_of_others;
        if self.number < 2 || asyncs.refused || spawns(body) || late && !self.any_order {
            return Form::Task;
        }
        match self.chance(body) {
            0 => Form::Task,
            1 if self.any_order => Form::Late,
            _ => Form::AtOnce,
        }
    }

    /// Do all its tasks run where they are started?
    pub(super) fn is_depth_first(self, body: &[Stmt]) -> bool {
        let mut asyncs = Asyncs::default();
        asyncs.look(body, false);
        match self.finish(body) {
            Form::Task => true,
            Form::AtOnce => !asyncs.inside_of_others,
            Form::Late => false,
        }
    }

    /// If `body` is spawned and joined again as by a join: how many statements of `rest` are the second half.
    pub(super) fn join(self, body: &[Stmt], rest: &[Stmt]) -> Option<usize> {
        let end = rest.iter().position(|stmt| *stmt == Stmt::Sync).unwrap_or(rest.len());
        if self.is_joins() {
            return Some(end);
        }
        let refused = self.number < 2 || walk(body).any(waits) || is_procedure(&rest[..end]);
        (!refused && self.chance(body) > 0).then_some(end)
    }
}

/// Can a detached task be written as a job? Its asyncs and futures would have no finish.
pub(super) fn can_be_detached(body: &[Stmt]) -> bool {
    let mut asyncs = Asyncs::default();
    asyncs.look(body, false);
    !walk(body).any(waits) && !asyncs.any && !asyncs.refused
}

fn waits(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Get(_) | Stmt::GetFuture(_))
}

/// Does the body, as that of a task, spawn or sync?
pub(super) fn is_procedure(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Spawn(_) | Stmt::Sync => true,
        Stmt::Finish(inner) => is_procedure(inner),
        _ => false,
    })
}

/// Does it spawn?
fn spawns(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Spawn(_) => true,
        Stmt::Finish(inner) => spawns(inner),
        _ => false,
    })
}

/// What is started in a body that the finish around it joins.
#[derive(Default)]
struct Asyncs {
    any: bool,
    inside_of_others: bool,
    /// Is there one that waits, or a future?
    refused: bool,
}

impl Asyncs {
    fn look(&mut self, body: &[Stmt], inside: bool) {
        for stmt in body {
            match stmt {
                Stmt::Finish(_) | Stmt::Detached(_) => {}
                Stmt::Future(..) => self.refused = true,
                Stmt::Async(inner) => {
                    self.any = true;
                    self.inside_of_others |= inside;
                    self.refused |= walk(inner).any(waits);
                    self.look(inner, true);
                }
                _ => self.look(stmt.body().map_or(&[], Vec::as_slice), inside),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;
    use crate::rust::say;

    /// The forms of the first finish, by number.
    fn forms(text: &str) -> Vec<Form> {
        let program = Program::parse(text).unwrap();
        let forms = (0..64).map(|number| {
            let said = say(&program, true, number);
            let Stmt::Finish(body) = &said.program.body[0] else { panic!("{text}") };
            Nest::of(&said).finish(body)
        });
        let mut seen = Vec::new();
        for form in forms {
            if !seen.contains(&form) {
                seen.push(form);
            }
        }
        seen.sort_by_key(|form| *form as u32);
        seen
    }

    #[test]
    fn a_scope_takes_what_it_would_join() {
        assert_eq!(forms("finish { async { w 0+1 } }"), [Form::Task, Form::AtOnce, Form::Late]);
        assert_eq!(forms("finish { async { async { } } }"), [Form::Task, Form::AtOnce, Form::Late]);
        assert_eq!(forms("finish { async { get p0 } } set p0"), [Form::Task], "a job that waits");
        assert_eq!(forms("finish { async { } get p0 }"), [Form::Task, Form::AtOnce], "a body that waits");
        assert_eq!(forms("finish { async { async { } } get p0 }"), [Form::Task], "a job of a job, late");
        assert_eq!(forms("finish { async { finish { async { } } } get p0 }"), [Form::Task, Form::AtOnce]);
        assert_eq!(forms("finish { future f0 { } }"), [Form::Task]);
        assert_eq!(forms("finish { spawn { } }"), [Form::Task]);
        assert_eq!(forms("finish { sync; call { spawn { } } }"), [Form::Task, Form::AtOnce, Form::Late]);
    }

    #[test]
    fn a_join_ends_at_the_sync() {
        let join = |text: &str| {
            let program = Program::parse(text).unwrap();
            let joins = (0..64).map(|number| {
                let said = say(&program, true, number);
                let Stmt::Spawn(body) = &said.program.body[0] else { panic!("{text}") };
                Nest::of(&said).join(body, &said.program.body[1..])
            });
            joins.flatten().next()
        };
        assert_eq!(join("spawn { } w 0+1; sync; w 0+1"), Some(1));
        assert_eq!(join("spawn { } w 0+1; get p0"), Some(2));
        assert_eq!(join("spawn { get p0 } sync"), None);
        assert_eq!(join("spawn { } spawn { } sync"), None);
        assert_eq!(join("spawn { } finish { sync } sync"), None);
        assert_eq!(join("spawn { } call { spawn { } } sync"), Some(1));
    }
}
