//! Waiting now and then for no reason, so that parts of the program that run ahead (`part`) meet in other ways than by chance: for tests.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The numbers that look random; 0 if nobody wants delays.
static STATE: AtomicU64 = AtomicU64::new(0);

/// From here on there are delays, if the seed is not 0.
pub fn set(seed: u64) {
    // Small seeds have few bits, and the first numbers would be alike.
    STATE.store(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), Relaxed);
}

/// Are there any?
pub fn are_wanted() -> bool {
    STATE.load(Relaxed) != 0
}

/// Waits, perhaps.
#[inline(always)]
pub fn perhaps() {
    let state = STATE.load(Relaxed);
    if state != 0 {
        wait(state);
    }
}

/// Waits in one case of two, for a fifth of a millisecond at most. Threads may get the same number, which does no harm.
#[cold]
fn wait(mut state: u64) {
    // Marsaglia's xorshift.
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    STATE.store(state, Relaxed);
    if state >> 63 == 0 {
        let time = Duration::from_nanos((state >> 20) % 200_000);
        let time = libc::timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
        let time = [(&raw const time).addr(), 0, 0, 0, 0, 0];
        // Not by the C library's function, which is the runtime's own (`waits`).
        // SAFETY: reads the time.
        unsafe { crate::system::call(libc::SYS_nanosleep, time) };
    }
}
