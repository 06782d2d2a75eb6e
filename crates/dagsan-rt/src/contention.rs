//! Before an atomic operation: is it better to let others go first?
//!
//! - **A lock that another thread holds** is not tried. What follows a try that fails is mostly code without hooks, which waits, and which
//!   changes the lock's word in its own way. To come later is always allowed.
//! - **A thread that spins** sees nothing new as long as nobody else has the turn.
//!
//! (A thread that does neither has its turn for a number of steps, see [`turns::go_on`].)

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crate::session::{self, Inside};
use crate::sync::Done;
use crate::system;
use crate::turns;

/// What an operation is about to do with a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// To look at it, or to take it if it is 0.
    Lock,
    Other,
}

/// This thread is about to perform an operation on a word, while threads take turns. Returns when it has the turn, and nobody who could
/// go first has the lock.
#[cold]
pub fn before(address: usize, bytes: usize, wants: Wants) {
    if !turns::is_mine() || wants == Wants::Other {
        return;
    }
    let Some(inside) = Inside::enter() else { return };
    while session::with_inside(&inside, |session| session.is_locked(address)) == Some(true) {
        // SAFETY: the caller is about to access it.
        let value = unsafe { system::load(address, bytes) };
        let Some(value) = value.filter(|&value| value != 0) else { return };
        turns::delay(&inside, address, bytes, value);
        // SAFETY: as above.
        if unsafe { system::load(address, bytes) } == Some(value) {
            return;
        }
    }
}

/// How often in a row one word was looked at in vain. Only the thread that has the turn uses it: relaxed.
static SAME: AtomicUsize = AtomicUsize::new(0);
static LAST: AtomicUsize = AtomicUsize::new(0);

/// So many looks are spinning.
const MOST_SAME: usize = 64;

/// This thread has performed an operation on a word, and has the turn.
pub fn after(address: usize, done: Done) {
    let looked = matches!(done, Done::Load { .. } | Done::Failed { .. });
    let same = if LAST.swap(address, Relaxed) == address && looked { SAME.load(Relaxed) + 1 } else { 0 };
    SAME.store(same, Relaxed);
    let Some(inside) = Inside::enter() else { return };
    // Who gives back a lock that another waits for, and takes it again at once, would have it for ever.
    let gave_back = !looked && turns::is_waited_for(&inside, address);
    if same >= MOST_SAME || gave_back {
        SAME.store(0, Relaxed);
        return turns::yield_now(&inside);
    }
    drop(inside);
    turns::go_on();
}
