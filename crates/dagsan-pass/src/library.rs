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
    /// Panics, or is about the hook of panics: the hook runs under a lock.
    Panics,
}

/// The function of that symbol, if it is one of these.
pub fn known(symbol: &str) -> Option<Library> {
    let has = |part: &str| symbol.contains(part);
    // The last part of a name ends it, or is followed by its hash.
    let is = |name: &str| symbol.ends_with(name) || symbol.contains(&format!("{name}17h"));
    if has("4once5futex") && is("4Once4call") {
        Some(Library::Once)
    } else if has("4once") && (is("4Once4wait") || is("4Once10wait_force")) {
        Some(Library::OnceWaited)
    } else if has("3std6thread") && (is("4park") || is("12park_timeout")) {
        Some(Library::Park)
    } else if has("5mutex5futex") && is("14lock_contended") || has("6rwlock5futex") && is("15write_contended")
    {
        Some(Library::Contended)
    } else if has("6rwlock5futex") && is("14read_contended") {
        Some(Library::ContendedReader)
    } else if has("3std6thread") && is("29increment_num_running_threads") {
        Some(Library::ScopeEntered)
    } else if has("3std6thread") && is("29decrement_num_running_threads") {
        Some(Library::ScopeLeft)
    } else if has("3std2io5stdio") || has("std..io..stdio..") {
        Some(Library::Streams)
    } else if panics(symbol) {
        Some(Library::Panics)
    } else {
        None
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

    /// What is called then, and whether it gets the first argument of the function.
    pub fn hook(self) -> (&'static CStr, bool) {
        match self {
            Library::Once => (c"__dagsan_once_called", false),
            Library::OnceWaited => (c"__dagsan_once_waited", true),
            Library::Park => (c"__dagsan_parked", false),
            Library::Contended => (c"__dagsan_contended", true),
            Library::ContendedReader => (c"__dagsan_contended_reader", true),
            Library::ScopeEntered => (c"__dagsan_scope_entered", true),
            Library::ScopeLeft => (c"__dagsan_scope_left", true),
            Library::Streams | Library::Panics => (c"__dagsan_in_order", false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_in_either_mangling() {
        let std = "NtCsjrHSEGnQ3l9_3std";
        for (symbol, expected) in [
            (format!("_RNvMs0_NtNtNt{std}3sys4sync4once5futexNtB5_4Once4call"), Some(Library::Once)),
            ("_ZN3std3sys4sync4once5futex4Once4call17h0123456789abcdefE".to_owned(), Some(Library::Once)),
            (
                format!("_RNvMs0_NtNtNt{std}4sync6poison4onceNtB5_4Once10wait_force"),
                Some(Library::OnceWaited),
            ),
            (format!("_RNvMs0_NtNtNt{std}3sys4sync4once5futexNtB5_4Once5state"), None),
            (format!("_RNvNt{std}6thread9functions4park"), Some(Library::Park)),
            ("_ZN3std6thread4park17h0123456789abcdefE".to_owned(), Some(Library::Park)),
            ("_ZN3std6thread6Thread6unpark17h0123456789abcdefE".to_owned(), None),
            (
                format!("_RNvMNtNtNt{std}3sys4sync5mutex5futexNtB2_5Mutex14lock_contended"),
                Some(Library::Contended),
            ),
            (
                format!("_RNvMNt{std}6thread6scopedNtB2_9ScopeData29decrement_num_running_threads"),
                Some(Library::ScopeLeft),
            ),
            (format!("_RNvNt{std}2io5stdio6__print"), Some(Library::Streams)),
            (
                "_ZN58_$LT$std..io..stdio..Stdout$u20$as$u20$std..io..Write$GT$5flush17h0123456789abcdefE"
                    .to_owned(),
                Some(Library::Streams),
            ),
            (format!("_RNvNt{std}2io5impls4read"), None),
            ("_RNvNtCsg1yEAyWTQGo_4core9panicking9panic_fmt".to_owned(), Some(Library::Panics)),
            ("_RNvNtCsg1yEAyWTQGo_4core6option13unwrap_failed".to_owned(), Some(Library::Panics)),
            ("_RNvNtNtCsg1yEAyWTQGo_4core5slice5index16slice_index_fail".to_owned(), Some(Library::Panics)),
            ("_ZN4core4cell22panic_already_borrowed17h0123456789abcdefE".to_owned(), Some(Library::Panics)),
            (format!("_RNvNt{std}9panicking8set_hook"), Some(Library::Panics)),
            (format!("_RNvNtNt{std}9panicking11panic_count17is_zero_slow_path"), None),
            ("_ZN3std9panicking12catch_unwind17h0123456789abcdefE".to_owned(), None),
        ] {
            assert_eq!(known(&symbol), expected, "{symbol}");
        }
    }
}
