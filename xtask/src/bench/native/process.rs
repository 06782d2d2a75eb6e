//! One run of a program: what it printed, how it ended, and how much memory it had at most.

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

/// A run that is over.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    /// The most memory it had at a time, in bytes. The system begins with what this process had when it started the
    /// other, so that nothing smaller than xtask itself (some MiB) can be seen.
    pub peak: u64,
    /// Processor time, in seconds.
    pub cpu: f64,
}

/// Runs the program to its end. What it says on standard error is seen.
pub fn run(command: &mut Command) -> Result<Ended> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    let mut stdout = String::new();
    let pipe = child.stdout.as_mut().context("the output of the program is not here")?;
    pipe.read_to_string(&mut stdout).with_context(|| format!("cannot read what {name} prints"))?;
    let (status, usage) = wait(child.id()).with_context(|| format!("cannot wait for {name}"))?;
    let peak = u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024;
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    Ok(Ended { status, stdout, peak, cpu })
}

/// Waits for a child, which nobody else waits for, and asks what it used: the standard library does not.
fn wait(child: u32) -> io::Result<(ExitStatus, libc::rusage)> {
    let child = libc::pid_t::try_from(child).map_err(io::Error::other)?;
    loop {
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: both pointers are to locals of the right types, which the call may write to.
        if unsafe { libc::wait4(child, &mut status, 0, usage.as_mut_ptr()) } == child {
            // SAFETY: the call has written it; and all of it being zero would be a value too.
            return Ok((ExitStatus::from_raw(status), unsafe { usage.assume_init() }));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_told_as_it_was() {
        let ended = run(Command::new("sh").args(["-c", "echo hello; exit 3"])).unwrap();
        assert_eq!((ended.stdout.as_str(), ended.status.code()), ("hello\n", Some(3)));
        assert!(ended.peak > 100_000, "{}", ended.peak);
        assert!(run(&mut Command::new("./no such program")).is_err());
    }
}
