//! `cargo dagsan doctor`: says in words what works here and what to do about the rest, and shows a race that is found.
//!
//! In the program one task reads a value of three bytes and another writes it; its twin waits in between. It tells of its tasks through the runtime's C
//! interface, so that it needs no other crate. What the compiler, the linker and the runtime need has been asked for before: without
//! it there would be an error that says so.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::exit::Code;
use crate::native::outcome::program_code;
use crate::native::pass::Pass;
use crate::native::status;
use crate::native::{cc, config};

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
    if std::env::args().nth(1).as_deref() == Some("twin") {
        __dagsan_finish_end();
        __dagsan_finish_begin();
    }
    task(here, move || unsafe { *pixels.add(1) = inverted(black_box([7; 3])) });
    __dagsan_finish_end();
}
"#;

/// Tells, and shows.
pub fn run(pass: &Pass, directory: &Path, color: &str) -> Result<u8> {
    let say = |what: &str, text: &str| status::progress(color, what, text);
    let version = config::rustc_version()?;
    let known = |key: &str| version.lines().find_map(|line| line.strip_prefix(key)).unwrap_or("unknown");
    let rustc = version.lines().next().unwrap_or("rustc");
    say("Toolchain", &format!("{rustc}, LLVM {}, for {}", known("LLVM version: "), known("host: ")));
    say(
        "Linker",
        &first_line("cc", "--version")
            .unwrap_or_else(|| "the one that cargo's configuration names".to_owned()),
    );
    let (who, seen) = match pass {
        Pass::Ours(_) => ("dagsan's own pass", "accesses of all sizes are seen".to_owned()),
        Pass::ThreadSanitizers(why) => (
            "ThreadSanitizer's pass",
            format!("accesses of other sizes than 1, 2, 4, 8 and 16 bytes are not seen: {why}"),
        ),
    };
    say("Hooks", &format!("{who}; {seen}"));
    match address_space(&read("/proc/self/limits"), &read("/proc/sys/vm/overcommit_memory")) {
        None => {
            say(
                "Memory",
                "there is room for the runtime's tables, which reserve 64 TiB and use little of it",
            );
        }
        Some(trouble) => status::warning(color, &trouble),
    }
    let package = directory.join("doctor");
    let cannot = || {
        format!(
            "cannot write {}: programs are built there; --target-dir names another directory",
            package.display()
        )
    };
    fs::create_dir_all(package.join("src")).with_context(cannot)?;
    fs::write(package.join("Cargo.toml"), MANIFEST).with_context(cannot)?;
    fs::write(package.join("src").join("main.rs"), PROGRAM).with_context(cannot)?;
    say("Directory", &format!("{} can be written", directory.display()));
    say("Clang", &format!("{}; only programs in C and C++ need it, for `dagsan cc`", cc::describe()));

    say("Example", "one task reads a value of three bytes, another writes it");
    let example = |arguments: &[&str]| -> Result<Command> {
        let executable = env::current_exe().context("cannot tell where cargo-dagsan is")?;
        let mut command = Command::new(executable);
        command.arg("dagsan").args(arguments).current_dir(&package);
        Ok(command)
    };
    // The directory is the one in the target directory.
    let target = directory.parent().unwrap_or(directory);
    let mut racy = example(&["run", "--release", "--quiet", "--target-dir"])?;
    let racy = racy.arg(target).status().context("cannot start cargo-dagsan")?;
    let found = program_code(racy) == Code::Race.number();
    let missed = program_code(racy) == Code::Clean.number();
    if !found && !missed {
        status::warning(color, "the program could not be checked: what is above says why");
        return Ok(Code::Usage.number());
    }
    let mut twin = example(&["--format", "short", "run", "--release", "--quiet", "--target-dir"])?;
    let twin = twin.arg(target).args(["--", "twin"]).stdin(Stdio::null()).output();
    let twin = twin.context("cannot start cargo-dagsan")?;
    let told = String::from_utf8_lossy(&twin.stderr).trim_end().to_owned();
    let clean = twin.status.success() && told.contains(": race-free: 3 tasks, ");
    if clean {
        say("Twin", &format!("one task waits for the other: {told}"));
    } else {
        status::warning(
            color,
            &format!("the twin of the program, which has no race, is not race-free: {told}"),
        );
    }
    Ok(match pass {
        _ if found && clean => {
            say("Finished", "the race is found, and its twin is free of races: DagSan works here");
            Code::Clean.number()
        }
        Pass::ThreadSanitizers(_) if missed && clean => {
            status::warning(color, "the race is there, and is not found");
            Code::Clean.number()
        }
        _ => {
            status::warning(color, "this is a fault of dagsan's: please report it, with what is above");
            Code::Fault.number()
        }
    })
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The first line of what a program says of itself, if there is one.
fn first_line(program: &str, option: &str) -> Option<String> {
    let output = Command::new(program).arg(option).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned();
    output.status.success().then_some(text)
}

/// What keeps the runtime from reserving its tables, from `/proc/self/limits` and the policy of the system.
fn address_space(limits: &str, overcommit: &str) -> Option<String> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"));
    let limit = line.and_then(|rest| rest.split_whitespace().next()).filter(|limit| *limit != "unlimited");
    if let Some(limit) = limit {
        return Some(format!(
            "the address space is limited to {limit} bytes, and the runtime reserves 64 TiB: `ulimit -v unlimited` lifts it"
        ));
    }
    (overcommit.trim() == "2").then(|| {
        "the system hands out no more memory than it has (vm.overcommit_memory is 2), and the runtime reserves 64 TiB: \
         `sysctl vm.overcommit_memory=0`, as root, changes that"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_the_address_space_are_said() {
        let limits = |limit: &str| {
            format!(
                "Limit   Soft Limit  Hard Limit  Units\nMax address space         {limit}            unlimited            bytes\n"
            )
        };
        assert_eq!(address_space(&limits("unlimited"), "0\n"), None);
        assert!(address_space(&limits("1048576"), "0").unwrap().contains("limited to 1048576 bytes"));
        assert!(address_space(&limits("unlimited"), "2\n").unwrap().contains("vm.overcommit_memory is 2"));
        assert_eq!(address_space("", ""), None);
    }
}
