//! What may come out otherwise in another schedule, though nothing races: whose code it is in, and in which words.
//!
//! The runtime lists atomic operations whose order shows, whoever made them. Those of locks, channels and reference counts are
//! no matter of the user's: what they decide is said of the verdict as a whole, or does not show. So an operation is told if
//! it stands in the user's own code. Those inside rayon's iterators are told as what was called, where it was called: they
//! are how `find_any` and its kin find out that they need not go on. The searches for the first or the last item
//! use them too, but find the same in all schedules.

use dagsan_findings as findings;
use dagsan_findings::ScheduleDependent;

use super::{Error, Reader, user_frame};
use crate::model::{Frame, ScheduleDependence};

/// Where atomic operations are made, in the standard library.
const ATOMICS: &str = "core/src/sync/atomic.rs";

/// Files of rayon whose atomic operations decide nothing, or are told otherwise.
const NO_CHOICE: [&str; 3] = ["find_first_last/mod.rs", "par_bridge.rs", "panic_fuse.rs"];

/// Those of rayon that choose and are not called last, each in a file of its own.
const ADAPTORS: [&str; 5] = ["while_some", "take_any", "take_any_while", "skip_any", "skip_any_while"];

impl Reader<'_> {
    /// What may depend on the schedule, each place once.
    pub(super) fn schedule(&mut self) -> Result<Vec<ScheduleDependence>, Error> {
        let mut all: Vec<ScheduleDependence> = Vec::new();
        for dependence in &self.findings.uses.schedule {
            let Some(told) = self.dependence(dependence)? else { continue };
            let same = |known: &&mut ScheduleDependence| known.call == told.call && known.at == told.at;
            match all.iter_mut().find(same) {
                Some(known) => {
                    known.count += told.count;
                    known.if_used &= told.if_used;
                }
                None => all.push(told),
            }
        }
        Ok(all)
    }

    fn dependence(
        &mut self,
        found: &findings::ScheduleDependence,
    ) -> Result<Option<ScheduleDependence>, Error> {
        let worker = "the worker that runs the task";
        let (on, call) = match found.what {
            ScheduleDependent::Worker => (worker, "rayon::current_thread_index"),
            ScheduleDependent::ThreadLocal => (worker, "a thread-local variable"),
            ScheduleDependent::Bridge => ("the task that takes an item", "par_bridge"),
            ScheduleDependent::Value | ScheduleDependent::PerhapsValue | ScheduleDependent::Store => {
                return self.atomic(found);
            }
        };
        let at = match (&found.place, found.stack) {
            (Some(findings::Place { file, line, column }), _) => {
                Some((self.files.find(file).0, *line, *column))
            }
            (None, Some(stack)) => user_frame(&self.stack(stack)?).and_then(|frame| frame.at.clone()),
            (None, None) => None,
        };
        let call = call.to_owned();
        Ok(Some(ScheduleDependence { on, call, at, if_used: false, other: None, count: found.count }))
    }

    /// An atomic operation, if it is the user's, or decides for the user.
    fn atomic(&mut self, found: &findings::ScheduleDependence) -> Result<Option<ScheduleDependence>, Error> {
        let Some(stack) = found.stack else { return Ok(None) };
        let stack = self.stack(stack)?;
        let is_atomics = |frame: &&Frame| frame.at.as_ref().is_some_and(|(file, ..)| file.ends_with(ATOMICS));
        let inner = stack.iter().take_while(is_atomics).count();
        let Some(code) = stack.get(inner) else { return Ok(None) };
        let Some((file, ..)) = &code.at else { return Ok(None) };
        if !code.library {
            let operation = stack[..inner]
                .last()
                .map_or("an atomic operation".to_owned(), |frame| format!("`{}`", method(&frame.function)));
            let other = match found.other {
                Some(other) => user_frame(&self.stack(other)?).and_then(|frame| frame.at.clone()),
                None => None,
            };
            return Ok(Some(ScheduleDependence {
                on: "the order of atomic operations",
                call: operation,
                at: code.at.clone(),
                if_used: found.what == ScheduleDependent::PerhapsValue,
                other,
                count: found.count,
            }));
        }
        if !is_rayons(file) || NO_CHOICE.iter().any(|none| file.ends_with(none)) {
            return Ok(None);
        }
        let call = match (called(&stack), found.call) {
            (Some(call), _) => Some(call),
            (None, Some(call)) => called(&self.stack(call)?),
            (None, None) => None,
        };
        let (mut call, at) = match call {
            Some((call, at)) => (call, Some(at)),
            None => ("a parallel iterator".to_owned(), None),
        };
        // What chooses may be what the iterator has passed through; a `collect` into a `Result` does it by itself.
        let through = ADAPTORS.iter().find(|name| file.ends_with(&format!("/{name}.rs")));
        if let Some(name) = through.filter(|_| call != "`collect`") {
            call = format!("`{name}`");
        }
        let (on, count) = (choice(call.trim_matches('`')), found.count);
        Ok(Some(ScheduleDependence { on, call, at, if_used: false, other: None, count }))
    }
}

/// Which function of rayon the user has called, and where.
fn called(stack: &[Frame]) -> Option<(String, (String, u32, u32))> {
    let at = stack.iter().position(|frame| frame.at.is_some() && !frame.library)?;
    let called = stack[..at].last()?;
    let (file, ..) = called.at.as_ref().filter(|(file, ..)| is_rayons(file))?;
    let name = format!("`{}`", method(&called.function));
    // A `join`, or whatever else is no iterator: that is somewhere inside.
    let name = if file.contains(RAYON_CORE) { format!("a parallel iterator under {name}") } else { name };
    Some((name, stack[at].at.clone()?))
}

/// Where our rayon-core is.
const RAYON_CORE: &str = "crates/rayon-core/src/";

fn is_rayons(file: &str) -> bool {
    file.contains("/rayon-1.") || file.contains(RAYON_CORE)
}

/// What an operation of rayon is free to choose.
fn choice(operation: &str) -> &'static str {
    match operation {
        "find_any" | "find_map_any" | "position_any" => "which item is found first",
        "any" | "all" => "which items are looked at",
        "while_some" | "collect" => "which item ends it first",
        _ if operation.starts_with("try_") => "which item ends it first",
        _ => "which items come first",
    }
}

/// The name of a function without its path and its types: `fetch_add` of `<core::…::Atomic<u64>>::fetch_add::<u8>`.
fn method(function: &str) -> &str {
    let (mut depth, mut end) = (0u32, function.len());
    let mut start = 0;
    let bytes = function.as_bytes();
    for at in (0..bytes.len()).rev() {
        match bytes[at] {
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' => depth += 1,
            b'<' => {
                depth = depth.saturating_sub(1);
                // What follows the name.
                if depth == 0 && function[..at].ends_with("::") {
                    end = at - 2;
                }
            }
            b':' if depth == 0 && at + 1 < end => {
                start = at + 1;
                break;
            }
            _ => {}
        }
    }
    &function[start.min(end)..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_functions_are_found_among_types() {
        for (function, name) in [
            ("main", "main"),
            ("core::ptr::write::<u64>", "write"),
            ("<core::sync::atomic::AtomicUsize>::fetch_add", "fetch_add"),
            (
                "<rayon::slice::Iter<u8> as rayon::iter::ParallelIterator>::find_any::<m::{closure#0}>",
                "find_any",
            ),
            ("f::<fn(u8) -> u8>", "f"),
            ("", ""),
        ] {
            assert_eq!(method(function), name, "{function}");
        }
    }
}
