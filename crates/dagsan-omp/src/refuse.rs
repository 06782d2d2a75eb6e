//! What is not there: an error that names the construct and its line, before anything goes wrong.

use std::ffi::{CStr, c_char};

use dagsan_rt::team;

/// Where a construct is in the source, as clang tells it.
#[repr(C)]
pub struct Ident {
    reserved: i32,
    pub flags: i32,
    more: [i32; 2],
    /// `;file;function;line;column;;`
    source: *const c_char,
}

/// Set for loops over sections.
pub const SECTIONS: i32 = 0x400;

impl Ident {
    /// `file:line`, as far as it is known.
    ///
    /// # Safety
    ///
    /// The pointer is null or clang's.
    unsafe fn describe(ident: *const Ident) -> String {
        // SAFETY: the caller's promise.
        let source = unsafe {
            ident.as_ref().filter(|ident| !ident.source.is_null()).map(|ident| CStr::from_ptr(ident.source))
        };
        let text = source.map(CStr::to_string_lossy).unwrap_or_default();
        let mut parts = text.split(';').skip(1);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(file), Some(_), Some(line)) if !file.is_empty() && file != "unknown" => {
                format!(" at {file}:{line}")
            }
            _ => String::new(),
        }
    }
}

/// The program cannot go on.
pub fn refuse(text: &str) -> ! {
    team::refuse(text)
}

/// A construct that is not there.
///
/// # Safety
///
/// `ident` is null or clang's.
pub unsafe fn construct(what: &str, ident: *const Ident) -> ! {
    // SAFETY: the caller's promise.
    let place = unsafe { Ident::describe(ident) };
    refuse(&format!("`{what}`{place} cannot be checked yet: see docs/openmp.md for what can"))
}

macro_rules! not_there {
    ($($name:ident: $what:literal;)*) => { $(
        /// Is not there.
        ///
        /// # Safety
        ///
        /// As clang calls it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(ident: *const Ident) {
            // SAFETY: the first argument is where it is.
            unsafe { construct($what, ident) }
        }
    )* };
}

not_there! {
    __kmpc_threadprivate_cached: "threadprivate with -fnoopenmp-use-tls";
    __kmpc_threadprivate_register: "threadprivate with -fnoopenmp-use-tls";
    __kmpc_taskloop_5: "taskloop with a strict grainsize or num_tasks";
    __kmpc_init_allocator: "allocators of one's own";
    __kmpc_dist_dispatch_init_4: "distribute with an open schedule";
    __kmpc_dist_dispatch_init_8: "distribute with an open schedule";
    __kmpc_dist_dispatch_init_4u: "distribute with an open schedule";
    __kmpc_dist_dispatch_init_8u: "distribute with an open schedule";
}
