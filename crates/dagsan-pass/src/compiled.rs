//! Functions of the standard library that come compiled, and whose contract nobody has written (`contracts`): is a verdict to speak of them?
//!
//! What such a function reads and writes is not seen. So the program tells of it when it calls one, unless the function
//!
//! - gets no address, or does not return, which the thunk sees (`thunks`);
//! - is about threads, locks or waiting, which the runtime follows by what they do (`turns`, `sync`);
//! - does its work through values that belong to their user: formatters, iterators, guards, what is dropped;
//! - is part of a panic.
//!
//! Generic functions are left out, since most of them are compiled with the program: those that the library has compiled for itself are not
//! told of. So is all that has the older mangling, which does not say who has compiled a function.

/// Types and modules whose functions are none of a verdict's business.
const HARMLESS: &[&str] = &[
    // Formats: what is formatted has its own functions, which are told.
    "Arguments",
    "DebugInner",
    "DebugList",
    "DebugMap",
    "DebugSet",
    "DebugStruct",
    "DebugTuple",
    "Formatter",
    "PadAdapter",
    "fmt",
    "format",
    // Threads, locks and waiting.
    "Barrier",
    "Builder",
    "ChildSpawnHooks",
    "Condvar",
    "Context",
    "Mutex",
    "Once",
    "OnceState",
    "Parker",
    "RwLock",
    "ScopeData",
    "SpawnHooks",
    "Thread",
    "ThreadId",
    "Waker",
    "current",
    "functions",
    "futex",
    "lazy_lock",
    "linux_like",
    "local",
    "spawnhook",
    // Panics, and the program's start.
    "Backtrace",
    "Location",
    "PanicHookInfo",
    "catch_unwind",
    "panic",
    "panic_count",
    "panicking",
    "rt",
    // Iterators, and comparisons of copies of these.
    "Args",
    "ArgsOs",
    "CaseMappingIter",
    "CommandArgs",
    "CommandEnvs",
    "Components",
    "EscapeAscii",
    "EscapeDebug",
    "EscapeDefault",
    "EscapeUnicode",
    "SplitPaths",
    "ToLowercase",
    "ToUppercase",
    "Vars",
    "VarsOs",
    "path",
    // Guards of a function that is running.
    "BufGuard",
    "Guard",
    "PanicGuard",
    "SetLenOnDrop",
    "UnlockOnDrop",
    // Types without bytes, and what has only atomics.
    "AccessError",
    "AtomicBool",
    "AtomicI16",
    "AtomicI32",
    "AtomicI64",
    "AtomicI8",
    "AtomicIsize",
    "AtomicU16",
    "AtomicU32",
    "AtomicU64",
    "AtomicU8",
    "AtomicUsize",
    "ParseBoolError",
    "RecvError",
    "TryFromIntError",
    "dyn Any + Send",
    "dyn Any",
];

/// The standard streams have locks of their own, which are known; what they are given to read or write is a contract.
const STREAMS: &[&str] = &[
    "Stderr",
    "StderrLock",
    "StderrRaw",
    "Stdin",
    "StdinLock",
    "Stdout",
    "StdoutLock",
    "StdoutRaw",
    "stdio",
];

/// What of them has nothing of its own to say.
const OF_STREAMS: &[&str] = &["_eprint", "_print", "flush", "lock", "stderr", "stdin", "stdout", "write_fmt"];

/// Is a verdict to speak of a function with this symbol and this name, of which no contract is known?
pub fn is_told(symbol: &str, name: &str) -> bool {
    symbol.starts_with("_R") && !is_copy(symbol) && !is_generic(name) && !is_harmless(name)
}

fn is_harmless(name: &str) -> bool {
    let Some((owner, function)) = name.rsplit_once("::") else { return false };
    // Of `<&Stdout as Write>::flush` and of `<<String>::retain::SetLenOnDrop as Drop>::drop` the type.
    let of = owner.strip_prefix('<').unwrap_or(owner).split(" as ").next().unwrap_or(owner);
    let of = of.trim_end_matches('>').rsplit("::").next().unwrap_or(of).trim_start_matches(['<', '&']);
    // Integers as digits, in a buffer of the caller's. What is dropped is its user's, but for an iterator that changes where it is from.
    let is_dropped = function == "drop" && of != "Drain";
    function == "_fmt"
        || is_dropped
        || HARMLESS.contains(&of)
        || STREAMS.contains(&of) && OF_STREAMS.contains(&function)
}

/// Has it parameters of its own for types, or is it a closure of such a one?
fn is_generic(name: &str) -> bool {
    let is_before = |letter: char| letter.is_alphanumeric() || letter == ':' || letter == '_';
    name.contains('{')
        || name.char_indices().any(|(at, letter)| letter == '<' && name[..at].ends_with(is_before))
}

/// Has another crate compiled it than the one that it is of? Then that crate is the last part of its symbol: `Cs`, a hash, `_`, and its
/// name behind its length. Where the name has come before, there is a number between `B` and `_` instead.
fn is_copy(symbol: &str) -> bool {
    symbol.ends_with('_')
        || symbol.rmatch_indices("Cs").any(|(at, start)| is_crate(&symbol[at + start.len()..]))
}

/// Is this the hash and the name of a crate, and nothing else?
fn is_crate(text: &str) -> bool {
    let Some((hash, name)) = text.split_once('_') else { return false };
    let digits = name.len() - name.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
    let (length, name) = name.split_at(digits);
    let Ok(length) = length.parse::<usize>() else { return false };
    let has_length = |name: &str| name.len() == length;
    hash.bytes().all(|letter| letter.is_ascii_alphanumeric())
        && (has_length(name) || name.strip_prefix('_').is_some_and(has_length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_name_the_crate_that_has_made_them() {
        for (symbol, expected) in [
            ("_RNvMNtCsgEmfK2I1SDS_4core3stre3lenCsl9cSJb8w2Nz_2k5", true),
            ("_RNvMNtCsgEmfK2I1SDS_4core3stre3lenCsiXJ60OwKZ4Z_11dagsan_task", true),
            ("_RNvMNtCsgEmfK2I1SDS_4core3stre3lenCsiXJ60OwKZ4Z_4_2nd", true),
            ("_RNvMNtCsjrHSEGnQ3l9_3std4timeNtB2_7Instant7elapsed", false),
            ("_RNvCsjrHSEGnQ3l9_3std3run", false),
            (
                "_RNvXs0_NtCsjrHSEGnQ3l9_3std2fsNtB5_12TryLockErrorNtNtCsgEmfK2I1SDS_4core3fmt7Display3fmt",
                false,
            ),
        ] {
            assert_eq!(is_copy(symbol), expected, "{symbol}");
        }
    }

    #[test]
    fn what_belongs_to_its_user_is_not_told() {
        let told = |name| is_told("_RNvMNtCsjrHSEGnQ3l9_3std3run", name);
        for name in [
            "Formatter::debug_list",
            "<Formatter as Write>::write_char",
            "<<String>::retain::SetLenOnDrop as Drop>::drop",
            "Condvar::notify_one",
            "<&Stdout as Write>::flush",
            "<CStringArray as Drop>::drop",
            "stdio::_print",
            "u64::_fmt",
            "<RawVec<String>>::grow_one",
            "<Instant as Sub<Duration>>::sub",
            "Thread::new::{closure#0}",
        ] {
            assert!(!told(name), "{name}");
        }
        for name in
            ["Command::spawn", "<Drain as Drop>::drop", "<&Stdout as Write>::write_vectored", "Child::wait"]
        {
            assert!(told(name), "{name}");
        }
        assert!(!is_told("_ZN3std7process7Command5spawn17h0123456789abcdefE", "Command::spawn"));
    }
}
