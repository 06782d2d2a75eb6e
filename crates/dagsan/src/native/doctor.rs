//! `cargo dagsan doctor`: says how programs are compiled here, and shows a race that is found.
//!
//! In the program one task reads a value of three bytes and another writes it. It tells of its tasks through the runtime's C
//! interface, so that it needs no other crate.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::exit::Code;
use crate::native::outcome::program_code;
use crate::native::pass::Pass;
use crate::native::status;

const MANIFEST: &str = "[package]\nname = \"three-bytes\"\nedition = \"2024\"\n\n[workspace]\n";

const PROGRAM: &str = r#"use std::hint::black_box;
use std::panic::Location;

#[allow(improper_ctypes)]
unsafe extern "C" {
    safe fn __dagsan_finish_begin();
    safe fn __dagsan_finish_end();
    safe fn __dagsan_spawn(kind: u32, place: &'static Location<'static>, low: usize, high: usize) -> u64;
    safe fn __dagsan_task_end();
    safe fn __dagsan_resume(task: u64);
    safe fn __dagsan_current() -> u64;
}

#[inline(never)]
fn inverted(pixel: [u8; 3]) -> [u8; 3] {
    black_box(pixel.map(|byte| !byte))
}

#[track_caller]
#[inline(never)]
fn task(below: usize, body: impl FnOnce()) {
    let parent = __dagsan_current();
    // On the stack of its parent, below the frame that it is started from.
    __dagsan_spawn(0, Location::caller(), 0, below);
    body();
    __dagsan_task_end();
    __dagsan_resume(parent);
}

fn main() {
    let pixels = black_box(vec![[0u8; 3]; 2]).leak().as_mut_ptr();
    let here = &raw const pixels as usize;
    __dagsan_finish_begin();
    task(here, move || unsafe { *pixels = inverted(*pixels.add(1)) });
    task(here, move || unsafe { *pixels.add(1) = inverted(black_box([7; 3])) });
    __dagsan_finish_end();
}
"#;

/// Tells, and shows.
pub fn run(pass: &Pass, directory: &Path, color: &str) -> Result<u8> {
    let (who, seen) = match pass {
        Pass::Ours(_) => ("dagsan's own pass", "accesses of all sizes are seen".to_owned()),
        Pass::ThreadSanitizers(why) => (
            "ThreadSanitizer's pass",
            format!("accesses of other sizes than 1, 2, 4, 8 and 16 bytes are not seen: {why}"),
        ),
    };
    status::progress(color, "Hooks", &format!("{who}; {seen}"));
    status::progress(color, "Example", "one task reads a value of three bytes, another writes it");
    let package = directory.join("doctor");
    let cannot = || format!("cannot write {}", package.display());
    fs::create_dir_all(package.join("src")).with_context(cannot)?;
    fs::write(package.join("Cargo.toml"), MANIFEST).with_context(cannot)?;
    fs::write(package.join("src").join("main.rs"), PROGRAM).with_context(cannot)?;
    let executable = env::current_exe().context("cannot tell where cargo-dagsan is")?;
    let mut command = Command::new(executable);
    command.args(["dagsan", "run", "--release", "--quiet"]).current_dir(&package);
    // The directory is the one in the target directory.
    command.arg("--target-dir").arg(directory.parent().unwrap_or(directory));
    let code = program_code(command.status().context("cannot start cargo-dagsan")?);
    let (found, missed) = (code == Code::Race.number(), code == Code::Clean.number());
    Ok(match pass {
        _ if found => Code::Clean.number(),
        Pass::ThreadSanitizers(_) if missed => {
            status::warning(color, "the race is there, and is not found");
            Code::Clean.number()
        }
        _ => {
            status::warning(color, "the race is there, and is not found: please report it");
            Code::Fault.number()
        }
    })
}
