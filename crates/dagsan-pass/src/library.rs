//! Functions of the standard library that order tasks or threads, and that are compiled without hooks: the program tells the runtime
//! when it calls them.
//!
//! They are known by their symbols, in either mangling. One that a version of the standard library does not have, or has inlined, is
//! not missed: what is inlined has hooks.

use std::ffi::CStr;

/// See the module's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// Completes a `Once`, or waits until another thread has.
    Once,
    /// Waits until another thread has completed a `Once`.
    OnceWaited,
    /// Waits until the thread is unparked.
    Park,
    /// Takes a lock that was not free at first.
    Contended,
    /// The same for reading.
    ContendedReader,
    /// A scoped thread is about to be created.
    ScopeEntered,
    /// The last thing that a scoped thread does: its scope waits for it.
    ScopeLeft,
    /// Uses standard input or output, which have locks. Code of the program may run under them.
    Streams,
    /// Gives the lock of standard output to the program, which gives it back itself.
    StreamLocked,
    /// Panics, or is about the hook of panics: the hook runs under a lock.
    Panics,
}

/// What of it a hook is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    Nothing,
    /// Its first argument.
    Argument,
    /// What it returns.
    Result,
}

/// What the function of that symbol is of these.
pub fn known(symbol: &str) -> &'static [Library] {
    let has = |part: &str| symbol.contains(part);
    // The last part of a name ends it, or is followed by its hash.
    let is = |name: &str| symbol.ends_with(name) || symbol.contains(&format!("{name}17h"));
    if has("4once5futex") && is("4Once4call") {
        &[Library::Once]
    } else if has("4once") && (is("4Once4wait") || is("4Once10wait_force")) {
        &[Library::OnceWaited]
    } else if has("3std6thread") && (is("4park") || is("12park_timeout")) {
        &[Library::Park]
    } else if has("5mutex5futex") && is("14lock_contended") || has("6rwlock5futex") && is("15write_contended")
    {
        &[Library::Contended]
    } else if has("6rwlock5futex") && is("14read_contended") {
        &[Library::ContendedReader]
    } else if has("3std6thread") && is("29increment_num_running_threads") {
        &[Library::ScopeEntered]
    } else if has("3std6thread") && is("29decrement_num_running_threads") {
        &[Library::ScopeLeft]
    } else if has("3std2io5stdio") && (is("6Stdout4lock") || is("6Stderr4lock")) {
        &[Library::Streams, Library::StreamLocked]
    } else if has("3std2io5stdio") || has("std..io..stdio..") {
        &[Library::Streams]
    } else if panics(symbol) {
        &[Library::Panics]
    } else {
        &[]
    }
}

/// Does the function of that symbol panic, or set the hook of panics? In the libraries many do; these are what code of the program calls.
fn panics(symbol: &str) -> bool {
    let is = |name: &&str| symbol.ends_with(*name) || symbol.contains(&format!("{name}17h"));
    let of_hook = ["8set_hook", "9take_hook", "20rust_panic_with_hook", "15panic_with_hook"];
    let of_checks = ["13unwrap_failed", "13expect_failed", "13assert_failed", "12handle_error"];
    let of_std = symbol.contains("3std9panicking");
    symbol.contains("4core9panicking")
        || of_std && (symbol.contains("11begin_panic") || of_hook.iter().any(is))
        || of_checks.iter().any(is)
        || symbol.contains("4core") && (symbol.contains("_fail17h") || symbol.ends_with("_fail"))
        || symbol.contains("4core4cell") && symbol.contains("panic_already")
}

impl Library {
    /// Is it told before the call, and not after it?
    pub fn is_told_before(self) -> bool {
        matches!(self, Library::ScopeEntered | Library::ScopeLeft | Library::Streams | Library::Panics)
    }

    /// What is called then, and what it is given.
    pub fn hook(self) -> (&'static CStr, Given) {
        match self {
            Library::Once => (c"__dagsan_once_called", Given::Nothing),
            Library::OnceWaited => (c"__dagsan_once_waited", Given::Argument),
            Library::Park => (c"__dagsan_parked", Given::Nothing),
            Library::Contended => (c"__dagsan_contended", Given::Argument),
            Library::ContendedReader => (c"__dagsan_contended_reader", Given::Argument),
            Library::ScopeEntered => (c"__dagsan_scope_entered", Given::Argument),
            Library::ScopeLeft => (c"__dagsan_scope_left", Given::Argument),
            Library::Streams | Library::Panics => (c"__dagsan_in_order", Given::Nothing),
            Library::StreamLocked => (c"__dagsan_stream_locked", Given::Result),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_in_either_mangling() {
        let std = "NtCsjrHSEGnQ3l9_3std";
        let cases: Vec<(String, &[Library])> = vec![
            (format!("_RNvMs0_NtNtNt{std}3sys4sync4once5futexNtB5_4Once4call"), &[Library::Once]),
            ("_ZN3std3sys4sync4once5futex4Once4call17h0123456789abcdefE".to_owned(), &[Library::Once]),
            (format!("_RNvMs0_NtNtNt{std}4sync6poison4onceNtB5_4Once10wait_force"), &[Library::OnceWaited]),
            (format!("_RNvMs0_NtNtNt{std}3sys4sync4once5futexNtB5_4Once5state"), &[]),
            (format!("_RNvNt{std}6thread9functions4park"), &[Library::Park]),
            ("_ZN3std6thread4park17h0123456789abcdefE".to_owned(), &[Library::Park]),
            ("_ZN3std6thread6Thread6unpark17h0123456789abcdefE".to_owned(), &[]),
            (
                format!("_RNvMNtNtNt{std}3sys4sync5mutex5futexNtB2_5Mutex14lock_contended"),
                &[Library::Contended],
            ),
            (
                format!("_RNvMNt{std}6thread6scopedNtB2_9ScopeData29decrement_num_running_threads"),
                &[Library::ScopeLeft],
            ),
            (format!("_RNvNt{std}2io5stdio6__print"), &[Library::Streams]),
            (
                format!("_RNvMs6_NtNt{std}2io5stdioNtB5_6Stdout4lock"),
                &[Library::Streams, Library::StreamLocked],
            ),
            (
                "_ZN58_$LT$std..io..stdio..Stdout$u20$as$u20$std..io..Write$GT$5flush17h0123456789abcdefE"
                    .to_owned(),
                &[Library::Streams],
            ),
            (format!("_RNvNt{std}2io5impls4read"), &[]),
            ("_RNvNtCsg1yEAyWTQGo_4core9panicking9panic_fmt".to_owned(), &[Library::Panics]),
            ("_RNvNtCsg1yEAyWTQGo_4core6option13unwrap_failed".to_owned(), &[Library::Panics]),
            ("_RNvNtNtCsg1yEAyWTQGo_4core5slice5index16slice_index_fail".to_owned(), &[Library::Panics]),
            ("_ZN4core4cell22panic_already_borrowed17h0123456789abcdefE".to_owned(), &[Library::Panics]),
            (format!("_RNvNt{std}9panicking8set_hook"), &[Library::Panics]),
            (format!("_RNvNtNt{std}9panicking11panic_count17is_zero_slow_path"), &[]),
            ("_ZN3std9panicking12catch_unwind17h0123456789abcdefE".to_owned(), &[]),
        ];
        for (symbol, expected) in cases {
            assert_eq!(known(&symbol), expected, "{symbol}");
        }
    }
}
