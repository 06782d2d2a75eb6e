//! The library leaves `LD_PRELOAD` once it is in the compiler proper: what the compiler starts (a linker) has no use for it.
//!
//! Programs in front of the compiler, such as rustup's, pass the variable on; they have no LLVM, which tells them apart.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::llvm;

/// The variable of the dynamic linker.
const VARIABLE: &str = "LD_PRELOAD";
/// The library's own file.
const FILE: &[u8] = b"libdagsan_pass.so";

/// The loader calls it. A test harness of this crate has no use for it.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

#[cfg_attr(test, expect(dead_code))]
extern "C" fn start() {
    let Some(value) = env::var_os(VARIABLE).filter(|_| llvm::is_here() && !is_driver()) else { return };
    let rest = without_us(&value);
    // SAFETY: the process has one thread while its libraries are initialised.
    unsafe {
        match rest.is_empty() {
            true => env::remove_var(VARIABLE),
            false => env::set_var(VARIABLE, rest),
        }
    }
}

/// clang starts itself again for each file that it compiles, if there is more to do: then the first argument says so.
fn is_driver() -> bool {
    let is_clang = env::current_exe()
        .is_ok_and(|path| path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"clang")));
    is_clang && std::fs::read("/proc/self/cmdline").is_ok_and(|line| !compiles(&line))
}

/// Is this the command line of the compiler proper? Arguments end in zeroes.
fn compiles(line: &[u8]) -> bool {
    line.split(|&byte| byte == 0).nth(1) == Some(b"-cc1")
}

/// What the user has in the list.
fn without_us(list: &OsStr) -> OsString {
    let entries = list.as_bytes().split(|byte| matches!(byte, b':' | b' '));
    let others = entries.filter(|entry| !entry.is_empty() && !entry.ends_with(FILE));
    OsString::from_vec(others.collect::<Vec<_>>().join(&b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_is_told_from_the_compiler_that_it_starts() {
        assert!(compiles(b"/usr/bin/clang\0-cc1\0-triple\0"));
        assert!(!compiles(b"clang-19\0-c\0-cc1\0") && !compiles(b"clang-19\0"));
    }

    #[test]
    fn what_the_user_preloads_stays() {
        for (list, rest) in [
            ("/x/libdagsan_pass.so", ""),
            ("/x/libdagsan_pass.so:/usr/lib/a.so", "/usr/lib/a.so"),
            ("a.so b.so:/x/libdagsan_pass.so", "a.so:b.so"),
            ("a.so", "a.so"),
            ("", ""),
        ] {
            assert_eq!(without_us(OsStr::new(list)), rest, "{list}");
        }
    }
}
