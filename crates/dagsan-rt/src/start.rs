//! The start of the runtime: before `main`, and before any task.

use std::process;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::exit;
use crate::layout;
use crate::log;
use crate::options::{Options, VARIABLE};
use crate::session::{self, Inside};
use crate::sites;
use crate::state::{ACTIVE, Shared};
use crate::threads;

/// Is there a session, and is this the process that it is for?
static ON: Shared<bool> = Shared::new(false);

/// Is the process being checked? Not before the runtime has started, and not in a process that was forked.
#[inline(always)]
pub fn is_on() -> bool {
    ON.get()
}

/// The frame of the function that this is inlined into; its return address is that of the code that called. The
/// runtime is compiled with frame pointers. If it is not, the value is nonsense, and nobody follows it
/// ([`crate::sites::walk`] looks before it goes).
#[inline(always)]
pub fn frame() -> usize {
    let frame: usize;
    // SAFETY: reads a register.
    unsafe { std::arch::asm!("mov {}, rbp", out(reg) frame, options(nomem, nostack, preserves_flags)) };
    frame
}

/// The loader calls it with the program's other constructors. A test harness of this crate has no use for it.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

#[cfg_attr(test, expect(dead_code))]
extern "C" fn start() {
    let Some(_inside) = Inside::enter() else { return };
    let text = std::env::var(VARIABLE).unwrap_or_default();
    let options = Options::parse(&text).unwrap_or_else(|error| refuse(&error.to_string()));
    if options.help {
        exit::say(&Options::describe());
        process::exit(0);
    }
    layout::reserve().unwrap_or_else(|error| refuse(&error.to_string()));
    log::reserve(sites::depth(options.stacks).is_some())
        .unwrap_or_else(|error| refuse(&format!("no memory for the access log: {error}")));
    session::start(options);
    threads::find_stack();
    exit::prepare();
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

/// In a forked process nothing is checked: its parent reports.
extern "C" fn forked() {
    ON.set(false);
    ACTIVE.set(false);
}
