//! The next step after a race: which construct would order the two accesses.
//!
//! The advice follows from how the two tasks are related, and is in the words of the library that started them. It is one
//! way out, not a proof that it is the best one, and it does not look at what the program means to compute.

use dagsan_core::AccessKind;

use crate::model::{Join, Race, Report, Side, Task};
use crate::text::at;

/// What to do about the race.
pub(crate) fn next_step(report: &Report, race: &Race) -> String {
    let (first, second) = (&race.first, &race.second);
    match (first.isolated, second.isolated) {
        (true, false) => return "put (2) in an `isolated` section too, or order it with (1)".to_owned(),
        (false, true) => return "put (1) in an `isolated` section too, or order it with (2)".to_owned(),
        _ => {}
    }
    if let Some(step) = protect(first, second) {
        return step;
    }
    // The child of the common ancestor that each access belongs to, if it is not the ancestor's own.
    let top = |task, other| {
        let chain = report.ancestry(task, other);
        chain.last().and_then(|task| report.tasks.get(task))
    };
    let (one, two) = (top(first.task, second.task), top(second.task, first.task));
    // No lock helps against a free.
    let lock = match first.detail.free || second.detail.free {
        true => String::new(),
        false => format!(", or {LOCK} if their order does not matter"),
    };
    let step = rayon(report, one, two, &lock)
        .or_else(|| threads(report, one, two, &lock))
        .or_else(|| openmp(report, one, two));
    if let Some(step) = step {
        return step;
    }
    match (one, two) {
        (Some(one), Some(two)) if one.created == two.created => {
            let protect = match report.native {
                Some(_) => LOCK,
                None => "put both accesses in `isolated` sections",
            };
            format!(
                "let each of these tasks touch memory of its own, make one wait for the other, or {protect} if \
                 their order does not matter"
            )
        }
        (Some(one), Some(two)) => {
            let when = match &two.created {
                Some(place) => format!("the task of {} is created", at(report, place)),
                None => "the other task is created".to_owned(),
            };
            format!(
                "{}; or let a promise order them: `set` it after (1), `get` it before (2)",
                wait(report, one, &when)
            )
        }
        (Some(one), None) => wait(report, one, "(2)"),
        (None, Some(two)) => wait(report, two, "(1)"),
        (None, None) => "order the two accesses: make one task wait for the other".to_owned(),
    }
}

const LOCK: &str = "protect both accesses by a lock";

/// If tasks of rayon are to be ordered: how. The tasks are those of (1) and of (2), if they are not the common ancestor;
/// `lock` is said where a lock would do.
fn rayon(report: &Report, one: Option<&Task>, two: Option<&Task>, lock: &str) -> Option<String> {
    let of = |task: &Task| match &task.created {
        Some(place) => format!(" of {}", at(report, place)),
        None => String::new(),
    };
    let is = |join: Join| move |task: &&Task| task.join == join;
    let both = [one, two].into_iter().flatten();
    if let Some(piece) = both.clone().find(is(Join::Iterator)) {
        return Some(format!(
            "items of the parallel iterator{} are parallel: let each touch memory of its own (`par_iter_mut`, \
             `par_chunks_mut`, `map` and `collect`, `fold` and `reduce`){lock}",
            of(piece)
        ));
    }
    if let Some(closure) = both.clone().find(is(Join::Closure)) {
        return Some(format!(
            "the two closures of the `join`{} are parallel: let them touch different memory, call one after the \
             other{lock}",
            of(closure)
        ));
    }
    let job = both.clone().find(|task| matches!(task.join, Join::Scope | Join::Nobody))?;
    Some(match (one, two) {
        (Some(one), Some(two)) if one.created == two.created => {
            format!("tasks{} are parallel to each other: let each touch memory of its own{lock}", of(one))
        }
        (Some(one), Some(two)) => format!(
            "the tasks{} and{} are parallel: let them touch different memory, put the first in a `scope` of its \
             own that ends before the second starts{lock}",
            of(one),
            of(two)
        ),
        _ => {
            let when = if one.is_some() { "(2)" } else { "(1)" };
            match job.join {
                Join::Scope => format!("let the `scope` around the task{} end before {when}", of(job)),
                _ => format!(
                    "nothing waits for the job{}: put it in a `scope` that ends before {when}, or wait for it, \
                     by a channel say",
                    of(job)
                ),
            }
        }
    })
}

/// If threads of a team, or tasks of OpenMP, are to be ordered: how.
fn openmp(report: &Report, one: Option<&Task>, two: Option<&Task>) -> Option<String> {
    let both = [one, two].into_iter().flatten();
    let of = |task: &Task| match &task.created {
        Some(place) => format!(" of {}", at(report, place)),
        None => String::new(),
    };
    let protect = "protect both by `critical` or `atomic`";
    if let Some(thread) = both.clone().find(|task| task.join == Join::Barrier) {
        return Some(format!(
            "threads of the team{} are parallel until the next barrier: put `#pragma omp barrier` between the two, \
             make the variable `private` or a `reduction`, or {protect}",
            of(thread)
        ));
    }
    let task = both.clone().find(|task| task.join == Join::Taskwait)?;
    Some(match (one, two) {
        (Some(one), Some(two)) if one.created == two.created => format!(
            "tasks{} are parallel to each other: order them by `depend`, let each touch memory of its own, or {protect}",
            of(one)
        ),
        (Some(_), Some(_)) => format!(
            "nothing orders the task{} and the other one: give both a `depend` on the variable, or put \
             `#pragma omp taskwait` between them",
            of(task)
        ),
        _ => wait(report, task, if one.is_some() { "(2)" } else { "(1)" }),
    })
}

/// If two threads are to be ordered: how.
fn threads(report: &Report, one: Option<&Task>, two: Option<&Task>, lock: &str) -> Option<String> {
    let (one, two) = (one?, two?);
    if one.join != Join::Thread || two.join != Join::Thread {
        return None;
    }
    Some(if one.created == two.created {
        format!("these threads are parallel: let each touch memory of its own{lock}")
    } else {
        let when = match &two.created {
            Some(place) => format!("the thread of {} starts", at(report, place)),
            None => "the other thread starts".to_owned(),
        };
        format!("{}, let them touch different memory{lock}", wait(report, one, &when))
    })
}

/// If only one side of a native program is protected: how to protect the other.
fn protect(first: &Side, second: &Side) -> Option<String> {
    let (one, two) = (&first.detail, &second.detail);
    let both =
        |how: &str, other: u8, protected: u8| Some(format!("{how}, or order ({other}) with ({protected})"));
    match (one.atomic, two.atomic, one.locked, two.locked) {
        // A block can only be freed when all others are done with it.
        _ if one.free || two.free => None,
        (true, false, ..) => both("make (2) an atomic operation too", 2, 1),
        (false, true, ..) => both("make (1) an atomic operation too", 1, 2),
        (_, _, true, true) if one.shares_lock && two.shares_lock => {
            let writers = match (first.kind, second.kind) {
                (AccessKind::Write, AccessKind::Write) => "(1) and (2)",
                (AccessKind::Write, _) => "(1)",
                _ => "(2)",
            };
            let how =
                format!("readers of a lock do not keep each other out: take it for writing at {writers}");
            both(&how, 2, 1)
        }
        (_, _, true, true) => both("hold the same lock at (1) and (2)", 2, 1),
        (_, _, true, false) => both("hold the lock of (1) at (2) too", 2, 1),
        (_, _, false, true) => both("hold the lock of (2) at (1) too", 1, 2),
        _ => None,
    }
}

/// How to wait for the task before something.
fn wait(report: &Report, task: &Task, when: &str) -> String {
    let Some(place) = &task.created else {
        return format!("wait for {} before {when}", task.what);
    };
    let place = at(report, place);
    match task.join {
        Join::Finish => format!("put the task of {place} in a `finish` that ends before {when}"),
        Join::Sync => format!("put a `sync` after {place} and before {when}"),
        Join::Get => format!("`get` the future of {place} before {when}"),
        Join::Await => format!("`await` the region of the task of {place} before {when}"),
        Join::Thread => format!("`join` the thread of {place} before {when}"),
        Join::Taskwait => {
            format!("put `#pragma omp taskwait` after the task of {place} and before {when}")
        }
        Join::Closure | Join::Iterator | Join::Scope | Join::Nobody | Join::Barrier => {
            format!("wait for the task of {place} before {when}")
        }
    }
}
