//! Where the compiler runs passes over a module: the library is called in the place of `PassManager<Module>::run`.
//!
//! clang and rustc call it through the dynamic linker; what LLVM calls inside of itself stays its own. A compiler that does not is not changed.

use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::OnceLock;

use crate::later::{self, Stage};
use crate::llvm::Module;
use crate::{Run, fail, original, outside, sections};

/// `llvm::PassManager<llvm::Module>::run(llvm::Module&, llvm::AnalysisManager<llvm::Module>&)`.
const ENTRY: &CStr = c"_ZN4llvm11PassManagerINS_6ModuleENS_15AnalysisManagerIS1_JEEEJEE3runERS1_RS3_";

/// What is called instead of it.
///
/// # Safety
///
/// LLVM calls it, as it would call the original.
#[unsafe(export_name = "_ZN4llvm11PassManagerINS_6ModuleENS_15AnalysisManagerIS1_JEEEJEE3runERS1_RS3_")]
pub unsafe extern "C" fn run(
    result: *mut c_void,
    passes: *mut c_void,
    module: *mut c_void,
    analyses: *mut c_void,
) -> *mut c_void {
    static ORIGINAL: OnceLock<Run> = OnceLock::new();
    // What panics leaves nothing behind that is looked at again: the compiler ends.
    let done = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the function of that name, which has such arguments as the pass's.
        let original = *ORIGINAL.get_or_init(|| unsafe { original(ENTRY) });
        let Some(module) = NonNull::new(module) else {
            fail("LLVM has called the passes of a module without one")
        };
        // SAFETY: a `llvm::Module` of the LLVM in this process.
        let named = unsafe { Module::from_raw(module) };
        sections::tell(crate::llvm(), named);
        outside::keep(crate::llvm(), named);
        // SAFETY: the arguments are those of LLVM, for the function of that name.
        let run = |result, passes| unsafe { original(result, passes, module.as_ptr(), analyses) };
        match later::next_stage() {
            None => run(result, passes),
            Some(Stage::First) => later::without_marks(|| run(result, passes)),
            Some(Stage::Second(simplify)) => {
                // SAFETY: the pipeline is one of modules, and the analyses are those of this one.
                unsafe { later::with_marks(crate::llvm(), named, analyses, simplify, run) };
                run(result, passes)
            }
        }
    }));
    done.unwrap_or_else(|_| fail("the pass has panicked: see above; please report it"))
}
