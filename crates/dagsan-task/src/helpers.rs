//! Threads that help others with their tasks.
//!
//! They are started when they are needed, as many as the largest crew has asked for, and stay with the process. A scope
//! that is opened while others have them has fewer helpers, or none. So a process does not have more threads at work than
//! it has workers, however many of its threads open scopes; and a thread waits for no helper.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
#[cfg(not(dagsan))]
use std::thread;

use crate::crew::Crew;
use crate::parallel;

/// Those who have nothing to do, and what there is to do.
struct Roster {
    started: usize,
    free: usize,
    /// The crews that helpers go to.
    calls: Vec<Arc<Crew>>,
}

static ROSTER: Mutex<Roster> = Mutex::new(Roster { started: 0, free: 0, calls: Vec::new() });
static CALLED: Condvar = Condvar::new();

fn roster() -> MutexGuard<'static, Roster> {
    ROSTER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many of `wanted` helpers can be had: they are taken, and have to be called.
pub(crate) fn take(wanted: usize) -> usize {
    let mut roster = roster();
    while roster.free < wanted && roster.started < wanted {
        if !start(format!("dagsan-helper-{}", roster.started + 1)) {
            break;
        }
        roster.started += 1;
        roster.free += 1;
    }
    let taken = wanted.min(roster.free);
    roster.free -= taken;
    taken
}

/// Starts a helper. The system may refuse more threads: then there are fewer.
#[cfg(not(dagsan))]
fn start(name: String) -> bool {
    thread::Builder::new().name(name).spawn(help).is_ok()
}

/// Checked programs have none. What the standard library has for threads would be compiled here, without hooks, and the program's own threads
/// would use it: rustc takes such code from whichever crate has it.
#[cfg(dagsan)]
fn start(_: String) -> bool {
    false
}

/// Sends helpers that were taken to a crew.
pub(crate) fn call(crew: &Arc<Crew>, helpers: usize) {
    let mut roster = roster();
    for _ in 0..helpers {
        roster.calls.push(Arc::clone(crew));
        CALLED.notify_one();
    }
}

/// The life of a helper.
#[cfg_attr(dagsan, allow(dead_code))]
fn help() {
    let mut roster = roster();
    loop {
        if let Some(crew) = roster.calls.pop() {
            drop(roster);
            parallel::serve(crew);
            roster = self::roster();
            roster.free += 1;
        } else {
            roster = CALLED.wait(roster).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
