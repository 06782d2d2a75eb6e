//! Barriers: everything of the team before comes before everything behind, explicit tasks included.
//!
//! Who arrives ends its implicit task, and waits; thread 0 runs explicit tasks that are left, closes the finish when all are there, and starts the next
//! implicit tasks ([`dagsan_rt::team`]).

use dagsan_rt::team::{self, Inside, Kind};

use crate::fork;
use crate::member::{self, Team};
use crate::refuse::Ident;
use crate::run;

const WHY: &str = "the other threads of its team, at a barrier";

/// `#pragma omp barrier`, and those that other constructs end with.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_barrier(_: *const Ident, _: i32) {
    barrier(team::frame());
}

/// A barrier, in a function with this frame.
pub fn barrier(frame: usize) {
    let Some(inside) = team::enter() else { return };
    let member = member::this();
    // SAFETY: this thread's member and its team; nobody else runs but in waits, where nothing is borrowed.
    unsafe {
        let region = (*member).team;
        run::run_all(&inside, member, frame);
        if (*region).size == 1 {
            if (*region).checked && (*region).level > 0 {
                team::barrier(&inside, frame);
            }
            return;
        }
        (*region).arrived += 1;
        let locks = team::hand_over(&inside, frame);
        if (*member).number != 0 {
            team::end(&inside, frame);
            if (*region).arrived == (*region).size {
                team::wake(&inside, Team::at_barrier(region));
            }
            team::wait(&inside, (&raw const (*member).number).addr(), WHY);
            (*member).lowest = (*member).lowest.min(frame);
            team::begin(&inside, frame);
            team::take_over(&inside, locks, frame);
            return;
        }
        wait_for_all(&inside, region, frame);
        (*region).arrived = 0;
        team::end(&inside, frame);
        team::resume(&inside, (*region).encountering);
        team::barrier(&inside, frame);
        let own = (*region).members.first().copied();
        for &other in (*region).members.iter().skip(1) {
            let next = team::start(&inside, (*region).encountering, Kind::Implicit, frame, frame);
            (*(*other).task).handle = next;
            if let Some(seat) = (*other).seat {
                team::give(&inside, seat, next);
            }
        }
        if let Some(own) = own {
            let next = team::start(&inside, (*region).encountering, Kind::Implicit, frame, frame);
            (*(*own).task).handle = next;
            fork::go_on(&inside, next, frame);
            team::take_over(&inside, locks, frame);
        }
    }
}

/// Thread 0 waits until all are at the barrier, and no explicit task is left.
///
/// # Safety
///
/// The team of this thread, which is its thread 0.
unsafe fn wait_for_all(inside: &Inside, region: *mut Team, frame: usize) {
    let member = member::this();
    // SAFETY: the caller's promise.
    unsafe {
        loop {
            run::run_all(inside, member, frame);
            if (*region).arrived == (*region).size && (*region).unfinished == 0 {
                return;
            }
            team::wait(inside, Team::at_barrier(region), WHY);
        }
    }
}

/// A thread that is not thread 0 has come to the end of the region.
pub fn leave(inside: &Inside, frame: usize) {
    let member = member::this();
    // SAFETY: this thread's member, and its team, which lives until this has left.
    unsafe {
        run::run_all(inside, member, frame);
        let region = (*member).team;
        let lowest = (*member).lowest;
        team::end(inside, frame);
        team::left(inside, lowest, frame);
        (*region).arrived += 1;
        if (*region).arrived == (*region).size {
            team::wake(inside, Team::at_barrier(region));
        }
    }
}

/// Thread 0 has come to the end of the region: all others have, too, when this returns, and the encountering task is the running one.
pub fn join(frame: usize) {
    let Some(inside) = team::enter() else { return };
    let member = member::this();
    // SAFETY: this thread's member and its team.
    unsafe {
        let region = (*member).team;
        if (*region).size > 1 {
            (*region).arrived += 1;
        } else {
            (*region).arrived = 1;
        }
        wait_for_all(&inside, region, frame);
        if (*region).size > 1 {
            team::end(&inside, frame);
            team::resume(&inside, (*region).encountering);
        }
    }
}
