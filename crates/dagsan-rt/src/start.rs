//! The start of the runtime: before `main`, and before any task.

use std::process;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use dagsan_findings::FINDINGS_FILE;

use crate::delays;
use crate::exit;
use crate::layout;
use crate::log;
use crate::options::{Options, VARIABLE};
use crate::session::{self, Inside};
use crate::sites;
use crate::state::{EXACT, Flag, Worker, root, run_for, set_active, set_root, worker};
use crate::threads;

/// What the user asked for.
static OPTIONS: OnceLock<Options> = OnceLock::new();

/// The options, for another session.
pub fn options() -> Options {
    OPTIONS.get().cloned().unwrap_or_default()
}

/// Is there a session, and is this the process that it is for?
static ON: Flag = Flag::new();

/// Is the process being checked? Not before the runtime has started, and not in a process that was forked.
#[inline(always)]
pub fn is_on() -> bool {
    ON.get()
}

/// The process that is checked.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The same as [`is_on`], of a process that may have been forked without our hearing of it: by a system call.
pub fn is_this_process() -> bool {
    is_on() && PROCESS.load(Relaxed) == process::id()
}

/// The frame of the function that this is inlined into; its return address is that of the code that called. The
/// runtime is compiled with frame pointers. If it is not, the value is nonsense, and nobody follows it
/// (`sites::walk` looks before it goes).
#[inline(always)]
pub fn frame() -> usize {
    let frame: usize;
    // SAFETY: reads a register.
    unsafe { std::arch::asm!("mov {}, rbp", out(reg) frame, options(nomem, nostack, preserves_flags)) };
    frame
}

/// The loader calls it before the program's other constructors, which may have hooks. A test harness of this crate has no use for it.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array.00001")]
static START: extern "C" fn() = start;

/// The tables are there from now on: hooks can run, and find that nothing is checked yet. For whoever can do so before the constructors of
/// shared libraries.
pub extern "C" fn reserve() {
    if root().base() == 0 {
        let base = layout::reserve().unwrap_or_else(|error| refuse(&error.to_string()));
        // SAFETY: the page below was reserved with the tables.
        set_root(unsafe { Worker::at(base) });
        run_for(root());
    }
}

#[cfg_attr(test, expect(dead_code))]
extern "C" fn start() {
    let Some(_inside) = Inside::enter() else { return };
    // First of all: what is allocated may come from an allocator of the program's, which has hooks.
    reserve();
    let text = std::env::var(VARIABLE).unwrap_or_default();
    let mut options = Options::parse(&text).unwrap_or_else(|error| refuse(&error.to_string()));
    // Now: at the end, another thread may be changing the variables.
    options.awaited = std::env::var_os(FINDINGS_FILE).map(Into::into);
    if options.help {
        exit::say(&Options::describe());
        process::exit(0);
    }
    EXACT.set(options.exact);
    log::reserve(root(), sites::depth(options.stacks).is_some())
        .unwrap_or_else(|error| refuse(&format!("no memory for the access log: {error}")));
    delays::set(options.delays);
    let _ = OPTIONS.set(options.clone());
    session::start(options);
    threads::find_stack();
    exit::prepare().unwrap_or_else(|error| refuse(&format!("no memory for the report: {error}")));
    threads::prepare();
    PROCESS.store(process::id(), Relaxed);
    // SAFETY: the functions may be called around a fork: they write some words.
    unsafe { libc::pthread_atfork(None, Some(has_forked), Some(forked)) };
    ON.set(true);
}

/// The program cannot be checked: a message, and the exit code for bad usage.
fn refuse(message: &str) -> ! {
    exit::say(&format!("dagsan: {message}\n"));
    process::exit(2)
}

static FORKS: AtomicU32 = AtomicU32::new(0);

/// How many processes were forked.
pub fn forks() -> u32 {
    FORKS.load(Relaxed)
}

extern "C" fn has_forked() {
    FORKS.fetch_add(1, Relaxed);
}

/// In a forked process nothing is checked: its parent reports. Nobody owns the session there, and nobody will.
extern "C" fn forked() {
    ON.set(false);
    set_active(false);
    worker().owner.leave();
}
