//! A batch of functions as a crate, and the memory that they start with.

use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use super::ast::{ARENA, Function, Input, POINTERS, SENTINEL};
use super::write::write;

/// Where the memory of the first function is; that of the others follows.
pub const BASE: u64 = 0x6a00_0000_0000;

/// The compiler takes modules for its units.
const MODULES: usize = 16;

const SUPPORT: &str = include_str!("batch/support.rs");
const USES: &str = "\
use std::ptr::{copy, copy_nonoverlapping, write_bytes};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, fence};

use crate::support::*;

";

/// What is in the memory of a function at first, if it is at `base`.
pub fn initial_memory(input: &Input, base: u64) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(input.seed);
    let mut memory: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(ARENA).collect();
    // Half of it is twice there, to be compared.
    memory.copy_within(..ARENA / 4, ARENA / 2);
    for (slot, &to) in input.stored.iter().enumerate() {
        memory[POINTERS + slot * 8..][..8].copy_from_slice(&(base + to as u64).to_le_bytes());
    }
    memory[SENTINEL] = 1;
    memory
}

/// Writes the crate, which runs its tasks with the dagsan-task at `task`. `profiles` goes into its
/// manifest. Files that would be the same are left alone; if the note is another, the crate is compiled anew.
pub fn write_batch(
    directory: &Path,
    task: &Path,
    profiles: &str,
    note: &str,
    functions: &[Function],
) -> io::Result<()> {
    let manifest = format!(
        "[package]\nname = \"marks\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\ndagsan-task = {{ path = {:?} }}\n\n[workspace]\n\n{profiles}",
        task.display().to_string(),
    );
    let mut modules = vec![format!("//! Functions of this batch.\n\n{USES}"); MODULES];
    let mut cases = String::new();
    for (number, function) in functions.iter().enumerate() {
        let module = number % MODULES;
        modules[module] += &write(function, &format!("f{number}"));
        modules[module] += "\n";
        let Input { pointers, numbers, flags, .. } = &function.input;
        let hash_outside = function.hash_outside;
        _ = writeln!(
            cases,
            "    Case {{ function: m{module}::f{number}, pointers: {pointers:?}, numbers: {numbers:?}, flags: {flags}, \
             hash_outside: {hash_outside} }},",
        );
    }
    let mut main = format!(
        "//! Random functions. The arguments are the file of their memory, and that of what they show.\n//! {note}\n\n\
         #![feature(portable_simd, repr_simd)]\n\
         // No batch needs everything, and no function all that it is given.\n\
         #![allow(warnings)]\n\n",
    );
    for module in 0..MODULES {
        _ = writeln!(main, "mod m{module};");
    }
    _ = write!(
        main,
        "mod support;\n\nuse support::Case;\n\nstatic CASES: &[Case] = &[\n{cases}];\n\n\
         fn main() {{\n    support::main(CASES);\n}}\n"
    );
    fs::create_dir_all(directory.join("src"))?;
    let modules = modules.into_iter().enumerate().map(|(number, text)| (format!("src/m{number}.rs"), text));
    let files = [
        ("Cargo.toml".to_owned(), manifest),
        ("src/main.rs".to_owned(), main),
        ("src/support.rs".to_owned(), SUPPORT.to_owned()),
    ];
    for (name, text) in files.into_iter().chain(modules) {
        let path = directory.join(name);
        if fs::read_to_string(&path).ok().as_deref() != Some(&text) {
            fs::write(&path, text)?;
        }
    }
    Ok(())
}
