//! Threads: which one owns the session, where their stacks are, and which were started behind the tasks' backs.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::session::Inside;
use crate::sites::{self, DEPTH};
use crate::start;
use crate::state::OWNER;
use crate::tasks::Stack;

/// Held while the owner changes.
static OWNERSHIP: Mutex<()> = Mutex::new(());

/// Makes `thread`, which is this one, the owner of the session, if nobody is.
pub fn claim(thread: usize) -> bool {
    let _held = OWNERSHIP.lock().unwrap_or_else(PoisonError::into_inner);
    let free = OWNER.get() == 0;
    if free {
        OWNER.set(thread);
    }
    free
}

/// Nobody owns the session any more.
pub fn give_back() {
    let _held = OWNERSHIP.lock().unwrap_or_else(PoisonError::into_inner);
    OWNER.set(0);
}

thread_local! {
    static STACK: Cell<Stack> = const { Cell::new(Stack { low: 0, high: 0 }) };
    /// The thread's entry in [`STARTED`], until it runs tasks.
    static UNCHECKED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// This thread runs tasks, and is checked.
pub fn is_checked() {
    if let Some(at) = UNCHECKED.take() {
        STARTED.lock().unwrap_or_else(PoisonError::into_inner)[at].count -= 1;
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

/// Threads that some code has started.
#[derive(Debug, Clone)]
pub struct Started {
    pub frames: Vec<usize>,
    /// How many of them have run no tasks.
    pub count: u32,
}

/// All threads that were started while something was checked, by their creators.
pub static STARTED: Mutex<Vec<Started>> = Mutex::new(Vec::new());

type Create =
    unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Entry, *mut c_void) -> c_int;
type Entry = extern "C" fn(*mut c_void) -> *mut c_void;

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
    }
    drop(inside);
    result
}

/// What a thread is to run.
struct Begin {
    entry: Entry,
    argument: *mut c_void,
    /// Its entry in [`STARTED`].
    started: usize,
}

/// The first function of every thread.
extern "C" fn run(begin: *mut c_void) -> *mut c_void {
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

/// Takes note of a thread, and returns its entry in [`STARTED`].
#[inline(never)]
fn note(frame: usize) -> usize {
    let Stack { low, high } = stack();
    let mut frames = [0; DEPTH];
    let count = sites::walk(frame, low, high, &mut frames);
    let frames = &frames[..count];
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = started.iter().position(|started| started.frames == frames);
    let at = known.unwrap_or_else(|| {
        started.push(Started { frames: frames.to_vec(), count: 0 });
        started.len() - 1
    });
    started[at].count += 1;
    at
}
