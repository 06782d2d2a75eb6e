//! Loops whose iterations are dealt out beforehand: `schedule(static)`, which a program may rely on, sections, and `distribute`.

use dagsan_rt::team;

use crate::member;
use crate::refuse::{Ident, SECTIONS, construct};
use crate::single;

const CHUNKED: i32 = 33;
const STATIC: i32 = 34;
const BALANCED_CHUNKED: i32 = 45;
const DISTRIBUTE_CHUNKED: i32 = 91;
const DISTRIBUTE: i32 = 92;
/// Bits that say whether a thread gets its iterations in order, which it always does.
const MODIFIERS: i32 = 3 << 29;

/// The iterations of one thread: in units of the step, from the first iteration on.
struct Share {
    first: u64,
    last: u64,
    /// From its first iteration to that of its next chunk.
    stride: u64,
    has_last: bool,
}

/// What the thread of this number has of so many iterations; none has nothing.
fn share(trips: u64, schedule: i32, chunk: u64, number: u64, threads: u64) -> Option<Share> {
    if trips == 0 {
        return None;
    }
    match schedule {
        CHUNKED | BALANCED_CHUNKED | DISTRIBUTE_CHUNKED => {
            let chunk = chunk.max(1);
            let first = chunk.checked_mul(number)?;
            let has_last = (trips - 1) / chunk % threads == number;
            Some(Share {
                first,
                last: first.saturating_add(chunk - 1),
                stride: chunk.saturating_mul(threads),
                has_last,
            })
        }
        _ => {
            let (each, more) = (trips / threads, trips % threads);
            let own = each + u64::from(number < more);
            let first = number * each + number.min(more);
            let last = first.wrapping_add(own).wrapping_sub(1);
            (own > 0).then_some(Share { first, last, stride: trips, has_last: last == trips - 1 })
        }
    }
}

macro_rules! loops {
    ($($name:ident, $T:ty, $S:ty;)*) => { $(
        /// What this thread has of a loop.
        ///
        /// # Safety
        ///
        /// As clang calls it.
        #[unsafe(no_mangle)]
        #[inline(never)]
        pub unsafe extern "C" fn $name(
            ident: *const Ident, _: i32, schedule: i32, is_last: *mut i32, lower: *mut $T, upper: *mut $T, stride: *mut $S,
            step: $S, chunk: $S,
        ) {
            let frame = team::frame();
            let schedule = schedule & !MODIFIERS;
            // SAFETY: the caller's promise.
            unsafe {
                if !matches!(schedule, CHUNKED | STATIC | BALANCED_CHUNKED | DISTRIBUTE_CHUNKED | DISTRIBUTE) {
                    construct("a loop with a schedule that is not known", ident);
                }
                let (low, high) = (*lower, *upper);
                let trips = trips(low as i128, high as i128, step as i128);
                let sections = ident.as_ref().is_some_and(|ident| ident.flags & SECTIONS != 0);
                let shared = member::with(|member, region, inside| {
                    let (number, threads) = match schedule {
                        // A league has one team.
                        DISTRIBUTE | DISTRIBUTE_CHUNKED => (0, 1),
                        _ => (member.number as u64, region.size as u64),
                    };
                    let shared = share(trips, schedule, chunk as u64, number, threads);
                    if let Some(share) = shared.as_ref().filter(|_| sections) {
                        member.sections = share.last - share.first + 1;
                        single::begin_piece(member, region, inside, false, frame);
                    }
                    shared
                });
                let (last, stepped) = match shared {
                    Some(Share { first, last, stride, has_last }) => {
                        let at = |count: u64| (low as i128).wrapping_add((count as i128).wrapping_mul(step as i128)) as $T;
                        (*lower, *upper) = (at(first), at(last));
                        (has_last, (stride as i128).wrapping_mul(step as i128) as $S)
                    }
                    None => {
                        // Nothing: the lower bound is beyond the upper one.
                        (*lower, *upper) = if trips == 0 { (low, high) } else { ((high as i128 + step as i128) as $T, high) };
                        (false, (trips.max(1) as i128).wrapping_mul(step as i128) as $S)
                    }
                };
                if let Some(stride) = stride.as_mut() {
                    *stride = stepped;
                }
                if let Some(is_last) = is_last.as_mut() {
                    *is_last = i32::from(last);
                }
            }
        }
    )* };
}

/// How many iterations a loop has.
pub fn trips(low: i128, high: i128, step: i128) -> u64 {
    match step {
        0 => 0,
        step if step > 0 && low <= high => ((high - low) / step + 1) as u64,
        step if step < 0 && low >= high => ((low - high) / -step + 1) as u64,
        _ => 0,
    }
}

loops! {
    __kmpc_for_static_init_4, i32, i32;
    __kmpc_for_static_init_4u, u32, i32;
    __kmpc_for_static_init_8, i64, i64;
    __kmpc_for_static_init_8u, u64, i64;
}

/// The loop is over for this thread.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_for_static_fini(_: *const Ident, _: i32) {
    let frame = team::frame();
    member::with(|member, _, inside| {
        single::end_piece(member, inside, frame);
        if std::mem::take(&mut member.sections) > 1 {
            team::sections_are_not_told();
        }
    });
}
