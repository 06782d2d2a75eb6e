//! Threads: how they begin, end and are joined, which one owns the session, and where their stacks are.
//!
//! A thread that a task creates is a task (`thread_tasks`), and takes turns with the others (`turns`). One that code without hooks
//! creates, while nothing is checked, is none: a test harness has its tests on threads of their own. Nor is one that is
//! created by those. If something is checked on another thread meanwhile, the verdict tells of them.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::num::NonZero;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::faults;
use crate::scopes;
use crate::session::{self, Inside};
use crate::sites::{self, DEPTH};
use crate::start;
use crate::state::{Flag, root, run_for, worker};
use crate::tasks::{Handle, Stack};
use crate::thread_tasks::Joined;
use crate::turns::{self, Seat};
use crate::waits;

/// Makes this thread the owner of the session, if nobody is.
pub fn claim() -> bool {
    let claimed = worker().owner.take().is_ok();
    if claimed {
        hear_of_end();
    }
    claimed
}

/// Nobody owns the session any more.
pub fn give_back() {
    worker().owner.leave();
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

/// How often the end of a thread is put off, so that what others do at that end comes before.
const ROUNDS: usize = 3;

unsafe extern "C" fn ends(round: *mut c_void) {
    if let (true, Some(key)) = (round.addr() < ROUNDS, KEY.get()) {
        // SAFETY: a key of `prepare`; the value is a number.
        unsafe { libc::pthread_setspecific(*key, std::ptr::without_provenance(round.addr() + 1)) };
        return;
    }
    if !start::is_on() {
        return;
    }
    match (turns::is_seated(), Inside::enter()) {
        (true, Some(inside)) => {
            if turns::is_mine_inside(&inside)
                && let Some(end) = END.take()
            {
                session::with_inside(&inside, |session| session.thread_ends(end));
            }
            turns::end(&inside);
        }
        (_, inside) => {
            drop(inside);
            scopes::thread_ends();
        }
    }
}

/// The end of this thread will be heard of.
fn hear_of_end() {
    if let Some(key) = KEY.get() {
        // If that fails, nobody hears of it, and the session stays with the thread.
        // SAFETY: a key of `prepare`; any value but null will do.
        unsafe { libc::pthread_setspecific(*key, std::ptr::without_provenance(1)) };
    }
}

thread_local! {
    static STACK: Cell<Stack> = const { Cell::new(Stack { low: 0, high: 0 }) };
    /// Where the thread was started, until it runs tasks.
    static UNCHECKED: Cell<Option<&'static Started>> = const { Cell::new(None) };
    /// Has code with hooks run on this thread?
    static HAS_HOOKS: Cell<bool> = const { Cell::new(false) };
    /// The scope of the thread that this one is about to create.
    static SCOPE: Cell<usize> = const { Cell::new(0) };
    /// How the end of the thread is told, if it is a task.
    static END: Cell<Option<End>> = const { Cell::new(None) };
    /// What the scope that this thread was counted out of consists of.
    static LEFT: Cell<[usize; SCOPE_WORDS]> = const { Cell::new([0; SCOPE_WORDS]) };
}

/// The standard library has no more in what it shares with the threads of a scope: how many run, whether one has panicked, the thread
/// that waits for them.
pub const SCOPE_WORDS: usize = 3;

/// This thread is about to be counted out of its scope, which consists of these words, and that was told.
pub fn has_left_scope(words: [usize; SCOPE_WORDS]) {
    END.set(END.get().map(|end| End { scope: None, ..end }));
    LEFT.set(words);
}

/// Is a word of this address what the thread sleeps on that opened the scope which the present one has left? It is woken by the last one
/// of a scope, whatever it waits for, and perhaps for another scope: that means nothing. What it waits for it is told by the count.
pub fn is_of_scope_left(address: usize) -> bool {
    LEFT.get().into_iter().any(|thread| (thread..thread.saturating_add(THREAD_ROOM)).contains(&address))
}

/// What the standard library keeps of a thread is smaller.
pub const THREAD_ROOM: usize = 96;

/// The standard library is about to create a thread of a scope.
#[unsafe(no_mangle)]
pub extern "C" fn __dagsan_scope_entered(scope: usize) {
    SCOPE.set(scope);
}

/// Has all code of the program hooks?
static ALL_HAVE_HOOKS: Flag = Flag::new();

/// All code of the program has hooks.
pub fn all_have_hooks() {
    ALL_HAVE_HOOKS.set(true);
}

/// Has it? So it is in C and C++.
#[inline(always)]
pub fn all_code_has_hooks() -> bool {
    ALL_HAVE_HOOKS.get()
}

/// Code with hooks runs on this thread.
#[inline(always)]
pub fn has_hooks() {
    HAS_HOOKS.set(true);
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
type Join = unsafe extern "C" fn(libc::pthread_t, *mut *mut c_void) -> c_int;
type Detach = unsafe extern "C" fn(libc::pthread_t) -> c_int;
/// It may be left by `pthread_exit`, which unwinds.
type Entry = extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// How the end of a thread is told.
#[derive(Debug, Clone, Copy)]
pub struct End {
    pub joined: Joined,
    /// Its scope, if it is the standard library's: that waits until all its threads were counted out, which may be done in code without
    /// hooks.
    pub scope: Option<NonZero<usize>>,
}

/// A thread that is a task.
#[derive(Debug, Clone, Copy)]
struct Checked {
    seat: Seat,
    end: End,
}

/// The threads that are tasks, and that nobody has joined or detached, by their names in the C library.
static JOINABLE: Mutex<Vec<(libc::pthread_t, Checked)>> = Mutex::new(Vec::new());

fn joinable(_: &Inside) -> MutexGuard<'static, Vec<(libc::pthread_t, Checked)>> {
    JOINABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread, as the C library does. It is a task, if its creator is.
///
/// # Safety
///
/// As for the function of this name in the C library, which gets all arguments.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    entry: Entry,
    argument: *mut c_void,
) -> c_int {
    session::in_order();
    static REAL: OnceLock<Option<Create>> = OnceLock::new();
    let real = *REAL.get_or_init(|| waits::next(c"pthread_create".as_ptr()));
    let Some(real) = real else {
        // Without it no thread can be started; the caller hears that there are no resources.
        return libc::EAGAIN;
    };
    let frame = start::frame();
    if start::is_on() && (HAS_HOOKS.get() || ALL_HAVE_HOOKS.get()) && !turns::is_mine() {
        scopes::adopt_for_thread();
    }
    let Some(inside) = Inside::enter() else {
        // SAFETY: the caller's promise.
        return unsafe { real(thread, attributes, entry, argument) };
    };
    let checked = session::called_inside(&inside, frame, |session| {
        session.options.threads.then(|| (session.tasks.handle(), session.create_thread(frame)))
    });
    let scope = NonZero::new(SCOPE.take());
    let checked = checked.flatten().map(|(creator, joined)| {
        turns::sit(&inside, creator);
        Checked { seat: turns::admit(&inside, joined.task), end: End { joined, scope } }
    });
    let started = checked.is_none().then(|| note(frame));
    let begin = Box::into_raw(Box::new(Begin { entry, argument, started, checked }));
    // SAFETY: the caller's promise; `begin` is for the thread, which takes it.
    let result = unsafe { real(thread, attributes, run, begin.cast()) };
    match (result, checked) {
        (0, Some(checked)) => {
            // SAFETY: the C library has written the name of the thread there.
            let name = unsafe { *thread };
            joinable(&inside).push((name, checked));
        }
        (0, None) => {}
        _ => {
            // SAFETY: there is no thread to take it.
            drop(unsafe { Box::from_raw(begin) });
            if let Some(started) = started {
                started.count.fetch_sub(1, Relaxed);
            }
            if let Some(checked) = checked {
                turns::dismiss(&inside, checked.seat);
            }
        }
    }
    drop(inside);
    result
}

/// Waits for the end of a thread, as the C library does. What it has done comes before what follows.
///
/// # Safety
///
/// As for the function of this name in the C library, which gets all arguments.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn pthread_join(thread: libc::pthread_t, result: *mut *mut c_void) -> c_int {
    session::in_order();
    static REAL: OnceLock<Option<Join>> = OnceLock::new();
    let Some(real) = *REAL.get_or_init(|| waits::next(c"pthread_join".as_ptr())) else { return libc::ESRCH };
    let frame = start::frame();
    let inside = if turns::is_seated() { Inside::enter() } else { None };
    let Some(inside) = inside else {
        // SAFETY: the caller's promise.
        return unsafe { real(thread, result) };
    };
    let known = joinable(&inside).iter().position(|(name, _)| *name == thread);
    let Some(at) = known else {
        let _away = turns::go_outside(&inside);
        // SAFETY: the caller's promise.
        return unsafe { real(thread, result) };
    };
    let (_, Checked { seat, end }) = joinable(&inside).swap_remove(at);
    while !turns::has_ended(&inside, seat) {}
    turns::forget(&inside, seat);
    // SAFETY: the caller's promise. It has had its last turn, and is about to end.
    let joined = unsafe { real(thread, result) };
    session::called_inside(&inside, frame, |session| session.join_thread(end.joined));
    joined
}

/// Nobody will join the thread.
///
/// # Safety
///
/// As for the function of this name in the C library, which gets all arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_detach(thread: libc::pthread_t) -> c_int {
    session::in_order();
    static REAL: OnceLock<Option<Detach>> = OnceLock::new();
    let Some(real) = *REAL.get_or_init(|| waits::next(c"pthread_detach".as_ptr())) else {
        return libc::ESRCH;
    };
    if turns::is_seated()
        && let Some(inside) = Inside::enter()
    {
        let known = joinable(&inside).iter().position(|(name, _)| *name == thread);
        if let Some(at) = known {
            let (_, Checked { seat, end }) = joinable(&inside).swap_remove(at);
            turns::forget(&inside, seat);
            session::with_inside(&inside, |session| session.detach_thread(end.joined));
        }
    }
    // SAFETY: the caller's promise.
    unsafe { real(thread) }
}

/// What a thread of a team is to run.
struct Hired {
    entry: extern "C" fn(usize),
    argument: usize,
    seat: Seat,
}

/// Starts a thread for a team, which has this task first. None if there can be no more threads.
pub fn hire(inside: &Inside, task: Handle, entry: extern "C" fn(usize), argument: usize) -> Option<Seat> {
    static REAL: OnceLock<Option<Create>> = OnceLock::new();
    let real = (*REAL.get_or_init(|| waits::next(c"pthread_create".as_ptr())))?;
    let seat = turns::admit(inside, task);
    let hired = Box::into_raw(Box::new(Hired { entry, argument, seat }));
    let mut name = 0;
    // SAFETY: `hired` is for the thread, which takes it; the name is written.
    let result = unsafe { real(&raw mut name, std::ptr::null(), run_hired, hired.cast()) };
    if result != 0 {
        // SAFETY: there is no thread to take it.
        drop(unsafe { Box::from_raw(hired) });
        turns::dismiss(inside, seat);
        return None;
    }
    Some(seat)
}

/// So large are the stacks of helpers. They have pages where they are used.
const HELPERS_STACK: usize = 256 << 20;

/// Starts a thread of the runtime's own. Has it been started?
pub fn start_helper(_: &Inside, entry: Entry, argument: *mut c_void) -> bool {
    let Some(real) = waits::next::<Create>(c"pthread_create".as_ptr()) else { return false };
    let mut attributes = MaybeUninit::uninit();
    let mut name = 0;
    // SAFETY: the attributes are initialised by the first call, and used by the others; the caller has the argument for this thread. It is told no signals of the
    // program's.
    unsafe {
        let attributes = attributes.as_mut_ptr();
        if libc::pthread_attr_init(attributes) != 0 {
            return false;
        }
        libc::pthread_attr_setstacksize(attributes, HELPERS_STACK);
        libc::pthread_attr_setdetachstate(attributes, libc::PTHREAD_CREATE_DETACHED);
        let started = real(&raw mut name, attributes, entry, argument) == 0;
        libc::pthread_attr_destroy(attributes);
        started
    }
}

/// The first function of a thread of a team.
extern "C-unwind" fn run_hired(hired: *mut c_void) -> *mut c_void {
    let inside = Inside::enter();
    run_for(root());
    find_stack();
    // SAFETY: made by `hire` for this thread.
    let Hired { entry, argument, seat } = *unsafe { Box::from_raw(hired.cast::<Hired>()) };
    if let Some(inside) = &inside {
        turns::begin(inside, seat);
    }
    let _for_faults = faults::Stack::new();
    drop(inside);
    entry(argument);
    std::ptr::null_mut()
}

/// What a thread is to run.
struct Begin {
    entry: Entry,
    argument: *mut c_void,
    started: Option<&'static Started>,
    checked: Option<Checked>,
}

/// The first function of every thread.
extern "C-unwind" fn run(begin: *mut c_void) -> *mut c_void {
    let inside = Inside::enter();
    // The system has it begin with what its creator runs for.
    run_for(root());
    find_stack();
    // SAFETY: made by `pthread_create` for this thread.
    let Begin { entry, argument, started, checked } = *unsafe { Box::from_raw(begin.cast::<Begin>()) };
    UNCHECKED.set(started);
    if let (Some(inside), Some(checked)) = (&inside, checked) {
        END.set(Some(checked.end));
        hear_of_end();
        turns::begin(inside, checked.seat);
        let stack = stack();
        session::called_inside(inside, start::frame(), |session| session.thread_begins(stack));
    }
    let _for_faults = all_code_has_hooks().then(faults::Stack::new);
    drop(inside);
    entry(argument)
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
