//! Threads: which one owns the session, where their stacks are, and which were started behind the tasks' backs.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};

use crate::session::{self, Inside};
use crate::sites::{self, DEPTH};
use crate::start;
use crate::state::OWNER;
use crate::tasks::Stack;

/// Makes this thread the owner of the session, if nobody is.
pub fn claim() -> bool {
    let claimed = OWNER.take().is_ok();
    if claimed && let Some(key) = KEY.get() {
        // If that fails, nobody hears of the thread's end, and the session stays with it.
        // SAFETY: a key of `prepare`; any value but null will do.
        unsafe { libc::pthread_setspecific(*key, std::ptr::from_ref(key).cast()) };
    }
    claimed
}

/// Nobody owns the session any more.
pub fn give_back() {
    OWNER.leave();
}

/// What the C library calls when a thread ends that has owned the session.
static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();

/// Sees to it that the end of the owner will be heard of.
pub fn prepare() {
    let mut key = 0;
    // SAFETY: writes the key; the function has the right type.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(ends)) } == 0 {
        let _ = KEY.set(key);
    }
}

unsafe extern "C" fn ends(_: *mut c_void) {
    if start::is_on() {
        session::thread_ends();
    }
}

thread_local! {
    static STACK: Cell<Stack> = const { Cell::new(Stack { low: 0, high: 0 }) };
    /// Where the thread was started, until it runs tasks.
    static UNCHECKED: Cell<Option<&'static Started>> = const { Cell::new(None) };
}

/// This thread runs tasks, and is checked.
pub fn is_checked() {
    if let Some(started) = UNCHECKED.take() {
        started.count.fetch_sub(1, Relaxed);
    }
}

/// The stack of this thread; empty if it is not known. The allocator may be called from inside of the functions that
/// would tell, so it is asked for when a thread starts.
pub fn stack() -> Stack {
    STACK.get()
}

/// Finds out where the stack of this thread is.
pub fn find_stack() {
    STACK.set(ask_for_stack());
}

fn ask_for_stack() -> Stack {
    let mut attributes = MaybeUninit::uninit();
    let (mut low, mut size): (*mut c_void, usize) = (std::ptr::null_mut(), 0);
    // SAFETY: the attributes are initialised by the first call, read by the second, destroyed by the third; nobody
    // looks at them if the first fails.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return Stack::default();
        }
        if libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut size) != 0 {
            (low, size) = (std::ptr::null_mut(), 0);
        }
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
    }
    Stack { low: low as usize, high: low as usize + size }
}

/// Threads that some code has started while something was checked.
///
/// A list that only grows, without a lock: who reports that there is no memory must be able to read it, whoever was
/// adding to it at that moment.
#[derive(Debug)]
pub struct Started {
    frames: Box<[usize]>,
    /// Only a number: relaxed.
    count: AtomicU32,
    next: Option<&'static Started>,
}

impl Started {
    /// The call stack that has started them.
    pub fn frames(&self) -> &[usize] {
        &self.frames
    }

    /// How many of them have run no tasks.
    pub fn unchecked(&self) -> u32 {
        self.count.load(Relaxed)
    }
}

/// The latest entry of the list.
static LATEST: AtomicPtr<Started> = AtomicPtr::new(std::ptr::null_mut());

/// All threads that were started, by their creators.
pub fn started() -> impl Iterator<Item = &'static Started> {
    // Acquire: what the entry holds was written before it came into the list.
    // SAFETY: null, or an entry, which is never freed.
    let latest = unsafe { LATEST.load(Acquire).as_ref() };
    std::iter::successors(latest, |started| started.next)
}

type Create =
    unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Entry, *mut c_void) -> c_int;
/// It may be left by `pthread_exit`, which unwinds.
type Entry = extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// Starts a thread, as the C library does, and takes note of it.
///
/// # Safety
///
/// As for the function of this name in the C library, which gets all arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    entry: Entry,
    argument: *mut c_void,
) -> c_int {
    static REAL: OnceLock<Option<Create>> = OnceLock::new();
    let real = *REAL.get_or_init(|| next(c"pthread_create".as_ptr()));
    let Some(real) = real else {
        // Without it no thread can be started; the caller hears that there are no resources.
        return libc::EAGAIN;
    };
    let Some(inside) = Inside::enter() else {
        // SAFETY: the caller's promise.
        return unsafe { real(thread, attributes, entry, argument) };
    };
    let started = note(start::frame());
    let begin = Box::into_raw(Box::new(Begin { entry, argument, started }));
    // SAFETY: the caller's promise; `begin` is for the thread, which takes it.
    let result = unsafe { real(thread, attributes, run, begin.cast()) };
    if result != 0 {
        // SAFETY: there is no thread to take it.
        drop(unsafe { Box::from_raw(begin) });
        started.count.fetch_sub(1, Relaxed);
    }
    drop(inside);
    result
}

/// What a thread is to run.
struct Begin {
    entry: Entry,
    argument: *mut c_void,
    started: &'static Started,
}

/// The first function of every thread.
extern "C-unwind" fn run(begin: *mut c_void) -> *mut c_void {
    let inside = Inside::enter();
    find_stack();
    // SAFETY: made by `pthread_create` for this thread.
    let Begin { entry, argument, started } = *unsafe { Box::from_raw(begin.cast::<Begin>()) };
    UNCHECKED.set(Some(started));
    drop(inside);
    entry(argument)
}

/// The function of that name that would have been called if the runtime did not define one.
fn next(name: *const c_char) -> Option<Create> {
    // SAFETY: the name is a C string, and if there is a function of that name it has that type.
    unsafe {
        let address = libc::dlsym(libc::RTLD_NEXT, name);
        std::mem::transmute::<*mut c_void, Option<Create>>(address)
    }
}

/// Takes note of a thread.
#[inline(never)]
fn note(frame: usize) -> &'static Started {
    let Stack { low, high } = stack();
    let mut frames = [0; DEPTH];
    let count = sites::walk(frame, low, high, &mut frames);
    let frames = &frames[..count];
    let entry = started().find(|started| *started.frames == *frames).unwrap_or_else(|| add(frames));
    entry.count.fetch_add(1, Relaxed);
    entry
}

/// Adds an entry. If two threads do so for the same call stack at once, there are two.
fn add(frames: &[usize]) -> &'static Started {
    let entry = Started { frames: frames.into(), count: AtomicU32::new(0), next: None };
    let entry = Box::into_raw(Box::new(entry));
    let mut latest = LATEST.load(Acquire);
    loop {
        // SAFETY: the entry is this thread's until it is in the list; the latest one is null or never freed.
        unsafe { (*entry).next = latest.as_ref() };
        // Release: see `started`. Acquire, if another entry has come: it will be the next one of this.
        match LATEST.compare_exchange(latest, entry, Release, Acquire) {
            // SAFETY: it is never freed.
            Ok(_) => return unsafe { &*entry },
            Err(other) => latest = other,
        }
    }
}
