//! Marks wait until a module has what it takes from others.
//!
//! rustc compiles a crate as several modules. It optimises each, with the sanitizer's pass at the end, and then each again, together with those
//! functions of the others that are worth inlining: thin-local link-time optimisation, which is cargo's default for `--release`.
//!
//! ```text
//!   rustc   simplify ── marks ──► import ── simplify ── vectorise, …
//!   here    simplify ───────────► import ── simplify ── marks ── vectorise, …
//! ```
//!
//! A call is a border, so a loop whose body calls a function of another module would keep its marks, and the function its own, though
//! both are one after the import: half of what a crate is made of are small generic functions, which rustc puts anywhere. And what has
//! no marks is simplified faster.
//!
//! - **First.** The functions that build rustc's pipelines are called through the dynamic linker (`LLVMRustOptimize`), each just before the
//!   pipeline is run by the same thread. Where it is the first one of two, the sanitizer's pass is called for functions that it leaves alone.
//! - **Second.** The pipeline is built in its two parts. The first part is run, then all functions get their marks, and what LLVM has
//!   found out of them is forgotten; the second part is what rustc gets, and runs.
//!
//! It is done if the command line says that there is a second time in this process, for all that is used of the module (`dagsan`, `wrapper`):
//! neither the linker nor another crate takes the module as it is after the first. Modules that wait are counted, and a compiler that
//! ends before all have had their marks fails. A compiler that lacks one of the functions does as it always does.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::env;
use std::ffi::{CStr, c_void};
use std::iter::successors;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

use crate::llvm::{Llvm, Module, OF_FUNCTION, Value, linkage};
use crate::{fail, instrument, look_up, thunks};

/// Says that there is a second time.
const VARIABLE: &str = "DAGSAN_LATER";

/// `llvm::PassBuilder::buildThinLTOPreLinkDefaultPipeline(llvm::OptimizationLevel)`.
const FIRST: &CStr = c"_ZN4llvm11PassBuilder34buildThinLTOPreLinkDefaultPipelineENS_17OptimizationLevelE";
/// `llvm::PassBuilder::buildThinLTODefaultPipeline(llvm::OptimizationLevel, llvm::ModuleSummaryIndex const*)`.
const SECOND: &CStr =
    c"_ZN4llvm11PassBuilder27buildThinLTODefaultPipelineENS_17OptimizationLevelEPKNS_18ModuleSummaryIndexE";
/// The parts of the second: `llvm::PassBuilder::buildModule…Pipeline(llvm::OptimizationLevel, llvm::ThinOrFullLTOPhase)`.
const SIMPLIFY: &CStr =
    c"_ZN4llvm11PassBuilder33buildModuleSimplificationPipelineENS_17OptimizationLevelENS_18ThinOrFullLTOPhaseE";
const OPTIMISE: &CStr =
    c"_ZN4llvm11PassBuilder31buildModuleOptimizationPipelineENS_17OptimizationLevelENS_18ThinOrFullLTOPhaseE";
/// `llvm::ThinOrFullLTOPhase::ThinLTOPostLink`.
const POST_LINK: usize = 2;
/// `llvm::AnalysisManager<llvm::Module>::clear()`: what is known of functions is forgotten with what is known of the module.
const CLEAR: &CStr = c"_ZN4llvm15AnalysisManagerINS_6ModuleEJEE5clearEv";

/// Builds a pipeline: where it goes, the builder, the level, and one argument more.
type Build = unsafe extern "C" fn(*mut c_void, *mut c_void, u64, usize) -> *mut c_void;

/// Room for a `llvm::PassManager`, which is a vector: it may be moved.
type Pipeline = [u64; 8];

/// What the next pipeline of this thread is.
pub enum Stage {
    First,
    /// The part before the marks.
    Second(Pipeline),
}

/// What is needed for a second time in two parts.
struct Parts {
    simplify: Build,
    optimise: Build,
    clear: unsafe extern "C" fn(*mut c_void),
}

thread_local! {
    static NEXT: RefCell<Option<Stage>> = const { RefCell::new(None) };
    /// Is this thread in a pipeline of the first kind?
    static WAITS: Cell<bool> = const { Cell::new(false) };
}

/// The modules whose functions have no marks yet.
static WAITING: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// None if marks are not to wait.
fn parts() -> Option<&'static Parts> {
    static PARTS: OnceLock<Option<Parts>> = OnceLock::new();
    let find = || {
        env::var_os(VARIABLE).filter(|value| value == "1")?;
        let (simplify, optimise, clear) = (look_up(SIMPLIFY)?, look_up(OPTIMISE)?, look_up(CLEAR)?);
        // SAFETY: LLVM's headers declare them so. What pipelines are is no plain data, so it is returned where the first argument
        // says; a level is two words of 32 bits, which come in a register.
        unsafe {
            Some(Parts {
                simplify: std::mem::transmute::<*mut c_void, Build>(simplify),
                optimise: std::mem::transmute::<*mut c_void, Build>(optimise),
                clear: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(clear),
            })
        }
    };
    PARTS.get_or_init(find).as_ref()
}

/// The function that this library has taken the place of.
fn original(symbol: &CStr) -> Build {
    let Some(found) = look_up(symbol) else { fail("a function that the compiler has called is not there") };
    // SAFETY: as above.
    unsafe { std::mem::transmute::<*mut c_void, Build>(found) }
}

/// Called instead of [`FIRST`].
///
/// # Safety
///
/// The compiler calls it, as it would call the original.
#[unsafe(export_name = "_ZN4llvm11PassBuilder34buildThinLTOPreLinkDefaultPipelineENS_17OptimizationLevelE")]
pub unsafe extern "C" fn build_first(
    result: *mut c_void,
    builder: *mut c_void,
    level: u64,
    rest: usize,
) -> *mut c_void {
    let done = catch_unwind(AssertUnwindSafe(|| {
        if parts().is_some() {
            NEXT.set(Some(Stage::First));
        }
        // SAFETY: the arguments are those of the compiler. The original does not look at the last one.
        unsafe { original(FIRST)(result, builder, level, rest) }
    }));
    done.unwrap_or_else(|_| fail("the pass has panicked: see above; please report it"))
}

/// Called instead of [`SECOND`].
///
/// # Safety
///
/// The compiler calls it, as it would call the original.
#[unsafe(export_name = "_ZN4llvm11PassBuilder27buildThinLTODefaultPipelineENS_17OptimizationLevelEPKNS_18ModuleSummaryIndexE")]
pub unsafe extern "C" fn build_second(
    result: *mut c_void,
    builder: *mut c_void,
    level: u64,
    index: usize,
) -> *mut c_void {
    let done = catch_unwind(AssertUnwindSafe(|| {
        let Some(parts) = parts() else {
            // SAFETY: the arguments are those of the compiler.
            return unsafe { original(SECOND)(result, builder, level, index) };
        };
        // With an index there is more to it, and without optimisation less; rustc gives none, and does not come here for that.
        if index != 0 || level == 0 {
            fail("a module is linked in a way that is not known");
        }
        let mut simplify: Pipeline = [0; 8];
        // SAFETY: the builder and the level are those of the compiler, and there is room for a pipeline.
        unsafe {
            (parts.simplify)(simplify.as_mut_ptr().cast(), builder, level, POST_LINK);
            NEXT.set(Some(Stage::Second(simplify)));
            (parts.optimise)(result, builder, level, POST_LINK)
        }
    }));
    done.unwrap_or_else(|_| fail("the pass has panicked: see above; please report it"))
}

/// What the pipeline is that this thread runs now.
pub fn next_stage() -> Option<Stage> {
    NEXT.take()
}

/// Runs a pipeline of the first kind.
pub fn without_marks<R>(run: impl FnOnce() -> R) -> R {
    WAITS.set(true);
    let result = run();
    WAITS.set(false);
    result
}

/// Are the marks of the functions that this thread compiles to wait?
pub fn waits() -> bool {
    WAITS.get()
}

/// Calls the sanitizer's pass for a function whose marks wait, so that it changes nothing.
pub fn leave<R>(llvm: &Llvm, function: Value, pass: impl FnOnce() -> R) -> R {
    let module = llvm.parent_module(function);
    let kind = |name: &str| llvm.attribute_kind(name);
    let has = |kind: u32| kind != 0 && llvm.attribute_at(function, OF_FUNCTION, kind).is_some();
    if has(kind("sanitize_thread")) {
        static AT_EXIT: Once = Once::new();
        // SAFETY: the function stays: the library is never unloaded.
        AT_EXIT.call_once(|| _ = unsafe { libc::atexit(none_waits) });
        let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(llvm.module_name(module));
    }
    let disabled = kind("disable_sanitizer_instrumentation");
    if has(disabled) {
        return pass();
    }
    let attribute = llvm.new_attribute(llvm.context(module), disabled, 0);
    llvm.add_attribute(function, OF_FUNCTION, attribute);
    let result = pass();
    llvm.remove_attribute(function, OF_FUNCTION, disabled);
    result
}

/// Runs the first part of a second time, and puts the marks in.
///
/// # Safety
///
/// `run` runs a pipeline over the module, with these analyses, and says where to put what they preserve.
pub unsafe fn with_marks(
    llvm: &'static Llvm,
    module: Module,
    analyses: *mut c_void,
    mut simplify: Pipeline,
    run: impl Fn(*mut c_void, *mut c_void) -> *mut c_void,
) {
    let Some(parts) = parts() else { return };
    // Room for a `llvm::PreservedAnalyses`, two sets of a few words, that nobody looks at.
    let mut preserved = [0u64; 64];
    // The passes stay in memory: a pipeline's destructor is in nobody's interface.
    run(preserved.as_mut_ptr().cast(), simplify.as_mut_ptr().cast());
    thunks::make(llvm, module);
    let functions = successors(llvm.first_function(module), |&function| llvm.next_function(function));
    // Copies of what other modules have are there to be inlined, and are not compiled.
    let is_own = |&function: &Value| {
        llvm.first_block(function).is_some() && llvm.linkage(function) != linkage::AVAILABLE_EXTERNALLY
    };
    // All at first: hooks are added to the module as well.
    let functions: Vec<Value> = functions.filter(is_own).collect();
    for function in functions {
        instrument(llvm, function);
    }
    // The original, as it is registered in LLVM. It takes no notice of copies either, which are thrown away.
    if let Err(why) = llvm.run_passes(module, c"function(tsan)") {
        fail(&why);
    }
    // SAFETY: they are the module's, and nobody uses what they have found: no pipeline is running.
    unsafe { (parts.clear)(analyses) };
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.remove(&llvm.module_name(module));
}

/// When the compiler ends: has every module got its marks? Code without them would look race-free.
extern "C" fn none_waits() {
    let waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(module) = waiting.first() {
        fail(&format!("{module} was not optimised a second time"));
    }
}
