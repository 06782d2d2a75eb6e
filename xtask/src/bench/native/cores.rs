//! On which cores a program is measured.

use std::fmt;
use std::io;
use std::mem::{MaybeUninit, size_of};

use anyhow::{Context, Result};
use libc::cpu_set_t;

/// The cores that a program may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cores {
    /// All that there are, as its user would run it.
    All,
    /// One.
    One,
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cores::All => "as users run it",
            Cores::One => "on one core",
        })
    }
}

/// How many there are for this process.
pub fn count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Cores {
    /// What this thread starts until the result is dropped has these cores.
    pub fn confine(self) -> Result<Confined> {
        let before = affinity().context("cannot ask which cores there are")?;
        if self == Cores::One {
            // SAFETY: `first` reads a set that is there; the others write one that is ours.
            let one = unsafe {
                let mut one = MaybeUninit::<cpu_set_t>::zeroed().assume_init();
                libc::CPU_SET(first(&before), &mut one);
                one
            };
            set_affinity(&one).context("cannot keep to one core")?;
        }
        Ok(Confined { before })
    }
}

/// See [`Cores::confine`].
pub struct Confined {
    before: cpu_set_t,
}

impl Drop for Confined {
    fn drop(&mut self) {
        if let Err(error) = set_affinity(&self.before) {
            eprintln!("cannot go back to all cores: {error}");
        }
    }
}

fn first(cores: &cpu_set_t) -> usize {
    let limit = size_of::<cpu_set_t>() * 8;
    // SAFETY: below the size of the set.
    (0..limit).find(|&core| unsafe { libc::CPU_ISSET(core, cores) }).unwrap_or(0)
}

fn affinity() -> io::Result<cpu_set_t> {
    let mut cores = MaybeUninit::<cpu_set_t>::zeroed();
    // SAFETY: the call writes a set, and not more than its size.
    if unsafe { libc::sched_getaffinity(0, size_of::<cpu_set_t>(), cores.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was zero, which is a set, and has been written.
    Ok(unsafe { cores.assume_init() })
}

fn set_affinity(cores: &cpu_set_t) -> io::Result<()> {
    // SAFETY: the call reads a set.
    if unsafe { libc::sched_setaffinity(0, size_of::<cpu_set_t>(), cores) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_core_is_one_until_it_is_over() {
        let all = count();
        let confined = Cores::One.confine().unwrap();
        assert_eq!(count(), 1);
        drop(confined);
        assert_eq!(count(), all);
    }
}
