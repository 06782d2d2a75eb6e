//! Who runs tasks, and the few words that the fast path and the assembly share with the rest of the runtime.
//!
//! A *worker* has tables (`layout`), logs (`log`) and a session (`holder`). A thread runs for one worker at a time, which the segment register gs
//! says to marks, and a thread-local variable to the runtime. The first worker, the *root*, is that of all threads which are no others'.
//!
//! ```text
//!   page below the base of the worker's tables
//!   ┌──────────────────────────────────────┬───────────────────────┐
//!   │ logs, …                               │ ACTIVE  SETTER  base   │ base: SEEN …
//!   └──────────────────────────────────────┴───────────────────────┘
//!                                             -24     -16     -8
//! ```

use std::cell::{Cell, UnsafeCell};
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};

use crate::caches::Caches;
use crate::holder::Holder;
use crate::layout::HEAD;
use crate::log::Log;
use crate::tables;

/// A word that one thread writes at a time, and that every thread may read at any time. The assembly reads it as a byte.
///
/// Relaxed throughout: a thread that does not run the tasks is content with the value of this or of an earlier moment,
/// and nothing that it reads afterwards depends on it.
#[repr(transparent)]
pub struct Flag(AtomicBool);

impl Flag {
    pub const fn new() -> Flag {
        Flag(AtomicBool::new(false))
    }

    #[inline(always)]
    pub fn get(&self) -> bool {
        self.0.load(Relaxed)
    }

    #[inline(always)]
    pub fn set(&self, value: bool) {
        self.0.store(value, Relaxed);
    }
}

/// The thread that has something, by its thread pointer; 0 if nobody has it. The assembly reads it as a word.
#[repr(transparent)]
pub struct Thread(AtomicUsize);

impl Thread {
    pub const fn nobody() -> Thread {
        Thread(AtomicUsize::new(0))
    }

    /// Who has it. Relaxed: a thread asks whether it is itself, and it alone changes the answer to that.
    #[inline(always)]
    pub fn get(&self) -> usize {
        self.0.load(Relaxed)
    }

    /// This thread has it from here on, unless somebody does, who is then named.
    #[inline(always)]
    pub fn take(&self) -> Result<(), usize> {
        // Acquire: what the thread before did with what it had is seen.
        self.0.compare_exchange(0, this_thread(), Acquire, Relaxed).map(drop)
    }

    /// That thread has it from here on. It, or nobody, had it so far.
    pub fn set(&self, thread: usize) {
        // Release: as for `leave`.
        self.0.store(thread, Release);
    }

    /// Nobody has it any more.
    #[inline(always)]
    pub fn leave(&self) {
        // Release: the next one sees what this one did.
        self.0.store(0, Release);
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Worker({:x})", self.base())
    }
}

/// There are so many workers at most.
pub const MOST_WORKERS: usize = 16;

/// See the module's documentation. The assembly in `miss`, and the code of `dagsan-pass`, know where some of its words are.
#[repr(C, align(4096))]
pub struct Worker {
    /// The logs of reads and of writes, of the running strand.
    pub(crate) logs: [UnsafeCell<Log>; 2],
    /// The thread that runs tasks for it.
    pub(crate) owner: Thread,
    /// The session of the part that it runs ahead; null if it is the root, or runs none.
    holder: AtomicPtr<Holder>,
    /// What it has asked lately; null if it is the root.
    caches: AtomicPtr<Caches>,
    /// Should what it runs ahead wait for its order before it goes on?
    wants_order: Flag,
    room: [u8; HEAD - 2 * size_of::<Log>() - 6 * size_of::<usize>() - 1],
    /// Can anything be parallel to what runs now? If not, accesses are not recorded.
    active: Flag,
    /// The thread whose marks may set bits of lines that are in the log of its strand: the one that runs the tasks, while something can be
    /// parallel. Nobody's if the code of each access is wanted ([`EXACT`]).
    setter: Thread,
    base: AtomicUsize,
}

// SAFETY: the logs are the owner's alone, the rest is atomic.
unsafe impl Sync for Worker {}

/// Where a field of a worker is, from the base of its tables on.
macro_rules! below {
    ($($field:tt)+) => {
        std::mem::offset_of!(Worker, $($field)+) as isize - HEAD as isize
    };
}

/// The logs, for the assembly.
pub(crate) const LOGS: isize = below!(logs);
/// The thread that runs the tasks, for the assembly.
pub(crate) const OWNER: isize = below!(owner);

const _: () = assert!(size_of::<Worker>() == HEAD);
const _: () = assert!(below!(setter) == tables::SETTER && below!(active) == tables::ACTIVE);

impl Worker {
    const fn new(base: usize) -> Worker {
        Worker {
            logs: [const { UnsafeCell::new(Log::NONE) }; 2],
            owner: Thread::nobody(),
            holder: AtomicPtr::new(ptr::null_mut()),
            caches: AtomicPtr::new(ptr::null_mut()),
            wants_order: Flag::new(),
            room: [0; _],
            active: Flag::new(),
            setter: Thread::nobody(),
            base: AtomicUsize::new(base),
        }
    }

    /// A worker whose tables have this base.
    ///
    /// # Safety
    ///
    /// The page below the base is mapped for it, and nobody uses it.
    pub unsafe fn at(base: usize) -> &'static Worker {
        let at = ptr::with_exposed_provenance_mut::<Worker>(base - HEAD);
        // SAFETY: the caller's promise.
        unsafe {
            at.write(Worker::new(base));
            &*at
        }
    }

    /// What it has asked lately.
    #[inline(always)]
    pub fn caches(&self) -> &'static Caches {
        // SAFETY: null, or what `set_caches` was given. It is set before anybody runs for the worker: relaxed.
        unsafe { self.caches.load(Relaxed).as_ref() }.unwrap_or_else(Caches::root)
    }

    /// It has these caches, and is not the root.
    pub fn set_caches(&self, caches: &'static Caches) {
        self.caches.store(ptr::from_ref(caches).cast_mut(), Relaxed);
    }

    /// Where its tables begin. It never changes: relaxed.
    #[inline(always)]
    pub fn base(&self) -> usize {
        self.base.load(Relaxed)
    }

    /// The session of what it runs.
    #[inline(always)]
    pub fn holder(&self) -> &Holder {
        // SAFETY: null, or what lives until another one is set, which the thread does that runs for this worker: relaxed.
        unsafe { self.holder.load(Relaxed).as_ref() }.unwrap_or_else(Holder::root)
    }

    /// It runs a part whose session that is; none if null.
    ///
    /// # Safety
    ///
    /// It lives until another one is set. Only the thread that runs for this worker sets it.
    pub unsafe fn set_holder(&self, holder: *mut Holder) {
        self.holder.store(holder, Relaxed);
        self.wants_order.set(false);
    }

    /// Does it run a part of the program ahead of its order?
    #[inline(always)]
    pub fn is_ahead(&self) -> bool {
        !self.holder.load(Relaxed).is_null()
    }

    /// Should that wait for its order before it goes on?
    #[inline(always)]
    pub fn wants_order(&self) -> bool {
        self.wants_order.get()
    }

    /// It should, as soon as it is not in its session any more.
    pub fn want_order(&self) {
        self.wants_order.set(self.is_ahead());
    }

    /// Is this the thread that runs its tasks?
    #[inline(always)]
    pub fn is_mine(&self) -> bool {
        self.owner.get() == this_thread()
    }

    /// Says whether anything can be parallel from here on to what it runs.
    #[inline(always)]
    pub fn set_active(&self, active: bool) {
        self.active.set(active);
        self.setter.0.store(if active && !EXACT.get() { self.owner.get() } else { 0 }, Relaxed);
    }
}

/// Before the runtime has started there are no tables.
static NOBODY: Worker = Worker::new(0);

static ROOT: AtomicPtr<Worker> = AtomicPtr::new((&raw const NOBODY).cast_mut());

/// The first worker.
#[inline(always)]
pub fn root() -> &'static Worker {
    // SAFETY: one of `set_root`, or none, and never freed. Relaxed: it is set before there is a second thread.
    unsafe { &*ROOT.load(Relaxed) }
}

/// This is the root.
pub fn set_root(worker: &'static Worker) {
    ROOT.store(ptr::from_ref(worker).cast_mut(), Relaxed);
}

thread_local! {
    /// The worker that this thread runs for, if it is not the root.
    static WORKER: Cell<Option<&'static Worker>> = const { Cell::new(None) };
}

/// The worker that this thread runs for.
#[inline(always)]
pub fn worker() -> &'static Worker {
    WORKER.get().unwrap_or_else(root)
}

/// This thread runs for that worker from here on.
pub fn run_for(worker: &'static Worker) {
    let is_root = ptr::eq(worker, root());
    WORKER.set(if is_root { None } else { Some(worker) });
    set_segment(worker.base());
}

/// Has marks find the tables at this base.
fn set_segment(base: usize) {
    const ARCH_SET_GS: usize = 0x1001;
    // SAFETY: nothing else on x86-64 Linux uses the register in a program.
    unsafe { crate::system::call(libc::SYS_arch_prctl, [ARCH_SET_GS, base, 0, 0, 0, 0]) };
}

/// Can anything be parallel to what this thread does for its worker?
#[inline(always)]
pub fn is_active() -> bool {
    worker().active.get()
}

/// Is the code of each access wanted, and not only that of the first to each line?
pub static EXACT: Flag = Flag::new();

/// Says whether anything can be parallel from here on to what this thread's worker does.
#[inline(always)]
pub fn set_active(active: bool) {
    worker().set_active(active);
}

/// This thread, by its thread pointer.
#[inline(always)]
pub fn this_thread() -> usize {
    let pointer: usize;
    // SAFETY: the x86-64 ABI keeps the thread pointer at fs:0.
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags, pure));
    };
    pointer
}

/// Is this the thread that runs the tasks of its worker?
#[inline(always)]
pub fn is_owner() -> bool {
    worker().is_mine()
}
