//! What native programs are made of: memory, task constructs and accesses. Compiled in the crates that are written only, whose module
//! `programs` says what the code of a body is, `Code`, and how it is run.
//!
//! A program's memory is leaked: what is alive at the end of the process is not freed by a task. Pointers pass through
//! `black_box` before every access, so that the compiler can neither leave one out nor put two together.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::process::ExitCode;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;

use dagsan_task::{Future, Promise};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::op::Sizes;
use crate::programs::{Code, run};

type Procedure = dagsan_task::Procedure<'static>;
type Finish = dagsan_task::Scope<'static>;
type RayonScope = rayon::Scope<'static>;
type ThreadScope = std::thread::Scope<'static, 'static>;

/// The body of a task.
#[derive(Clone, Copy)]
pub enum Body {
    Plain(Code),
    Procedure(Code),
}

impl Body {
    fn run(self, memory: &'static Memory, scope: Scope) {
        match self {
            Body::Plain(body) => run(body, memory, scope, Here(None)),
            Body::Procedure(body) => dagsan_task::procedure(|procedure| run(body, memory, scope, Here::of(procedure))),
        }
    }
}

/// A finish around the present task, if there is one: permission to start tasks in the innermost.
#[derive(Clone, Copy)]
pub enum Scope {
    None,
    Task(*const Finish),
    Rayon(*const RayonScope),
    Threads(*const ThreadScope),
}

// SAFETY: it goes to tasks of the same thread, or to threads, which that finish or scope joins.
unsafe impl Send for Scope {}
// SAFETY: as above.
unsafe impl Sync for Scope {}

impl Scope {
    fn of(finish: &Finish) -> Scope {
        Scope::Task(finish)
    }

    fn finish(self) -> &'static Finish {
        match self {
            // SAFETY: it is around the present task, so it is open.
            Scope::Task(finish) => unsafe { &*finish },
            Scope::None | Scope::Rayon(_) | Scope::Threads(_) => panic!("a program that starts futures runs in a finish"),
        }
    }
}

/// The procedure that the present code is in, if it is in one.
#[derive(Clone, Copy)]
pub struct Here(Option<*const Procedure>);

// SAFETY: used on the same thread, by what the task does.
unsafe impl Send for Here {}
// SAFETY: as above.
unsafe impl Sync for Here {}

impl Here {
    fn of(procedure: &Procedure) -> Here {
        Here(Some(procedure))
    }

    fn procedure(self) -> &'static Procedure {
        // SAFETY: it is used while the procedure runs.
        unsafe { &*self.0.expect("who spawns or syncs is a procedure") }
    }

    pub fn sync(self) {
        self.procedure().sync();
    }
}

#[repr(align(64))]
struct Static(UnsafeCell<[u8; 1 << 16]>);

// SAFETY: raced on by design, by tasks of one thread.
unsafe impl Sync for Static {}

static STATIC: Static = Static(UnsafeCell::new([0; 1 << 16]));

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line(#[allow(dead_code)] [u8; 64]);

/// What the tasks of a program share.
pub struct Memory {
    arena: *mut u8,
    pages: *mut u8,
    promises: Vec<Promise<()>>,
    futures: Vec<UnsafeCell<Option<Future<()>>>>,
    mutexes: Vec<Mutex<()>>,
    rw_locks: Vec<RwLock<()>>,
    syncs: Vec<AtomicU64>,
    threads: Vec<UnsafeCell<Option<JoinHandle<()>>>>,
    flags: Vec<(Mutex<bool>, Condvar)>,
    channels: Vec<(Sender<()>, Receiver<()>)>,
    pools: [ThreadPool; 2],
}

// SAFETY: used by one thread; or by many, of which each takes the handles that were made for it, and each receiver is one's.
unsafe impl Sync for Memory {}

unsafe extern "C" {
    fn mmap(start: *mut c_void, size: usize, protection: c_int, flags: c_int, file: c_int, at: i64) -> *mut c_void;
    fn munmap(start: *mut c_void, size: usize) -> c_int;
}

const READ_WRITE: c_int = 3;
const PRIVATE_ANONYMOUS: c_int = 0x22;
const FIXED: c_int = 0x10;

/// Maps pages, at `start` if that is not null.
fn map(start: *mut u8, size: usize) -> *mut u8 {
    let flags = PRIVATE_ANONYMOUS | if start.is_null() { 0 } else { FIXED };
    // SAFETY: new pages, or some in the place of others that were just unmapped.
    let pages = unsafe { mmap(start.cast(), size, READ_WRITE, flags, -1, 0) };
    assert_ne!(pages as isize, -1, "no memory for the pages");
    pages.cast()
}

/// Runs the program, of which the body of the main task is given. Prints where its memory is, and whether it panicked.
pub fn main(program: Result<(Sizes, Body), String>) -> ExitCode {
    let (sizes, main) = match program {
        Ok(program) => program,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let memory: &'static Memory = Box::leak(Box::new(Memory {
        arena: match sizes.heap {
            true => Box::leak(vec![Line([0; 64]); sizes.arena.div_ceil(64)].into_boxed_slice()).as_mut_ptr().cast(),
            false => STATIC.0.get().cast(),
        },
        pages: if sizes.pages > 0 { map(std::ptr::null_mut(), sizes.pages) } else { std::ptr::null_mut() },
        promises: (0..sizes.promises).map(|_| Promise::new()).collect(),
        futures: (0..sizes.futures).map(|_| UnsafeCell::new(None)).collect(),
        mutexes: (0..sizes.locks).map(|_| Mutex::new(())).collect(),
        rw_locks: (0..sizes.locks).map(|_| RwLock::new(())).collect(),
        // Not 0: an operation that makes 0 something else takes a lock.
        syncs: (0..sizes.syncs).map(|_| AtomicU64::new(1)).collect(),
        threads: (0..sizes.futures).map(|_| UnsafeCell::new(None)).collect(),
        flags: (0..sizes.promises).map(|_| (Mutex::new(false), Condvar::new())).collect(),
        channels: (0..sizes.promises).map(|_| channel()).collect(),
        pools: [(); 2].map(|()| ThreadPoolBuilder::new().num_threads(2).build().expect("there are no threads")),
    }));
    assert!(sizes.heap || sizes.arena <= size_of::<Static>(), "the static is too small");
    println!("arena {}", memory.arena as usize);
    println!("pages {}", memory.pages as usize);
    // Deadlocks are expected, and reported elsewhere.
    set_hook(Box::new(|_| {}));
    let run = || match sizes.finish {
        true => dagsan_task::finish(|finish| main.run(memory, Scope::of(finish))),
        false => main.run(memory, Scope::None),
    };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
        let text = panic.downcast_ref::<String>().map_or("something", |text| text);
        println!("panicked {}", text.lines().next().unwrap_or(""));
    }
    ExitCode::SUCCESS
}

// ---- tasks ---------------------------------------------------------------------------------------

impl Memory {
    #[track_caller]
    pub fn spawn_async(&'static self, scope: Scope, body: Body) {
        match scope {
            // SAFETY: it is around the present task, so it is open.
            Scope::Rayon(scope) => unsafe { &*scope }.spawn(move |scope| body.run(self, Scope::Rayon(scope))),
            _ => scope.finish().spawn(move |finish| body.run(self, Scope::of(finish))),
        }
    }

    #[track_caller]
    pub fn spawn(&'static self, scope: Scope, here: Here, body: Body) {
        drop(here.procedure().spawn(move || body.run(self, scope)));
    }

    /// Leaves the handle in its slot: whoever gets the future comes after that.
    #[track_caller]
    pub fn future(&'static self, scope: Scope, name: usize, body: Body) {
        let future = scope.finish().future(move |finish| body.run(self, Scope::of(finish)));
        // SAFETY: one thread, and nobody has a reference into an empty slot.
        unsafe { self.futures[name].get().write(Some(future)) };
    }

    #[track_caller]
    pub fn get_future(&self, name: usize) {
        // SAFETY: one thread, and a slot is written once, before.
        let future = unsafe { &*self.futures[name].get() };
        future.as_ref().expect("a future is got before its handle is there").get();
    }

    pub fn finish(&'static self, here: Here, body: Code) {
        dagsan_task::finish(|finish| run(body, self, Scope::of(finish), here));
    }

    /// A pool that the present task is not in: it runs what it is given at once.
    fn elsewhere(&self) -> &ThreadPool {
        let [first, second] = &self.pools;
        if first.current_thread_has_pending_tasks().is_some() { second } else { first }
    }

    pub fn scope(&'static self, here: Here, body: Code) {
        rayon::scope(|scope| run(body, self, Scope::Rayon(scope), here));
    }

    pub fn scope_elsewhere(&'static self, here: Here, body: Code) {
        self.elsewhere().in_place_scope(|scope| run(body, self, Scope::Rayon(scope), here));
    }

    #[track_caller]
    pub fn join(&'static self, scope: Scope, here: Here, first: Body, second: Code) {
        rayon::join(|| first.run(self, scope), || run(second, self, scope, here));
    }

    #[track_caller]
    pub fn detach(&'static self, body: Body) {
        self.elsewhere().spawn(move || body.run(self, Scope::None));
    }

    pub fn call(&'static self, scope: Scope, body: Code) {
        dagsan_task::procedure(|procedure| run(body, self, scope, Here::of(procedure)));
    }

    pub fn isolated(&'static self, scope: Scope, body: Code) {
        dagsan_task::isolated(|| run(body, self, scope, Here(None)));
    }

    /// Does nothing if it is set.
    pub fn set(&self, name: usize) {
        _ = self.promises[name].try_set(());
    }

    #[track_caller]
    pub fn get(&self, name: usize) {
        self.promises[name].get();
    }
}

// ---- threads -------------------------------------------------------------------------------------

unsafe extern "C" {
    #[link_name = "write"]
    fn write_to(file: c_int, from: *const u8, size: usize) -> isize;
}

/// Tells that the statement of this number is made. Not by what the standard library has for that, which has locks of its own.
#[cfg_attr(dagsan, sanitize(thread = "off"))]
#[inline(never)]
pub fn tell(number: usize) {
    let mut text = *b"         \n";
    let (mut at, mut rest) = (text.len() - 1, number);
    loop {
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 || at == 2 {
            break;
        }
    }
    text[0] = b't';
    // SAFETY: so many bytes.
    unsafe { write_to(1, text.as_ptr(), text.len()) };
}

impl Memory {
    pub fn thread_scope(&'static self, here: Here, body: Code) {
        std::thread::scope(|scope| {
            // SAFETY: whoever uses it is joined by it, and what it lends lives for ever.
            let scope = unsafe { std::mem::transmute::<&std::thread::Scope<'_, '_>, &'static ThreadScope>(scope) };
            run(body, self, Scope::Threads(scope), here);
        });
    }

    #[track_caller]
    pub fn scoped(&'static self, scope: Scope, body: Body) {
        let Scope::Threads(threads) = scope else { panic!("a scoped thread has a scope") };
        // SAFETY: it is around the present thread, so it is open.
        unsafe { &*threads }.spawn(move || body.run(self, scope));
    }

    /// Leaves the handle in its slot: whoever joins the thread comes after that.
    #[track_caller]
    pub fn thread(&'static self, name: usize, body: Body) {
        let thread = std::thread::spawn(move || body.run(self, Scope::None));
        // SAFETY: nobody has a reference into an empty slot.
        unsafe { self.threads[name].get().write(Some(thread)) };
    }

    #[track_caller]
    pub fn join_thread(&self, name: usize) {
        // SAFETY: a slot is written once, before, and read once.
        let Some(thread) = (unsafe { (*self.threads[name].get()).take() }) else {
            // Whoever shrinks a program wants to know, and other threads may wait for this one.
            println!("panicked a thread is joined before its handle is there");
            std::process::exit(0);
        };
        thread.join().expect("a thread has panicked");
    }

    #[track_caller]
    pub fn detach_thread(&'static self, body: Body) {
        drop(std::thread::spawn(move || body.run(self, Scope::None)));
    }

    pub fn notify(&self, name: usize) {
        let (flag, changed) = &self.flags[name];
        *flag.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }

    pub fn wait(&self, name: usize, number: usize) {
        let (flag, changed) = &self.flags[name];
        let mut is_set = flag.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            tell(number);
            if *is_set {
                return;
            }
            is_set = changed.wait(is_set).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub fn send(&self, name: usize) {
        self.channels[name].0.send(()).expect("the receiver is never dropped");
    }

    pub fn receive(&self, name: usize, number: usize) {
        tell(number);
        self.channels[name].1.recv().expect("the sender is never dropped");
        tell(number);
    }
}

// ---- locks and atomics ---------------------------------------------------------------------------

macro_rules! atomic_accesses {
    ($($load:ident $store:ident $Atomic:ident $T:ty;)*) => {
        impl Memory {
            $(
                pub fn $load(&self, at: *mut u8) {
                    // SAFETY: an aligned word of the arena or the pages.
                    black_box(unsafe { $Atomic::from_ptr(black_box(at).cast::<$T>()) }.load(Relaxed));
                }

                pub fn $store(&self, at: *mut u8) {
                    // SAFETY: as above.
                    unsafe { $Atomic::from_ptr(black_box(at).cast::<$T>()) }.store(2, Relaxed);
                }
            )*
        }
    };
}

atomic_accesses! {
    atomic_load_1 atomic_store_1 AtomicU8 u8;
    atomic_load_2 atomic_store_2 AtomicU16 u16;
    atomic_load_4 atomic_store_4 AtomicU32 u32;
    atomic_load_8 atomic_store_8 AtomicU64 u64;
}

impl Memory {
    pub fn mutex(&self, name: usize) -> MutexGuard<'_, ()> {
        self.mutexes[name].lock().expect("nothing panics with a lock held")
    }

    pub fn exclusive(&self, name: usize) -> RwLockWriteGuard<'_, ()> {
        self.rw_locks[name].write().expect("nothing panics with a lock held")
    }

    pub fn shared(&self, name: usize) -> RwLockReadGuard<'_, ()> {
        self.rw_locks[name].read().expect("nothing panics with a lock held")
    }

    pub fn sync(&self, name: usize) -> &AtomicU64 {
        &self.syncs[name]
    }
}

/// Takes a lock that nobody else knows.
pub fn own_lock(own: &Mutex<()>) -> MutexGuard<'_, ()> {
    black_box(own).lock().expect("nothing panics with a lock held")
}

pub fn store(word: &AtomicU64) {
    black_box(word).store(1, Release);
}

pub fn update(word: &AtomicU64) {
    black_box(word).fetch_add(1, Release);
}

pub fn load(word: &AtomicU64) {
    black_box(black_box(word).load(Acquire));
}

pub fn acquire_update(word: &AtomicU64) {
    black_box(word).fetch_add(1, AcqRel);
}

// ---- accesses ------------------------------------------------------------------------------------

impl Memory {
    #[inline(always)]
    pub fn arena(&self, at: usize) -> *mut u8 {
        self.arena.wrapping_add(at)
    }

    #[inline(always)]
    pub fn pages(&self, at: usize) -> *mut u8 {
        self.pages.wrapping_add(at)
    }

    /// The pages become others.
    pub fn free(&self, at: usize, size: usize) {
        let pages = self.pages(at);
        // SAFETY: pages of this program, which are mapped again before anybody uses them.
        assert_eq!(unsafe { munmap(pages.cast(), size) }, 0);
        map(pages, size);
    }
}

#[inline(never)]
pub fn read<T: Copy>(at: *mut u8) {
    read_here::<T>(at);
}

#[inline(never)]
pub fn write<T: Copy + From<u8>>(at: *mut u8) {
    write_here::<T>(at);
}

#[inline(always)]
pub fn read_here<T: Copy>(at: *mut u8) {
    // SAFETY: here and below, in the arena or the pages, which the program has alone, on one thread; aligned, or said not
    // to be. All bits are values of the types that are used.
    black_box(unsafe { black_box(at).cast::<T>().read() });
}

#[inline(always)]
pub fn write_here<T: Copy + From<u8>>(at: *mut u8) {
    // SAFETY: see `read_here`.
    unsafe { black_box(at).cast::<T>().write(black_box(T::from(1))) };
    black_box(at);
}

#[inline(never)]
pub fn read_unaligned<T: Copy>(at: *mut u8) {
    // SAFETY: see `read_here`.
    black_box(&unsafe { black_box(at).cast::<T>().read_unaligned() });
}

#[inline(never)]
pub fn write_unaligned<T: Copy>(at: *mut u8) {
    // SAFETY: see `read_here`; all of the types that are used may be zero.
    unsafe { black_box(at).cast::<T>().write_unaligned(black_box(std::mem::zeroed())) };
    black_box(at);
}

/// By value: in one register, or two, of whatever size that is.
#[inline(never)]
fn value<const LEN: usize>(value: [u8; LEN]) -> [u8; LEN] {
    black_box(value)
}

#[inline(never)]
pub fn read_value<const LEN: usize>(at: *mut u8) {
    // SAFETY: see `read_here`; an array of bytes is always aligned.
    black_box(value(unsafe { black_box(at).cast::<[u8; LEN]>().read() }));
}

#[inline(never)]
pub fn write_value<const LEN: usize>(at: *mut u8) {
    // SAFETY: as above.
    unsafe { black_box(at).cast::<[u8; LEN]>().write(value([1; LEN])) };
    black_box(at);
}

#[inline(never)]
pub fn read_each<const LEN: usize>(at: *mut u8) {
    let at = black_box(at);
    let mut sum = 0u8;
    for offset in 0..LEN {
        // SAFETY: see `read_here`.
        sum = sum.wrapping_add(unsafe { at.add(offset).read() });
    }
    black_box(sum);
}

#[inline(never)]
pub fn write_each<const LEN: usize>(at: *mut u8) {
    let at = black_box(at);
    for offset in 0..LEN {
        // SAFETY: see `read_here`.
        unsafe { at.add(offset).write(offset as u8) };
    }
    black_box(at);
}

#[inline(never)]
pub fn read_slice(at: *mut u8, len: usize) {
    // SAFETY: see `read_here`; nobody else runs while the slice is there.
    let slice = unsafe { std::slice::from_raw_parts(black_box(at), black_box(len)) };
    black_box(slice.to_vec());
}

#[inline(never)]
pub fn write_slice(at: *mut u8, len: usize) {
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts_mut(black_box(at), black_box(len)) }.fill(black_box(3));
    black_box(at);
}
