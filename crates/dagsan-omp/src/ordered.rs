//! Regions of iterations that come one after the other: `ordered`, and `ordered(n)` with `depend(sink)` and `depend(source)`.

use rustc_hash::FxHashMap;

use dagsan_rt::team::{self, Order};

use crate::member::{self, Team};
use crate::refuse::Ident;
use crate::static_loop::trips;

const WHY: &str = "the ordered region of an earlier iteration";

/// Waits until the iteration of this thread is next, and comes after the regions of those before.
fn wait_for_turn(frame: usize) {
    let Some(inside) = team::enter() else { return };
    let member = member::this();
    // SAFETY: this thread's member and its team; nothing is borrowed during a wait.
    unsafe {
        let Some((number, iteration)) =
            (*member).dispatched.as_ref().map(|dispatched| (dispatched.number(), dispatched.iteration))
        else {
            return;
        };
        loop {
            let Some(known) = (*(*member).team).loop_of(number) else { return };
            if known.ordered == iteration {
                if let Some(order) = known.order {
                    team::acquire(&inside, order, frame);
                }
                return;
            }
            team::wait(&inside, Team::at_ordered((*member).team), WHY);
        }
    }
}

/// The next iteration can come. If this one had a region, that comes before.
fn pass_on(had_region: bool, frame: usize) {
    let Some(inside) = team::enter() else { return };
    let member = member::this();
    // SAFETY: this thread's member and its team.
    unsafe {
        let Some(dispatched) = (*member).dispatched.as_mut() else { return };
        dispatched.was_ordered = true;
        let number = dispatched.number();
        let Some(known) = (*(*member).team).loop_of(number) else { return };
        known.ordered += 1;
        if had_region {
            known.order = known.order.or_else(|| team::order(&inside));
            if let Some(order) = known.order {
                team::release(&inside, order, frame);
            }
        }
        team::wake(&inside, Team::at_ordered((*member).team));
    }
}

/// `#pragma omp ordered`.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_ordered(_: *const Ident, _: i32) {
    wait_for_turn(team::frame());
}

/// Its end.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_end_ordered(_: *const Ident, _: i32) {
    pass_on(true, team::frame());
}

/// An iteration is over: if it had no region, it is passed by.
pub fn iteration_is_over(frame: usize) {
    let had_region =
        member::with(|member, _, _| member.dispatched.as_ref().is_none_or(|known| known.was_ordered));
    if !had_region {
        wait_for_turn(frame);
        pass_on(false, frame);
    }
    member::with(|member, _, _| {
        if let Some(dispatched) = &mut member.dispatched {
            dispatched.iteration += 1;
            dispatched.was_ordered = false;
        }
    });
}

/// A loop whose iterations say which come before which.
pub struct Doacross {
    /// What each iteration that was posted has released.
    posted: FxHashMap<Vec<i64>, Option<Order>>,
    bounds: Vec<(i64, i64, i64)>,
    left: usize,
}

/// The bounds of one loop of the nest, as clang tells them.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bounds {
    lower: i64,
    upper: i64,
    step: i64,
}

impl Team {
    fn doacross_of(&mut self, number: u64) -> Option<&mut Doacross> {
        self.doacross.get_mut(number.checked_sub(self.first_doacross)? as usize)
    }
}

/// Who waits for an iteration waits for this address.
fn at_doacross(region: *const Team) -> usize {
    // SAFETY: only the address is taken.
    unsafe { (&raw const (*region).first_doacross).addr() }
}

/// This thread comes to such a loop.
///
/// # Safety
///
/// As clang calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __kmpc_doacross_init(_: *const Ident, _: i32, count: i32, bounds: *const Bounds) {
    member::with(|member, region, _| {
        if region.doacross_of(member.doacross).is_none() {
            let count = usize::try_from(count).unwrap_or(0);
            // SAFETY: the caller's promise.
            let bounds = (0..count).map(|number| unsafe { *bounds.add(number) });
            let bounds = bounds.map(|bounds| (bounds.lower, bounds.upper, bounds.step)).collect();
            region.doacross.push_back(Doacross { posted: FxHashMap::default(), bounds, left: region.size });
        }
    });
}

/// # Safety
///
/// As many numbers as the loop has nests.
unsafe fn vector(vector: *const i64, count: usize) -> Vec<i64> {
    // SAFETY: the caller's promise.
    (0..count).map(|number| unsafe { *vector.add(number) }).collect()
}

/// `depend(sink: …)`: waits for an iteration.
///
/// # Safety
///
/// As clang calls it.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn __kmpc_doacross_wait(_: *const Ident, _: i32, iteration: *const i64) {
    let frame = team::frame();
    let Some(inside) = team::enter() else { return };
    let member = member::this();
    // SAFETY: the caller's promise; this thread's member and its team.
    unsafe {
        loop {
            let region = (*member).team;
            let Some(known) = (*region).doacross_of((*member).doacross) else { return };
            let wanted = vector(iteration, known.bounds.len());
            let is_one = wanted.iter().zip(&known.bounds).all(|(&at, &(low, high, step))| {
                let (from, to) = if step < 0 { (high, low) } else { (low, high) };
                (from..=to).contains(&at) && (step == 0 || trips(low.into(), at.into(), step.into()) > 0)
            });
            if !is_one {
                // Before the first iteration nothing is waited for.
                return;
            }
            if let Some(order) = known.posted.get(&wanted) {
                if let Some(order) = *order {
                    team::acquire(&inside, order, frame);
                }
                return;
            }
            team::wait(&inside, at_doacross(region), "an iteration that it depends on");
        }
    }
}

/// `depend(source)`: who waits for this iteration can go on.
///
/// # Safety
///
/// As clang calls it.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn __kmpc_doacross_post(_: *const Ident, _: i32, iteration: *const i64) {
    let frame = team::frame();
    let Some(inside) = team::enter() else { return };
    let member = member::this();
    // SAFETY: the caller's promise; this thread's member and its team.
    unsafe {
        let region = (*member).team;
        let Some(known) = (*region).doacross_of((*member).doacross) else { return };
        let order = team::order(&inside);
        if let Some(order) = order {
            team::release(&inside, order, frame);
        }
        known.posted.insert(vector(iteration, known.bounds.len()), order);
        team::wake(&inside, at_doacross(region));
    }
}

/// The loop is over for this thread.
#[unsafe(no_mangle)]
pub extern "C" fn __kmpc_doacross_fini(_: *const Ident, _: i32) {
    member::with(|member, region, inside| {
        let number = member.doacross;
        member.doacross += 1;
        if let Some(known) = region.doacross_of(number) {
            known.left -= 1;
        }
        while region.doacross.front().is_some_and(|known| known.left == 0) {
            region.first_doacross += 1;
            let Some(known) = region.doacross.pop_front() else { return };
            for order in known.posted.into_values().flatten() {
                inside.into_iter().for_each(|inside| team::drop_order(inside, order));
            }
        }
    });
}
