//! What code outside of link-time optimisation needs of a program.
//!
//! With fat link-time optimisation rustc makes one module of a program and of the standard library, and says that all of it is internal to the module but
//! for what C can name. DagSan's runtime is linked beside that module, as it was compiled (`dagsan`, `beside`), and uses the same standard library: those
//! functions and variables are made visible again, to what is linked into the program and to nobody else. It has to be done before any
//! pass is run, as LLVM removes what is internal and not used, and changes how it is called.
//!
//! A name that the module does not have is the linker's business.

use std::env;
use std::ffi::CString;
use std::fs;
use std::sync::OnceLock;

use crate::fail;
use crate::llvm::{Llvm, Module, linkage, visibility};

/// The variable that names the file of the names, one a line.
const VARIABLE: &str = "DAGSAN_OUTSIDE";

/// Makes visible what is needed of a module.
pub fn keep(llvm: &Llvm, module: Module) {
    for name in names() {
        let found = llvm.function_named(module, name).or_else(|| llvm.global_named(module, name));
        if let Some(found) = found.filter(|&found| llvm.linkage(found) == linkage::INTERNAL) {
            llvm.set_linkage(found, linkage::EXTERNAL);
            llvm.set_visibility(found, visibility::HIDDEN);
        }
    }
}

/// The names; none if nothing is linked beside the program.
fn names() -> &'static [CString] {
    static NAMES: OnceLock<Vec<CString>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let Some(file) = env::var_os(VARIABLE) else { return Vec::new() };
        let read = fs::read_to_string(&file);
        let text = read.unwrap_or_else(|error| fail(&format!("{}: {error}", file.display())));
        text.lines().filter_map(|line| CString::new(line).ok()).collect()
    })
}
