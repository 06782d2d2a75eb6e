//! `dagsan cc` and `dagsan c++`: a compiler for C and C++ that puts hooks into what it compiles, and links DagSan's runtime, which is the
//! runtime of OpenMP, too, instead of libomp.
//!
//! ```text
//!   dagsan cc -fopenmp -c a.c   ─►  clang-19 -Xclang -fopenmp -fsanitize=thread …, with dagsan-pass preloaded
//!   dagsan cc a.o -o a          ─►  clang-19 a.o -o a libdagsan_omp.a …
//! ```
//!
//! The driver must not add libraries of its own, so it does not hear of OpenMP (the compiler proper does), and is told to leave the sanitizer's out.

mod arguments;
mod hooks;
mod library;

use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::exit::Code;
pub use crate::native::sources::cache;
use crate::native::{pass, status};
use arguments::{Call, Mode};

/// The language that is compiled, which decides on the compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    C,
    Cxx,
}

impl Language {
    /// The language of a subcommand, or of a name that the command was started by.
    pub fn of(name: &str) -> Option<Language> {
        match name {
            "cc" | "dagsan-cc" => Some(Language::C),
            "c++" | "dagsan-c++" => Some(Language::Cxx),
            _ => None,
        }
    }

    fn variable(self) -> &'static str {
        match self {
            Language::C => "DAGSAN_CC",
            Language::Cxx => "DAGSAN_CXX",
        }
    }

    fn default(self) -> &'static str {
        match self {
            Language::C => "clang-19",
            Language::Cxx => "clang++-19",
        }
    }

    fn compiler(self) -> OsString {
        env::var_os(self.variable()).filter(|name| !name.is_empty()).unwrap_or_else(|| self.default().into())
    }
}

/// Flags for what is compiled.
const COMPILE: [&str; 8] = [
    "-fsanitize=thread",
    // Call stacks are found by frame pointers, and calls stay calls.
    "-fno-omit-frame-pointer",
    "-fno-optimize-sibling-calls",
    "-mllvm",
    "-tsan-instrument-func-entry-exit=0",
    // Variables that are kept in registers through a loop are loaded before it, also where no iteration would.
    "-mllvm",
    "-disable-licm-promotion",
    "-Wno-unused-command-line-argument",
];

/// Flags for programs: what the runtime needs. Shared libraries with hooks find the runtime in the program.
const LINK: [&str; 6] = ["-rdynamic", "-lpthread", "-ldl", "-lm", "-lrt", "-lgcc_s"];

/// Compiles or links, as asked.
pub fn run(language: Language, given: Vec<OsString>) -> Result<u8> {
    let compiler = language.compiler();
    let call = Call::read(&given)?;
    let mut command = Command::new(&compiler);
    if call.mode == Mode::Ask {
        command.args(&given);
        return start(command, language);
    }
    check(&call)?;
    let library = library::prepare(&compiler, language)?;
    // Before the user's, which may say otherwise.
    command.arg("-g");
    command.args(&call.passed);
    command.arg("-isystem").arg(&library.include);
    if call.openmp {
        command.args(["-Xclang", "-fopenmp"]);
    }
    if call.compiles() {
        command.args(COMPILE);
        if call.mode == Mode::Link {
            command.arg("-fno-sanitize-link-runtime");
        }
        if let Some(pass) = &library.pass {
            pass::preload(&mut command, pass);
        }
    }
    match call.mode {
        Mode::Link if call.shared => {
            let text =
                "a shared library is not checked by itself: link the program that uses it with dagsan, too";
            status::note("auto", text);
        }
        Mode::Link => {
            let without = hooks::without(&call.passed);
            if !without.is_empty() {
                let names = hooks::list(&without);
                let text = "was not compiled with dagsan: what it does is not checked";
                status::warning("auto", &format!("{names}: {text}"));
                command.arg("-Wl,--defsym=dagsan_without_hooks=1");
            }
            // What `-x` says of the user's files does not hold for ours.
            command.args(["-x", "none", "-Wl,-u,__kmpc_fork_call"]).arg(&library.strings);
            command.arg(&library.archive).args(LINK);
        }
        _ => {}
    }
    start(command, language)
}

/// What cannot be checked is refused, before anything is compiled.
fn check(call: &Call) -> Result<()> {
    if let Some(other) = &call.sanitizer {
        bail!("-fsanitize={other} and dagsan cannot be in one program: leave it out");
    }
    if call.mode == Mode::Link && call.is_static {
        bail!("a program that is linked statically cannot be checked: leave out -static");
    }
    Ok(())
}

/// The compiler takes the place of this process.
fn start(mut command: Command, language: Language) -> Result<u8> {
    let error = command.exec();
    if error.kind() == ErrorKind::NotFound {
        anstream::eprintln!("error: {}", missing(Path::new(command.get_program()), language));
        return Ok(Code::Usage.number());
    }
    Err(error).with_context(|| format!("cannot start {}", command.get_program().display()))
}

/// What the compiler of C says of itself, and how it is named; or what to do, if it is not there.
pub fn describe() -> String {
    let compiler = Language::C.compiler();
    let output = Command::new(&compiler).arg("--version").output();
    match output.ok().filter(|output| output.status.success()) {
        Some(output) => {
            let version = String::from_utf8_lossy(&output.stdout);
            format!("{}: {}", compiler.display(), version.lines().next().unwrap_or_default())
        }
        None => missing(Path::new(&compiler), Language::C),
    }
}

/// What to do if the compiler is not there.
fn missing(compiler: &Path, language: Language) -> String {
    let (name, variable) = (compiler.display(), language.variable());
    format!("{name} is not there: install it (apt-get install clang-19), or name another clang by {variable}")
}
