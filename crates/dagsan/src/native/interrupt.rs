//! Ctrl-C while programs run: what was found until then is told.
//!
//! The terminal sends the signal to all processes. The command and its runners note it, and go on until they have told what they know. A
//! program would be gone before its runtime could write anything; so it starts with the signal ignored, and its runner ends it by SIGABRT, at which the runtime reports. A
//! program that handles the signal itself has some seconds to do so. A second Ctrl-C waits for nothing.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

/// So long a program that handles the signal has time.
const GRACE: Duration = Duration::from_secs(3);

/// The exit code after Ctrl-C, as shells have it.
pub const CODE: u8 = 130;

/// How often it was pressed.
static PRESSED: AtomicU32 = AtomicU32::new(0);

/// The programs that run: each is here from its start until just before it is waited for to its end, so that its number is its own.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// From now on Ctrl-C ends the programs that run, and not this process.
pub fn listen() -> Result<()> {
    ctrlc::set_handler(|| {
        // Relaxed: the number is all there is to see.
        let before = PRESSED.fetch_add(1, Ordering::Relaxed);
        match before {
            0 => thread::spawn(|| end_all(GRACE)),
            1 => thread::spawn(|| end_all(Duration::ZERO)),
            _ => std::process::exit(CODE.into()),
        };
    })
    .context("cannot listen for Ctrl-C")
}

/// Was it pressed?
pub fn pressed() -> bool {
    PRESSED.load(Ordering::Relaxed) > 0
}

/// Starts a program that leaves Ctrl-C to us.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    // SAFETY: between fork and exec only a system call is made, which allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| match libc::signal(libc::SIGINT, libc::SIG_IGN) {
            libc::SIG_ERR => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let mut running = lock();
    let child = command.spawn()?;
    running.push(child.id());
    Ok(child)
}

/// Waits until the program has ended, and leaves it to be waited for.
pub fn until_end(child: &Child) -> io::Result<()> {
    loop {
        // SAFETY: a plain call; the information goes to a value of ours, which may be all zeroes before.
        let ended = unsafe {
            let mut information: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, child.id(), &raw mut information, libc::WEXITED | libc::WNOWAIT)
        };
        let error = io::Error::last_os_error();
        if ended != 0 && error.kind() == io::ErrorKind::Interrupted {
            continue;
        }
        lock().retain(|&running| running != child.id());
        return if ended == 0 { Ok(()) } else { Err(error) };
    }
}

/// The programs that run. A thread that panicked in between has left a list all the same.
fn lock() -> std::sync::MutexGuard<'static, Vec<u32>> {
    RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn end_all(grace: Duration) {
    let end = |which: &dyn Fn(u32) -> bool| {
        for &program in lock().iter().filter(|&&program| which(program)) {
            // SAFETY: a plain call. The program was not waited for yet, so the number is still its own.
            unsafe { libc::kill(program as libc::pid_t, libc::SIGABRT) };
        }
    };
    if !grace.is_zero() {
        end(&|program| !handles_interrupts(program));
        thread::sleep(grace);
    }
    end(&|_| true);
}

/// Does the program have a handler of its own for the signal?
fn handles_interrupts(program: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{program}/status")).unwrap_or_default();
    is_caught(&status, libc::SIGINT)
}

fn is_caught(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_are_seen_in_the_status() {
        assert!(is_caught("Name:\tx\nSigCgt:\t0000000000000002\n", libc::SIGINT));
        assert!(!is_caught("SigCgt:\t0000000000000020\n", libc::SIGINT));
        assert!(!is_caught("", libc::SIGINT));
    }
}
