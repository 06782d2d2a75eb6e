//! Who waits where, and for what, when nobody can go on.
//!
//! A deadlock is noticed when the main task of a thread waits, no task is ready, and some are suspended (see
//! `executor.rs`). It is a property of the program and its input, not of the schedule, as long as promises are set by
//! tasks of the same thread and no isolated section decides what is set.

use std::fmt::Write;
use std::sync::Arc;

use crate::events::{self, Place};

/// Each of those that wait panics with the text, so it tells where so many of them wait, and how many others there are. DagSan is told of all.
const TOLD: usize = 16;

/// A task that waits for ever.
#[derive(Debug)]
pub(crate) struct Blocked {
    pub(crate) task: events::Task,
    /// Where it was started; none for the main task.
    pub(crate) started: Option<Place>,
    /// Where it waits.
    pub(crate) place: Place,
    pub(crate) waits_for: String,
}

/// Announces the deadlock, and puts it into words.
pub(crate) fn report(blocked: &[Blocked]) -> Arc<str> {
    let told: Vec<events::Blocked<'_>> = blocked
        .iter()
        .map(|entry| events::Blocked { task: entry.task, place: entry.place, waits_for: &entry.waits_for })
        .collect();
    events::deadlock(&told);
    let mut text = match blocked.len() {
        1 => String::from("deadlock: 1 task waits for ever, and no other task of this thread can go on"),
        count => format!("deadlock: {count} tasks wait for ever, and no other task of this thread can go on"),
    };
    for entry in blocked.iter().take(TOLD) {
        let Blocked { place, waits_for, .. } = entry;
        // Writing to a string cannot fail.
        _ = match entry.started {
            Some(started) => write!(text, "\n  the task of {started} waits at {place} for {waits_for}"),
            None => write!(text, "\n  the main task waits at {place} for {waits_for}"),
        };
    }
    if let Some(others @ 1..) = blocked.len().checked_sub(TOLD) {
        _ = write!(text, "\n  and {others} more");
    }
    text.into()
}
