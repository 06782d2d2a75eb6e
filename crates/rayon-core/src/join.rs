//! [`join`]: the first closure is a task, the second is what its parent does meanwhile.
//!
//! ```text
//!   join ─┬─ frame begins, spawn ─► a ─► ends ─┐
//!         └──────────── b ─────────────────────┴─ sync, frame ends ─►
//! ```
//!
//! A sync joins what the frame has spawned and nothing else. So a job that one of the two closures spawns in a scope
//! outside is not joined here, as in rayon.

use std::panic::{Location, resume_unwind};

use crate::events::Kind;
use crate::finish::Call;
use crate::pool::sit_down;
use crate::split::{FnContext, Level};
use crate::stack::here;
use crate::tasks;
use crate::unwind::{bind, discard, halt};

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
fn both<RA, RB>(
    a: impl FnOnce() -> RA,
    b: impl FnOnce() -> RB,
    place: &'static Location<'static>,
) -> (RA, RB) {
    let call = Call::begin(here!());
    let seat = sit_down();
    let (mut a, mut first) = (Some(a), None);
    tasks::frame_begin();
    tasks::run(Kind::Spawn, place, &mut || first = a.take().map(halt));
    let second = halt(b);
    tasks::frame_end();
    drop(seat);
    drop(call);
    match (first, second) {
        (Some(Ok(first)), Ok(second)) => (first, second),
        (Some(Ok(_)) | None, Err(payload)) => resume_unwind(payload),
        (Some(Err(payload)), second) => {
            if let Err(second) = second {
                discard(second);
            }
            resume_unwind(payload)
        }
        (None, Ok(_)) => unreachable!("the first task has run"),
    }
}
