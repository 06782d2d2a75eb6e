//! DagSan inside the compiler: a mark on every memory access.
//!
//! ThreadSanitizer's pass, which rustc and clang run over every function that is to be checked, has hooks for plain accesses of
//! 1, 2, 4, 8 and 16 bytes, and no others. This library is preloaded into the compiler, where it takes the place of that
//! pass's entry: it marks all plain accesses, and what the pass leaves out, and then lets the pass do the rest, which are
//! atomic operations and long copies.
//!
//! ```text
//!   rustc ──► ThreadSanitizerPass::run ══ here ══► read ──► model ──► plan: cover, sink, merge
//!             (in libLLVM, through the              │                   │
//!              dynamic linker)                      └───────────────────┴► emit: marks in line, ranges behind loops, calls
//!                                                                            └► the original: atomics, memcpy
//! ```
//!
//! Where rustc optimises a module twice, all of this waits for the second time (`later`).
//!
//! It works through LLVM's C interface, looked up in the compiler's own process (`llvm`), so it needs no headers, and is for
//! all versions that have these functions. A compiler that has LLVM inside, instead of as a shared library, never calls it.
//! What may be left out, and why, is in docs/pass.md.
//!
//! It cannot see what inline assembly does, nor intrinsics of the target that `intrinsics` does not know; where such are
//! executed, the program says so itself (`__dagsan_unseen`).

mod addresses;
mod assembly;
mod bytes;
mod choice;
mod compiled;
mod contracts;
mod counts;
mod cover;
mod effects;
mod elim;
mod emit;
mod exits;
mod flow;
mod inline;
mod intrinsics;
mod later;
mod library;
mod llvm;
mod merge;
mod model;
mod module;
mod outside;
mod places;
mod plan;
mod pointers;
mod preload;
mod read;
mod rise;
mod sections;
mod sharing;
mod sink;
mod sum;
#[path = "../../dagsan-rt/src/tables.rs"]
mod tables;
mod thunks;

use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::OnceLock;

use counts::Counts;
use elim::Eliminations;
use emit::Emitter;
use llvm::{Llvm, Value};
use plan::Plan;
use read::Simple;

/// `llvm::ThreadSanitizerPass::run(llvm::Function&, llvm::AnalysisManager<llvm::Function>&)`.
const ENTRY: &CStr = c"_ZN4llvm19ThreadSanitizerPass3runERNS_8FunctionERNS_15AnalysisManagerIS1_JEEE";

/// The original: where its result goes, the pass, the function, the analyses.
type Run = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, *mut c_void) -> *mut c_void;

/// What is called instead of it.
///
/// # Safety
///
/// LLVM calls it, as it would call the original.
#[unsafe(export_name = "_ZN4llvm19ThreadSanitizerPass3runERNS_8FunctionERNS_15AnalysisManagerIS1_JEEE")]
pub unsafe extern "C" fn run(
    result: *mut c_void,
    pass: *mut c_void,
    function: *mut c_void,
    analyses: *mut c_void,
) -> *mut c_void {
    // What panics leaves nothing behind that is looked at again: the compiler ends.
    let done = catch_unwind(AssertUnwindSafe(|| {
        let (llvm, original) = machinery();
        let Some(function) = NonNull::new(function) else {
            fail("LLVM has called the pass without a function")
        };
        // SAFETY: a `llvm::Function` is a `llvm::Value`, which is its first base.
        let function = unsafe { Value::from_raw(function) };
        // SAFETY: the arguments are those of LLVM, for the function of that name.
        let original = || unsafe { original(result, pass, function.into_raw(), analyses) };
        if later::waits() {
            return later::leave(llvm, function, original);
        }
        let changed = instrument(llvm, function);
        if let Some(emitter) = &changed {
            emitter.announce();
        }
        let result = original();
        if let Some(emitter) = changed {
            emitter.finish();
        }
        result
    }));
    done.unwrap_or_else(|_| fail("the pass has panicked: see above; please report it"))
}

/// Puts hooks into a function. None if nothing was changed.
fn instrument(llvm: &'static Llvm, function: Value) -> Option<Emitter> {
    thunks::expect(llvm, function);
    let wanted = Eliminations::wanted().unwrap_or_else(|error| fail(&error.to_string()));
    choice::undo(llvm, function);
    let found = read::read(llvm, function, wanted.local);
    if found.is_empty() {
        effects::forget(llvm, function);
        return None;
    }
    let plan = Plan::of(&found.model, wanted);
    let counts = Counts::wanted().unwrap_or_else(|error| fail(&error.to_string()));
    let emitter = Emitter::new(llvm, function, counts);
    emitter.count_accesses(&found, &plan);
    // First, as blocks are cut into parts by what is in line.
    emitter.exits(&found, &plan.sunk);
    let in_place = (0..found.simple.len()).filter(|&mark| !plan.gone[mark]);
    let in_place = in_place.map(|number| (number, &found.model.marks[number]));
    // First: what follows a call, marks included, is put behind what tells of it.
    for call in &found.library_calls {
        emitter.library_call(call);
    }
    for (number, mark) in in_place.chain(plan.merged.iter().map(|one| (one.last, &one.mark))) {
        let Simple { instruction, pointer, offset } = found.simple[number];
        let from_pointer = mark.at.constant.wrapping_sub(found.model.marks[number].at.constant);
        emitter.mark(instruction, pointer, from_pointer.wrapping_add(offset as i64), mark);
    }
    for access in &found.accesses {
        emitter.access(access);
    }
    for &plain in &found.plain {
        emitter.settle(plain);
    }
    for atomic in &found.atomics {
        emitter.atomic(atomic);
    }
    for &comparison in &found.comparisons {
        emitter.comparison(comparison);
    }
    for (instruction, what) in &found.unseen {
        emitter.unseen(*instruction, what);
    }
    emitter.tell_counts().unwrap_or_else(|error| fail(&error.to_string()));
    emitter.forget();
    effects::forget(llvm, function);
    Some(emitter)
}

/// LLVM's C interface and the original. Without them nothing can be compiled: code without hooks would look race-free.
fn machinery() -> (&'static Llvm, Run) {
    static ORIGINAL: OnceLock<Run> = OnceLock::new();
    // SAFETY: the function of that name, which LLVM declares so.
    (llvm(), *ORIGINAL.get_or_init(|| unsafe { original(ENTRY) }))
}

/// LLVM's C interface.
fn llvm() -> &'static Llvm {
    static FOUND: OnceLock<Llvm> = OnceLock::new();
    FOUND.get_or_init(|| Llvm::find().unwrap_or_else(|error| fail(&error.to_string())))
}

/// The function of LLVM's that this library has taken the place of.
///
/// # Safety
///
/// It has these arguments; a result that is not returned in registers goes where the first one says.
unsafe fn original(symbol: &CStr) -> Run {
    let Some(original) = look_up(symbol) else {
        fail("a function that the compiler has called is not there")
    };
    // SAFETY: the caller's promise.
    unsafe { std::mem::transmute::<*mut c_void, Run>(original) }
}

/// A function of LLVM's.
fn look_up(symbol: &CStr) -> Option<*mut c_void> {
    // SAFETY: a lookup by a text that ends with 0.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Ends the compiler.
fn fail(why: &str) -> ! {
    eprintln!("error: dagsan's instrumentation does not work in this compiler: {why}");
    // SAFETY: a plain call. Destructors of the compiler's other threads must not run beside them.
    unsafe { libc::_exit(101) }
}
