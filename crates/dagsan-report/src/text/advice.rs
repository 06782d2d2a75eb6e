//! The next step after a race: which construct would order the two accesses.
//!
//! The advice follows from how the two tasks are related. It is one way out, not a proof that it is the
//! best one, and it does not look at what the program means to compute.

use crate::model::{Join, Place, Race, Report, Task};

/// What to do about the race.
pub(super) fn next_step(report: &Report, race: &Race) -> String {
    let (first, second) = (&race.first, &race.second);
    match (first.isolated, second.isolated) {
        (true, false) => return "put (2) in an `isolated` section too, or order it with (1)".to_owned(),
        (false, true) => return "put (1) in an `isolated` section too, or order it with (2)".to_owned(),
        _ => {}
    }
    // The child of the common ancestor that each access belongs to, if it is not the ancestor's own.
    let top = |task, other| {
        let chain = report.ancestry(task, other);
        chain.last().and_then(|task| report.tasks.get(task))
    };
    match (top(first.task, second.task), top(second.task, first.task)) {
        (Some(one), Some(two)) if one.created == two.created => {
            "let each of these tasks touch memory of its own, make one wait for the other, or put both \
             accesses in `isolated` sections if their order does not matter"
                .to_owned()
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
    }
}

fn at(report: &Report, place: &Place) -> String {
    match report.sources.get(place.source) {
        Some(source) if place.source > 0 => format!("{}:{}", source.name(), place.line),
        _ => format!("line {}", place.line),
    }
}
