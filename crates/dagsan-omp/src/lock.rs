//! Locks: words that are taken and given back by the atomic operations of checked programs, so that they are seen as any other lock is.

use std::cell::Cell;
use std::ffi::c_int;
use std::rc::Rc;
use std::time::Instant;

use dagsan_rt::team;

use crate::member::{self, Team};

/// A word that is 0 if nobody has the lock.
pub type Word = u32;

unsafe extern "C" {
    fn __tsan_atomic32_compare_exchange_val(
        word: *mut Word,
        expected: u32,
        value: u32,
        order: c_int,
        failure: c_int,
    ) -> u32;
    fn __tsan_atomic32_store(word: *mut Word, value: u32, order: c_int);
    fn __tsan_atomic32_load(word: *mut Word, order: c_int) -> u32;
    fn __tsan_atomic32_fetch_sub(word: *mut Word, value: u32, order: c_int) -> u32;
    fn __tsan_atomic32_fetch_add(word: *mut Word, value: u32, order: c_int) -> u32;
}

const RELAXED: c_int = 0;
const ACQUIRE: c_int = 2;
const RELEASE: c_int = 3;
const BOTH: c_int = 4;

/// Takes a word from one value to another, with acquire order; the value that it had.
pub fn compare_exchange(word: *mut Word, expected: u32, value: u32) -> u32 {
    // SAFETY: the program's, or one of this crate's, which lives.
    unsafe { __tsan_atomic32_compare_exchange_val(word, expected, value, ACQUIRE, ACQUIRE) }
}

/// Stores with release order.
pub fn store(word: *mut Word, value: u32) {
    // SAFETY: as above.
    unsafe { __tsan_atomic32_store(word, value, RELEASE) };
}

/// Loads with acquire order.
pub fn load(word: *mut Word) -> u32 {
    // SAFETY: as above.
    unsafe { __tsan_atomic32_load(word, ACQUIRE) }
}

/// Loads without order: what the value is, and nothing of who has stored it.
pub fn look(word: *mut Word) -> u32 {
    // SAFETY: as above.
    unsafe { __tsan_atomic32_load(word, RELAXED) }
}

/// Subtracts with release order.
pub fn subtract(word: *mut Word, value: u32) {
    // SAFETY: as above.
    unsafe { __tsan_atomic32_fetch_sub(word, value, RELEASE) };
}

/// Adds with both; the value that it had.
pub fn add(word: *mut Word, value: u32) -> u32 {
    // SAFETY: as above.
    unsafe { __tsan_atomic32_fetch_add(word, value, BOTH) }
}

/// Waits for somebody to wake the word, if it has such a value, but not beyond that time. It may return early.
pub fn wait_while(
    word: *mut Word,
    is_so: impl FnOnce(u32) -> bool,
    why: &'static str,
    until: Option<Instant>,
) {
    if let Some(inside) = team::enter() {
        // SAFETY: as above.
        if is_so(unsafe { word.read_volatile() }) {
            team::wait_until(&inside, word.addr(), why, until);
        }
    } else {
        std::thread::yield_now();
    }
}

/// Wakes so many of those who wait for a word.
pub fn wake(address: usize, most: usize) {
    if let Some(inside) = team::enter() {
        team::wake_some(&inside, address, most);
    }
}

/// A lock that tasks share, as long as one of them has it.
pub type Shared = Rc<Cell<Word>>;

/// Takes a lock; waits for whoever has it.
pub fn take(word: *mut Word) {
    while !attempt(word) {
        wait_while(word, |value| value != 0, "a lock, or a critical section", None);
    }
}

/// Takes a lock, if nobody has it.
pub fn attempt(word: *mut Word) -> bool {
    let taken = compare_exchange(word, 0, 1) == 0;
    if taken {
        // SAFETY: this thread's own.
        unsafe { (*member::this()).held += 1 };
    }
    taken
}

/// Gives it back.
pub fn give_back(word: *mut Word) {
    let member = member::this();
    // SAFETY: this thread's own.
    let team = unsafe {
        (*member).held = (*member).held.saturating_sub(1);
        (*member).team
    };
    store(word, 0);
    wake(word.addr(), 1);
    // Tasks that were created under it can run elsewhere from here on.
    // SAFETY: as above; whoever has the turn may look at its team.
    if unsafe { !(*team).queue.is_empty() } {
        wake(Team::at_barrier(team), usize::MAX);
    }
}

/// What a program has as `omp_lock_t` or `omp_nest_lock_t`: zeroes are a lock that nobody has.
#[repr(C)]
pub struct Lock {
    word: Word,
    /// How often its owner has taken it, and the task that has it.
    depth: u32,
    owner: usize,
}

macro_rules! locks {
    ($($name:ident($lock:ident $(, $hint:ident)?) $(-> $result:ty)? $body:block)*) => { $(
        /// As in the specification.
        ///
        /// # Safety
        ///
        /// A lock of the program's.
        #[unsafe(no_mangle)]
        #[inline(never)]
        pub unsafe extern "C" fn $name($lock: *mut Lock $(, $hint: c_int)?) $(-> $result)? {
            $(let _ = $hint;)?
            // SAFETY: the caller's promise.
            #[allow(unused_unsafe)]
            unsafe { $body }
        }
    )* };
}

fn word(lock: *mut Lock) -> *mut Word {
    lock.cast()
}

/// The task that takes a nested lock: it may take it again.
fn owner() -> usize {
    // SAFETY: this thread's own.
    unsafe { (*member::this()).task.addr() }
}

locks! {
    omp_init_lock(lock) { lock.write(Lock { word: 0, depth: 0, owner: 0 }) }
    omp_init_nest_lock(lock) { lock.write(Lock { word: 0, depth: 0, owner: 0 }) }
    omp_init_lock_with_hint(lock, hint) { lock.write(Lock { word: 0, depth: 0, owner: 0 }) }
    omp_init_nest_lock_with_hint(lock, hint) { lock.write(Lock { word: 0, depth: 0, owner: 0 }) }
    omp_destroy_lock(lock) { lock.write(Lock { word: 0, depth: 0, owner: 0 }) }
    omp_destroy_nest_lock(lock) { lock.write(Lock { word: 0, depth: 0, owner: 0 }) }
    omp_set_lock(lock) { take(word(lock)) }
    omp_unset_lock(lock) { give_back(word(lock)) }
    omp_test_lock(lock) -> c_int { c_int::from(attempt(word(lock))) }
    omp_set_nest_lock(lock) {
        if (*lock).depth == 0 || (*lock).owner != owner() {
            take(word(lock));
            (*lock).owner = owner();
        }
        (*lock).depth += 1;
    }
    omp_unset_nest_lock(lock) {
        (*lock).depth = (*lock).depth.saturating_sub(1);
        if (*lock).depth == 0 {
            (*lock).owner = 0;
            give_back(word(lock));
        }
    }
    omp_test_nest_lock(lock) -> c_int {
        if (*lock).depth == 0 || (*lock).owner != owner() {
            if !attempt(word(lock)) {
                return 0;
            }
            (*lock).owner = owner();
        }
        (*lock).depth += 1;
        (*lock).depth as c_int
    }
}
