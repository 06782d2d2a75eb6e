//! Loops whose iterations threads ask for: dynamic, guided, runtime, auto, and those with `ordered`.
//!
//! Each chunk is a piece of work that any thread may get, unless the schedule is static. Chunks are as small as the program allows: a guided one may be as
//! small as that. They are dealt out in turn, so that neighbours are on different threads, and a thread that comes late leaves its own to those
//! that are done.

use dagsan_rt::team::{self, Inside, Order};

use crate::member::{self, Member, Team};
use crate::refuse::Ident;
use crate::single;
use crate::static_loop::trips;

/// A loop that a team is in.
pub struct Loop {
    trips: u64,
    chunk: u64,
    /// Does it matter which thread has which chunk?
    is_static: bool,
    /// The next chunk of each thread, and whether it has come.
    next: Vec<u64>,
    has_come: Vec<bool>,
    left: usize,
    /// The iteration whose `ordered` region is next, and what came before it.
    pub ordered: u64,
    pub order: Option<Order>,
}

/// What a thread has of a loop.
pub struct Dispatched {
    number: u64,
    low: i128,
    step: i128,
    /// The iteration that it is in, the last of its chunk, and whether its `ordered` region is over.
    pub iteration: u64,
    last: u64,
    pub was_ordered: bool,
}

const STATIC_CHUNKED: i32 = 33;
const STATIC: i32 = 34;
const RUNTIME: i32 = 37;
/// What is added to the numbers of schedules if a loop has `ordered`.
const ORDERED: i32 = 32;
const FIRST_ORDERED: i32 = 65;
const LAST_ORDERED: i32 = 70;
const MODIFIERS: i32 = 3 << 29;

impl Dispatched {
    /// The number of the loop in its team.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Team {
    /// Who waits for an `ordered` region waits for this address.
    pub fn at_ordered(team: *const Team) -> usize {
        // SAFETY: only the address is taken.
        unsafe { (&raw const (*team).first_loop).addr() }
    }

    /// The loop of that number.
    pub fn loop_of(&mut self, number: u64) -> Option<&mut Loop> {
        self.loops.get_mut(number.checked_sub(self.first_loop)? as usize)
    }
}

fn init(
    member: &mut Member,
    region: &mut Team,
    schedule: i32,
    low: i128,
    step: i128,
    trips: u64,
    chunk: i64,
) {
    let schedule = schedule & !MODIFIERS;
    let is_ordered = (FIRST_ORDERED..=LAST_ORDERED).contains(&schedule);
    let (mut schedule, mut chunk) = (if is_ordered { schedule - ORDERED } else { schedule }, chunk);
    if schedule == RUNTIME {
        (schedule, chunk) = member.schedule;
    }
    let size = region.size as u64;
    let is_static = matches!(schedule, STATIC | STATIC_CHUNKED);
    let chunk = match u64::try_from(chunk) {
        Ok(chunk) if chunk > 0 && schedule != STATIC => chunk,
        _ if is_static => trips.div_ceil(size).max(1),
        _ => 1,
    };
    let number = member.loops;
    member.loops += 1;
    if region.loop_of(number).is_none() {
        region.loops.push_back(Loop {
            trips,
            chunk,
            is_static,
            next: (0..size).collect(),
            has_come: vec![false; region.size],
            left: region.size,
            ordered: 0,
            order: None,
        });
    }
    if let Some(known) = region.loop_of(number) {
        known.has_come[member.number] = true;
    }
    member.dispatched = Some(Dispatched { number, low, step, iteration: 0, last: 0, was_ordered: true });
}

/// This thread has no more to do with the loop that it is in.
pub fn leave(member: &mut Member, region: &mut Team, inside: Option<&Inside>) {
    let Some(known) = member.dispatched.take().and_then(|dispatched| region.loop_of(dispatched.number))
    else {
        return;
    };
    known.left -= 1;
    let ordered = known.order;
    while region.loops.front().is_some_and(|known| known.left == 0) {
        region.loops.pop_front();
        region.first_loop += 1;
        if let Some((order, inside)) = ordered.zip(inside) {
            team::drop_order(inside, order);
        }
    }
}

/// The next chunk of this thread: its first and last iteration, and whether that is the last one of the loop.
fn next(
    member: &mut Member,
    region: &mut Team,
    inside: Option<&Inside>,
    frame: usize,
) -> Option<(i128, i128, bool)> {
    single::end_piece(member, inside, frame);
    let dispatched = member.dispatched.as_mut()?;
    let size = region.size as u64;
    let (number, own) = (dispatched.number, member.number);
    let known = region.loop_of(number)?;
    let has = |known: &Loop, thread: usize| known.next[thread].saturating_mul(known.chunk) < known.trips;
    // Those of threads that have not come are anybody's. Each thread gets its chunks in their order.
    let others = (0..known.next.len()).filter(|&thread| !known.has_come[thread] && !known.is_static);
    let from =
        others.chain([own]).filter(|&thread| has(known, thread)).min_by_key(|&thread| known.next[thread]);
    let Some(from) = from else {
        leave(member, region, inside);
        return None;
    };
    let first = known.next[from] * known.chunk;
    known.next[from] += size;
    let last = (first + known.chunk - 1).min(known.trips - 1);
    (dispatched.iteration, dispatched.last, dispatched.was_ordered) = (first, last, false);
    let at = |count: u64| dispatched.low + count as i128 * dispatched.step;
    let chunk = (at(first), at(last), last == known.trips - 1);
    if !known.is_static {
        single::begin_piece(member, region, inside, false, frame);
    }
    Some(chunk)
}

macro_rules! loops {
    ($($init:ident, $next:ident, $fini:ident, $T:ty, $S:ty;)*) => { $(
        /// This thread comes to a loop.
        #[unsafe(no_mangle)]
        pub extern "C" fn $init(_: *const Ident, _: i32, schedule: i32, lower: $T, upper: $T, step: $S, chunk: $S) {
            let trips = trips(lower as i128, upper as i128, step as i128);
            member::with(|member, region, _| init(member, region, schedule, lower as i128, step as i128, trips, chunk as i64));
        }

        /// It asks for its next chunk; 0 if there is none.
        ///
        /// # Safety
        ///
        /// As clang calls it.
        #[unsafe(no_mangle)]
        #[inline(never)]
        pub unsafe extern "C" fn $next(
            _: *const Ident, _: i32, is_last: *mut i32, lower: *mut $T, upper: *mut $T, stride: *mut $S,
        ) -> i32 {
            let frame = team::frame();
            let chunk = member::with(|member, region, inside| {
                let step = member.dispatched.as_ref().map_or(1, |dispatched| dispatched.step);
                next(member, region, inside, frame).map(|chunk| (chunk, step))
            });
            let Some(((first, last, is_end), step)) = chunk else { return 0 };
            // SAFETY: the caller's promise.
            unsafe {
                (*lower, *upper) = (first as $T, last as $T);
                if let Some(stride) = stride.as_mut() {
                    *stride = step as $S;
                }
                if let Some(is_last) = is_last.as_mut() {
                    *is_last = i32::from(is_end);
                }
            }
            1
        }

        /// An iteration of a loop with `ordered` is over.
        #[unsafe(no_mangle)]
        #[inline(never)]
        pub extern "C" fn $fini(_: *const Ident, _: i32) {
            crate::ordered::iteration_is_over(team::frame());
        }
    )* };
}

loops! {
    __kmpc_dispatch_init_4, __kmpc_dispatch_next_4, __kmpc_dispatch_fini_4, i32, i32;
    __kmpc_dispatch_init_4u, __kmpc_dispatch_next_4u, __kmpc_dispatch_fini_4u, u32, i32;
    __kmpc_dispatch_init_8, __kmpc_dispatch_next_8, __kmpc_dispatch_fini_8, i64, i64;
    __kmpc_dispatch_init_8u, __kmpc_dispatch_next_8u, __kmpc_dispatch_fini_8u, u64, i64;
}

/// The loop is over for this thread, which has been told so.
#[unsafe(no_mangle)]
pub extern "C" fn __kmpc_dispatch_deinit(_: *const Ident, _: i32) {}
