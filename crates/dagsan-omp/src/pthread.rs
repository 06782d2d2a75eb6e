//! What C and C++ wait with beside OpenMP: mutexes, condition variables, read-write locks, semaphores, barriers, and the initialisation of statics.
//!
//! The C library's own are code without hooks. These are made of the atomic operations of checked programs, in the memory of the program's objects, all bytes
//! of which are zero at first, so that the detector sees what they order; who waits gives its turn away.
//!
//! Not here: mutexes that are robust, shared between processes, or have priorities are plain ones; names of clocks.

use std::ffi::{c_int, c_uint, c_void};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dagsan_rt::team;

use crate::lock::{Word, add, compare_exchange, load, look, store, subtract, wait_while, wake};

const BUSY: c_int = 16;
const NOT_OWNER: c_int = 1;
const DEADLOCK: c_int = 35;
const TIMED_OUT: c_int = 110;
const AGAIN: c_int = 11;

/// As the C library has it: the word comes first, the kind behind it, and the list is not used.
#[repr(C)]
pub struct Mutex {
    word: Word,
    depth: u32,
    unused: [u32; 2],
    kind: c_int,
    spins: c_int,
    owner: usize,
    list: usize,
}

const RECURSIVE: c_int = 1;
const CHECKED: c_int = 2;
/// The part of the kind that says so.
const KIND: c_int = 3;

#[repr(C)]
pub struct Time {
    seconds: i64,
    nanoseconds: i64,
}

impl Time {
    /// The moment, of the clock on the wall or of the other one.
    fn instant(&self, is_steady: bool) -> Instant {
        let time =
            Duration::new(self.seconds.try_into().unwrap_or(0), self.nanoseconds.try_into().unwrap_or(0));
        let now = if is_steady {
            steady()
        } else {
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
        };
        let rest = time.saturating_sub(now);
        // A time beyond all reckoning is as good as a day.
        Instant::now().checked_add(rest).unwrap_or_else(|| Instant::now() + Duration::from_secs(86400))
    }
}

unsafe extern "C" {
    fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    fn __errno_location() -> *mut c_int;
}

const STEADY: c_int = 1;

fn steady() -> Duration {
    let mut time = Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: writes the time.
    unsafe { clock_gettime(STEADY, &raw mut time) };
    Duration::new(time.seconds.try_into().unwrap_or(0), time.nanoseconds.try_into().unwrap_or(0))
}

fn is_past(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() >= until)
}

const LOCK: &str = "a mutex";

/// This thread.
fn this() -> usize {
    thread_local! { static OWN: u8 = const { 0 }; }
    OWN.with(|own| std::ptr::from_ref(own).addr())
}

/// # Safety
///
/// A mutex of the program's.
unsafe fn lock(mutex: *mut Mutex, until: Option<Instant>, waits: bool) -> c_int {
    // SAFETY: the caller's promise. Only who has the mutex changes its other parts.
    unsafe {
        let kind = (*mutex).kind & KIND;
        if (*mutex).owner == this() && kind == RECURSIVE {
            (*mutex).depth += 1;
            return 0;
        }
        if (*mutex).owner == this() && kind == CHECKED && waits {
            return DEADLOCK;
        }
        let word = &raw mut (*mutex).word;
        while compare_exchange(word, 0, 1) != 0 {
            if !waits {
                return BUSY;
            }
            if is_past(until) {
                return TIMED_OUT;
            }
            wait_while(word, |value| value != 0, LOCK, until);
        }
        (*mutex).owner = this();
        0
    }
}

/// # Safety
///
/// A mutex of the program's.
unsafe fn unlock(mutex: *mut Mutex) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let kind = (*mutex).kind & KIND;
        if (*mutex).owner != this() && matches!(kind, RECURSIVE | CHECKED) {
            return NOT_OWNER;
        }
        if (*mutex).depth > 0 {
            (*mutex).depth -= 1;
            return 0;
        }
        (*mutex).owner = 0;
        let word = &raw mut (*mutex).word;
        store(word, 0);
        wake(word.addr(), 1);
        0
    }
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty $body:block)*) => { $(
        /// As in the C library.
        ///
        /// # Safety
        ///
        /// As in the C library.
        #[unsafe(no_mangle)]
        #[inline(never)]
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> $result {
            // SAFETY: the caller's promise.
            #[allow(unused_unsafe)]
            unsafe { $body }
        }
    )* };
}

functions! {
    pthread_mutex_lock(mutex: *mut Mutex) -> c_int { lock(mutex, None, true) }
    pthread_mutex_trylock(mutex: *mut Mutex) -> c_int { lock(mutex, None, false) }
    pthread_mutex_timedlock(mutex: *mut Mutex, time: *const Time) -> c_int { lock(mutex, Some((*time).instant(false)), true) }
    pthread_mutex_clocklock(mutex: *mut Mutex, clock: c_int, time: *const Time) -> c_int {
        lock(mutex, Some((*time).instant(clock == STEADY)), true)
    }
    pthread_mutex_unlock(mutex: *mut Mutex) -> c_int { unlock(mutex) }

    pthread_cond_wait(condition: *mut Condition, mutex: *mut Mutex) -> c_int { wait(condition, mutex, None) }
    pthread_cond_timedwait(condition: *mut Condition, mutex: *mut Mutex, time: *const Time) -> c_int {
        wait(condition, mutex, Some((*time).instant((*condition).is_steady != 0)))
    }
    pthread_cond_clockwait(condition: *mut Condition, mutex: *mut Mutex, clock: c_int, time: *const Time) -> c_int {
        wait(condition, mutex, Some((*time).instant(clock == STEADY)))
    }
    pthread_cond_signal(condition: *mut Condition) -> c_int { signal(condition, 1) }
    pthread_cond_broadcast(condition: *mut Condition) -> c_int { signal(condition, usize::MAX) }
    pthread_cond_init(condition: *mut Condition, attributes: *const c_int) -> c_int {
        // The clock is in the second bit of the attributes.
        let is_steady = attributes.as_ref().map_or(0, |attributes| (attributes >> 1 & 1) as u32);
        condition.write(Condition { signals: 0, waiting: 0, is_steady });
        0
    }
    pthread_cond_destroy(condition: *mut Condition) -> c_int { condition.write(Condition { signals: 0, waiting: 0, is_steady: 0 }); 0 }

    pthread_rwlock_rdlock(word: *mut Word) -> c_int { read_lock(word, true) }
    pthread_rwlock_tryrdlock(word: *mut Word) -> c_int { read_lock(word, false) }
    pthread_rwlock_wrlock(word: *mut Word) -> c_int { write_lock(word, true) }
    pthread_rwlock_trywrlock(word: *mut Word) -> c_int { write_lock(word, false) }
    pthread_rwlock_unlock(word: *mut Word) -> c_int {
        let given = if word.read_volatile() == WRITER { WRITER } else { 1 };
        subtract(word, given);
        wake(word.addr(), usize::MAX);
        0
    }

    pthread_spin_lock(word: *mut Word) -> c_int {
        while compare_exchange(word, 0, 1) != 0 {
            wait_while(word, |value| value != 0, "a spin lock", None);
        }
        0
    }
    pthread_spin_trylock(word: *mut Word) -> c_int { if compare_exchange(word, 0, 1) == 0 { 0 } else { BUSY } }
    pthread_spin_unlock(word: *mut Word) -> c_int { store(word, 0); wake(word.addr(), 1); 0 }
    pthread_spin_init(word: *mut Word, _shared: c_int) -> c_int { word.write(0); 0 }

    sem_init(word: *mut Word, _shared: c_int, value: c_uint) -> c_int { word.write(value); 0 }
    sem_post(word: *mut Word) -> c_int { add(word, 1); wake(word.addr(), 1); 0 }
    sem_wait(word: *mut Word) -> c_int { take(word, None, true) }
    sem_trywait(word: *mut Word) -> c_int { take(word, None, false) }
    sem_timedwait(word: *mut Word, time: *const Time) -> c_int { take(word, Some((*time).instant(false)), true) }
    sem_getvalue(word: *mut Word, value: *mut c_int) -> c_int { *value = load(word) as c_int; 0 }

    pthread_barrier_init(barrier: *mut Barrier, _attributes: *const c_void, count: c_uint) -> c_int {
        barrier.write(Barrier { round: 0, arrived: 0, count });
        0
    }
    pthread_barrier_destroy(_barrier: *mut Barrier) -> c_int { 0 }
    pthread_barrier_wait(barrier: *mut Barrier) -> c_int {
        let round = load(&raw mut (*barrier).round);
        let arrived = &raw mut (*barrier).arrived;
        if add(arrived, 1) + 1 == (*barrier).count {
            store(arrived, 0);
            add(&raw mut (*barrier).round, 1);
            wake((&raw const (*barrier).round).addr(), usize::MAX);
            return -1;
        }
        while load(&raw mut (*barrier).round) == round {
            wait_while(&raw mut (*barrier).round, |value| value == round, "other threads, at a barrier", None);
        }
        0
    }

    pthread_once(word: *mut Word, routine: unsafe extern "C-unwind" fn()) -> c_int {
        if begin_once(word) {
            routine();
            store(word, DONE);
            wake(word.addr(), usize::MAX);
        }
        0
    }
    __cxa_guard_acquire(guard: *mut Word) -> c_int { c_int::from(begin_once(guard)) }
    __cxa_guard_release(guard: *mut Word) -> () { store(guard, DONE); wake(guard.addr(), usize::MAX); }
    __cxa_guard_abort(guard: *mut Word) -> () { store(guard, 0); wake(guard.addr(), usize::MAX); }
}

/// A condition variable: how often it was signalled, and how many wait.
#[repr(C)]
pub struct Condition {
    signals: Word,
    waiting: u32,
    is_steady: u32,
}

/// # Safety
///
/// Both are the program's, and this thread has the mutex.
unsafe fn wait(condition: *mut Condition, mutex: *mut Mutex, until: Option<Instant>) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let word = &raw mut (*condition).signals;
        let signals = word.read_volatile();
        (*condition).waiting += 1;
        let depth = std::mem::take(&mut (*mutex).depth);
        unlock(mutex);
        while word.read_volatile() == signals && !is_past(until) {
            wait_while(word, |value| value == signals, "a condition variable", until);
        }
        let in_time = word.read_volatile() != signals;
        (*condition).waiting -= 1;
        lock(mutex, None, true);
        (*mutex).depth = depth;
        if in_time { 0 } else { TIMED_OUT }
    }
}

/// Wakes who waits. That alone orders nothing: the mutex does. A thread that is not woken, but sees that there was a signal, may go on, too, as the
/// specification allows.
///
/// # Safety
///
/// The program's.
unsafe fn signal(condition: *mut Condition, most: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        if (*condition).waiting > 0 {
            let word = &raw mut (*condition).signals;
            word.write_volatile(word.read_volatile().wrapping_add(1));
            wake(word.addr(), most);
        }
    }
    0
}

const WRITER: Word = 0x3fff_ffff;

/// # Safety
///
/// The first word of a lock of the program's.
unsafe fn read_lock(word: *mut Word, waits: bool) -> c_int {
    loop {
        // Readers are in no order among themselves.
        let value = look(word);
        if value < WRITER {
            if compare_exchange(word, value, value + 1) == value {
                return 0;
            }
        } else if waits {
            wait_while(word, |value| value == WRITER, "a read-write lock", None);
        } else {
            return BUSY;
        }
    }
}

/// # Safety
///
/// The first word of a lock of the program's.
unsafe fn write_lock(word: *mut Word, waits: bool) -> c_int {
    while compare_exchange(word, 0, WRITER) != 0 {
        if !waits {
            return BUSY;
        }
        wait_while(word, |value| value != 0, "a read-write lock", None);
    }
    0
}

/// # Safety
///
/// A semaphore of the program's.
unsafe fn take(word: *mut Word, until: Option<Instant>, waits: bool) -> c_int {
    loop {
        let value = load(word);
        if value > 0 {
            if compare_exchange(word, value, value - 1) == value {
                return 0;
            }
        } else if !waits || is_past(until) {
            // SAFETY: this thread's number of the last error.
            unsafe { *__errno_location() = if waits { TIMED_OUT } else { AGAIN } };
            return -1;
        } else {
            wait_while(word, |value| value == 0, "a semaphore", until);
        }
    }
}

#[repr(C)]
pub struct Barrier {
    round: Word,
    arrived: Word,
    count: c_uint,
}

/// What compilers look for in the first byte of a guard: it is initialised.
const DONE: Word = 1;
const BEGUN: Word = 0x100;

/// Is it this thread that initialises? If not, it is done.
fn begin_once(word: *mut Word) -> bool {
    loop {
        match load(word) {
            0 => {
                if once_is_begun(word) {
                    return true;
                }
            }
            BEGUN => wait_while(word, |value| value == BEGUN, "the initialisation of a static", None),
            _ => return false,
        }
    }
}

/// Not by an operation that looks like that of a lock: what others see is that it is done.
fn once_is_begun(word: *mut Word) -> bool {
    let inside = team::enter();
    // SAFETY: the program's, and this thread has the turn.
    let begun = unsafe {
        let free = word.read_volatile() == 0;
        if free {
            word.write_volatile(BEGUN);
        }
        free
    };
    drop(inside);
    begun
}
