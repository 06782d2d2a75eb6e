//! Which joins are worth being offered: a part that must wait for its order almost at once only sends the session from one thread to another.
//!
//! What the second of a join does, the next one of the same code will do too. So each code has a *gain*: after a part that fell in soon, as many looks at its
//! offers are in vain as its *rest* says, and twice as many the next time; after one that ran on its own for long it has none. This is about who runs what,
//! and never about verdicts.
//!
//! Codes are told apart by some bits of their address; those with the same bits have a gain together.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::delays;

/// See the module's documentation. Relaxed throughout: a look or a doubling that is lost does no harm, and nothing else depends on them.
#[derive(Debug)]
pub struct Gain {
    /// So many looks are in vain after the next part that falls in soon.
    rest: AtomicU32,
    /// So many looks are in vain from here on.
    left: AtomicU32,
}

const CODES: usize = 256;

static GAINS: [Gain; CODES] = [const { Gain { rest: AtomicU32::new(0), left: AtomicU32::new(0) } }; CODES];

/// A part that fell in before that time was not worth it: to pass the session on and back takes a good part of it.
const SOON: Duration = Duration::from_micros(200);

/// How many looks are in vain at first, and at last.
const FIRST: u32 = 16;
const LAST: u32 = 1 << 20;

impl Gain {
    /// Of the code at this address.
    pub fn of(code: usize) -> &'static Gain {
        // Functions begin at multiples of 16.
        &GAINS[(code >> 4 ^ code >> 12) % CODES]
    }

    /// Is an offer of this code to be taken?
    pub fn is_hoped_for(&self) -> bool {
        let left = self.left.load(Relaxed);
        // Tests want all the parts that there can be.
        if left == 0 || delays::are_wanted() {
            return true;
        }
        self.left.store(left - 1, Relaxed);
        false
    }

    /// A part of this code has run for so long, and then ended, or fell in.
    pub fn ran(&self, time: Duration, fell_in: bool) {
        if time >= SOON {
            self.rest.store(0, Relaxed);
            self.left.store(0, Relaxed);
        } else if fell_in {
            let rest = (self.rest.load(Relaxed) * 2).clamp(FIRST, LAST);
            self.rest.store(rest, Relaxed);
            self.left.store(rest, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many looks are in vain.
    fn looks(gain: &Gain) -> u32 {
        (0..).find(|_| gain.is_hoped_for()).unwrap_or(u32::MAX)
    }

    #[test]
    fn who_falls_in_soon_rests_longer_each_time() {
        let gain = Gain { rest: AtomicU32::new(0), left: AtomicU32::new(0) };
        let soon = Duration::from_micros(1);
        assert_eq!(looks(&gain), 0);
        gain.ran(soon, false);
        assert_eq!(looks(&gain), 0);
        gain.ran(soon, true);
        assert_eq!(looks(&gain), FIRST);
        gain.ran(soon, true);
        assert_eq!(looks(&gain), 2 * FIRST);
        (0..40).for_each(|_| gain.ran(soon, true));
        assert_eq!(looks(&gain), LAST);
        gain.ran(SOON, true);
        assert_eq!(looks(&gain), 0);
        gain.ran(soon, true);
        assert_eq!(looks(&gain), FIRST);
    }
}
