//! [`join`]: the first closure is a task, the second is what its parent does meanwhile.
//!
//! ```text
//!   join ─┬─ frame begins, spawn ─► a ─► ends ─┐
//!         └──────────── b ─────────────────────┴─ sync, frame ends ─►
//! ```
//!
//! Where DagSan has threads for that, the second closure runs beside the first (`tasks::run_both`): what it does is told to the detector when its turn comes,
//! as if it had run then.
//!
//! A sync joins what the frame has spawned and nothing else. So a job that one of the two closures spawns in a scope
//! outside is not joined here, as in rayon.

use std::mem::{self, MaybeUninit};
use std::panic::{Location, resume_unwind};

use crate::finish::Call;
use crate::split::{FnContext, Level};
use crate::tasks;
use crate::unwind::{Job, Payload, bind, discard, enter, take};

/// Runs two closures, perhaps in parallel, and returns both results.
///
/// If one of them panics, the other is still run. Then `join` goes on with the panic, with that of the first if there are
/// two.
#[track_caller]
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub fn join<A, B, RA, RB>(oper_a: A, oper_b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    both(oper_a, oper_b, Location::caller())
}

/// The same for closures that want to know whether they were stolen.
#[track_caller]
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub fn join_context<A, B, RA, RB>(oper_a: A, oper_b: B) -> (RA, RB)
where
    A: FnOnce(FnContext) -> RA + Send,
    B: FnOnce(FnContext) -> RB + Send,
    RA: Send,
    RB: Send,
{
    let level = Level::enter();
    both(bind(oper_a, level.context()), bind(oper_b, level.context()), Location::caller())
}

#[cfg_attr(dagsan, sanitize(thread = "off"))]
fn both<A, B, RA, RB>(a: A, b: B, place: &'static Location<'static>) -> (RA, RB)
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB,
{
    let mut results = (MaybeUninit::<RA>::uninit(), MaybeUninit::<RB>::uninit());
    let first = Job { body: &raw const a, result: results.0.as_mut_ptr() };
    let second = Job { body: &raw const b, result: results.1.as_mut_ptr() };
    let call = Call::begin(true);
    // SAFETY: jobs of these types, whose closures are forgotten below; they and their results may be sent, as rayon demands.
    let panics = unsafe {
        let first = tasks::Call::new((&raw const first).cast(), enter::<RA, A>);
        tasks::run_both(place, first, tasks::Call::new((&raw const second).cast(), enter::<RB, B>))
    };
    drop(call);
    mem::forget(a);
    mem::forget(b);
    if let (None, None) = panics {
        // SAFETY: without panics, both results are there.
        return unsafe { (take(results.0.as_ptr()), take(results.1.as_ptr())) };
    }
    // SAFETY: the result of the one that has not panicked is there, and nobody wants it.
    unsafe {
        if panics.0.is_none() {
            results.0.assume_init_drop();
        }
        if panics.1.is_none() {
            results.1.assume_init_drop();
        }
    }
    go_on(panics)
}

/// Goes on with the first of two panics.
#[cold]
fn go_on(panics: (Option<Payload>, Option<Payload>)) -> ! {
    match panics {
        (Some(first), second) => {
            if let Some(second) = second {
                discard(second);
            }
            resume_unwind(first)
        }
        (None, Some(second)) => resume_unwind(second),
        (None, None) => unreachable!("one of the two has panicked"),
    }
}
