//! What stands in front of rustc.
//!
//! cargo passes `--target` to what becomes part of the program, and not to build scripts and macros, since `cargo dagsan`
//! always gives it a target. So the flags that put hooks into a crate go to the former only, and so does the
//! variable that lets a stable rustc take them. Build scripts that probe the compiler, through this wrapper and with the
//! same target, must see what they always see: cargo alone asks rustc to announce the files that it writes.
//!
//! The task runtime and the detector are compiled without hooks, and so is rayon-core, from our source. So are dynamic libraries, where nobody would
//! answer them: what they do is not checked.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::native::session::{Runtime, Session};
use crate::native::status;
use crate::native::{pass, rayon};

/// The crates that the detector is made of, and what tasks run on.
const OURS: [&str; 6] =
    ["dagsan_rt", "dagsan_core", "dagsan_findings", "dagsan_task", "corosensei", rayon::CRATE];

/// For all crates of the target.
const COMMON: [&str; 6] = [
    "--cfg=dagsan",
    "--check-cfg=cfg(dagsan)",
    // Crates with hooks and crates without them may be linked.
    "-Cunsafe-allow-abi-mismatch=sanitizer",
    // Call stacks are found by frame pointers, and named by debug information in the executable.
    "-Cforce-frame-pointers=yes",
    "-Cstrip=none",
    "-Csplit-debuginfo=off",
];

/// For crates that get hooks.
const HOOKS: [&str; 5] = [
    "-Zsanitizer=thread",
    "-Zexternal-clangrt",
    // Without optimisation, rustc would take what the standard library has compiled for itself, without hooks.
    "-Zshare-generics=off",
    // Functions with the same code, merged, would all be shown at the lines of one of them.
    "-Zmerge-functions=disabled",
    "-Cllvm-args=-tsan-instrument-func-entry-exit=0",
];

/// For those that get them from ThreadSanitizer's pass, which has none for accesses of more than 16 bytes. LLVM's
/// vectoriser of straight-line code makes such, even where the processor has no registers for them.
const NARROW: [&str; 2] = ["-Ctarget-feature=-avx", "-Cno-vectorize-slp"];

/// For crates that get hooks too: calls stay calls. A function whose last call has become a jump is not in the call stack,
/// and what it does there would have its place in whoever called it, in the task runtime for instance.
const CALLS: &str = "-Cllvm-args=-opt-disable=tailcallelim";

/// The oldest LLVM that can leave out a pass.
const LLVM_WITH_CALLS: u32 = 22;

/// For programs.
const PROGRAM: [&str; 2] = [
    // The runtime is linked though nobody names it (`force`).
    "-Zunstable-options",
    // cargo builds a program again when the runtime has changed.
    "-Zbinary-dep-depinfo",
];

/// The flags that ask for hooks, with our own pass or without it.
fn hooks(with_pass: bool) -> impl Iterator<Item = &'static str> {
    let narrow = if with_pass { &[][..] } else { &NARROW };
    HOOKS.iter().chain(narrow).copied()
}

/// For a library with hooks.
pub fn library_flags(with_pass: bool) -> impl Iterator<Item = &'static str> {
    COMMON.into_iter().chain(hooks(with_pass))
}

/// Changes with the flags above: what was built with others is of no use.
pub fn flags(with_pass: bool) -> String {
    let all: Vec<&str> = library_flags(with_pass).chain([CALLS]).chain(PROGRAM).collect();
    all.join(" ")
}

/// Runs rustc, or the wrapper that cargo puts before it for crates of the workspace.
pub fn run(session: &Session, rustc: &OsStr, arguments: &[OsString]) -> Result<u8> {
    let expanded = expanded(arguments)?;
    let change = Call::read(&expanded).change(&session.runtime, session.llvm);
    if env::var_os("CARGO_PRIMARY_PACKAGE").is_some() {
        for warning in &change.warnings {
            status::warning(&session.color, warning);
        }
    }
    if let Some((mark, is_libtest)) = &change.mark {
        mark_libtest(mark, *is_libtest)?;
    }
    let mut command = match &session.wrapper {
        Some(wrapper) => {
            let mut command = Command::new(wrapper);
            command.arg(rustc);
            command
        }
        None => Command::new(rustc),
    };
    match change.drop_in {
        true => command.args(rayon::substitute(expanded, &session.runtime.rayon)?),
        false => command.args(arguments),
    };
    command.args(&change.flags);
    if let Some(library) = &change.pass {
        pass::preload(&mut command, library);
        command.env(pass::LATER, if change.is_linked_within { "1" } else { "0" });
        if let Some(needs) = &change.outside {
            command.env(pass::OUTSIDE, needs);
        }
    }
    if change.bootstrap {
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    let error = command.exec();
    Err(error).with_context(|| format!("cannot start {}", command.get_program().display()))
}

/// The arguments, with those that cargo has put into files because they are too many.
fn expanded(arguments: &[OsString]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for argument in arguments {
        let text = argument.to_string_lossy();
        match text.strip_prefix('@') {
            Some(file) => {
                let lines = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
                all.extend(lines.lines().map(str::to_owned));
            }
            None => all.push(text.into_owned()),
        }
    }
    Ok(all)
}

/// What the runner finds beside a test binary that has libtest's command line.
pub fn libtest_mark(executable: &Path) -> PathBuf {
    let mut name = executable.as_os_str().to_owned();
    name.push(".libtest");
    name.into()
}

fn mark_libtest(mark: &Path, is_libtest: bool) -> Result<()> {
    let done = match (is_libtest, mark.exists()) {
        (true, false) => fs::write(mark, ""),
        (false, true) => fs::remove_file(mark),
        _ => Ok(()),
    };
    done.with_context(|| format!("cannot write {}", mark.display()))
}

/// What matters of a call of rustc.
#[derive(Debug, Default)]
struct Call {
    crate_name: Option<String>,
    crate_types: Vec<String>,
    for_target: bool,
    /// Is it cargo who asks for a crate, and not a build script?
    announces: bool,
    test: bool,
    /// Asks, and compiles nothing.
    prints: bool,
    debug_info: Option<String>,
    wide_vectors: Option<String>,
    /// Is what rustc has optimised once for others to optimise again: for the linker, for the crate that is linked with all others, or
    /// for whoever finds it in the object files? That is rustc's default.
    linker_plugin: bool,
    lto: bool,
    /// Of all crates in one module?
    fat_lto: bool,
    has_no_bitcode: bool,
    out_dir: Option<PathBuf>,
    extra_filename: String,
}

/// What changes about it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Change {
    flags: Vec<OsString>,
    bootstrap: bool,
    warnings: Vec<String>,
    /// Is it rayon-core, to be compiled from our source?
    drop_in: bool,
    /// The pass, for what gets hooks.
    pass: Option<PathBuf>,
    /// If rustc optimises modules twice, does it do so in this call, and leave nothing between the two to others? Then marks may wait for the second time.
    is_linked_within: bool,
    /// A file with the names of what code that is linked beside the program needs of it.
    outside: Option<PathBuf>,
    /// A program, by the file that says whether it is a test binary, and whether it is.
    mark: Option<(PathBuf, bool)>,
}

impl Call {
    fn read(arguments: &[String]) -> Call {
        let mut call = Call::default();
        let mut rest = arguments.iter().map(String::as_str);
        while let Some(argument) = rest.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => match argument.strip_prefix("-C") {
                    Some("") => ("-C", None),
                    Some(option) => ("-C", Some(option.to_owned())),
                    None => (argument, None),
                },
            };
            let mut value = || value.clone().or_else(|| rest.next().map(str::to_owned)).unwrap_or_default();
            match name {
                "--crate-name" => call.crate_name = Some(value()),
                "--crate-type" => call.crate_types.extend(value().split(',').map(str::to_owned)),
                "--out-dir" => call.out_dir = Some(value().into()),
                "--target" => {
                    value();
                    call.for_target = true;
                }
                "--print" => {
                    value();
                    call.prints = true;
                }
                "--json" => call.announces |= value().split(',').any(|kind| kind == "artifacts"),
                "--test" => call.test = true,
                "-g" => call.debug_info = Some("2".to_owned()),
                "-C" | "--codegen" => call.codegen(&value()),
                _ => {}
            }
        }
        call
    }

    fn codegen(&mut self, option: &str) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let wide = match name {
            "target-cpu" => !matches!(value, "generic" | "x86-64" | "x86-64-v2"),
            "target-feature" => ["+avx", "+fma", "+f16c", "+vaes"].iter().any(|wide| value.contains(wide)),
            _ => false,
        };
        match name {
            "debuginfo" => self.debug_info = Some(value.to_owned()),
            "lto" => {
                self.lto = !matches!(value, "no" | "n" | "off" | "false");
                self.fat_lto = self.lto && value != "thin";
            }
            "linker-plugin-lto" => self.linker_plugin = !matches!(value, "no" | "n" | "off"),
            "embed-bitcode" => self.has_no_bitcode = matches!(value, "no" | "n" | "off"),
            "extra-filename" => self.extra_filename = value.to_owned(),
            _ if wide => self.wide_vectors = Some(format!("-C{option}")),
            _ => {}
        }
    }

    fn is(&self, crate_type: &str) -> bool {
        self.crate_types.iter().any(|given| given == crate_type)
    }

    /// Is it linked to be run?
    fn is_program(&self) -> bool {
        // rustc makes a program if nobody says otherwise.
        self.test || self.is("bin") || self.crate_types.is_empty()
    }

    fn change(&self, runtime: &Runtime, llvm: u32) -> Change {
        let Some(name) = self.crate_name.as_ref().filter(|_| self.for_target) else {
            return Change::default();
        };
        if self.prints {
            // What cargo asks about the target decides over `[target.'cfg(dagsan)'.dependencies]`.
            return Change { flags: vec!["--cfg=dagsan".into()], ..Change::default() };
        }
        if !self.announces {
            return Change::default();
        }
        // Its own unit tests are of what is in its source.
        let drop_in = name == rayon::CRATE && !self.test;
        let mut change = Change { bootstrap: true, drop_in, ..Change::default() };
        change.flags.extend(COMMON.map(OsString::from));
        // Line tables alone do not say which modules functions are in.
        let lines_only = ["0", "none", "line-directives-only", "line-tables-only"];
        if self.debug_info.as_ref().is_none_or(|level| lines_only.contains(&level.as_str())) {
            change.flags.push("-Cdebuginfo=1".into());
        }
        let linked_into_programs = self.is_program() || ["lib", "rlib"].iter().any(|kind| self.is(kind));
        if !linked_into_programs {
            let kinds = self.crate_types.join(", ");
            change.warnings.push(format!(
                "`{name}` is a {kinds}: it is compiled without checks, and what it does is not seen; \
                 add \"lib\" to its crate-type to have it checked"
            ));
        } else if !OURS.contains(&name.as_str()) {
            change.flags.extend(hooks(runtime.pass.is_some()).map(OsString::from));
            change.flags.extend((llvm >= LLVM_WITH_CALLS).then(|| CALLS.into()));
            change.pass = runtime.pass.clone();
            change.is_linked_within = self.has_no_bitcode && !self.lto && !self.linker_plugin;
        }
        if self.is_program() {
            self.link_runtime(name, runtime, &mut change);
        }
        change
    }

    fn link_runtime(&self, name: &str, runtime: &Runtime, change: &mut Change) {
        let flag = |before: &str, path: &Path| {
            let mut flag = OsString::from(before);
            flag.push(path);
            flag
        };
        change.flags.extend(PROGRAM.map(OsString::from));
        let beside = runtime.beside.as_ref().filter(|_| self.fat_lto);
        change.outside = beside.map(|beside| beside.needs.clone());
        let (library, directories) = match beside {
            Some(beside) => (&beside.library, &beside.directories),
            None => (&runtime.library, &runtime.directories),
        };
        change.flags.push(flag("--extern=force:dagsan_rt=", library));
        change.flags.extend(directories.iter().map(|directory| flag("-Ldependency=", directory)));
        if let Some(flag) = self.wide_vectors.as_ref().filter(|_| runtime.pass.is_none()) {
            change.warnings.push(format!(
                "{flag}: the program is compiled without AVX, because accesses of more than 16 bytes cannot be \
                 checked; those of functions that turn it on for themselves are not seen"
            ));
        }
        if let Some(out_dir) = &self.out_dir {
            let executable = out_dir.join(format!("{name}{}", self.extra_filename));
            change.mark = Some((libtest_mark(&executable), self.test));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::beside::Beside;

    fn change(line: &str) -> Change {
        probe(&format!("{line} --error-format=json --json=diagnostic-rendered-ansi,artifacts"))
    }

    fn probe(line: &str) -> Change {
        probe_with(line, LLVM_WITH_CALLS)
    }

    fn probe_with(line: &str, llvm: u32) -> Change {
        read(line, llvm, Some("r/libdagsan_pass.so".into()))
    }

    fn without_pass(line: &str) -> Change {
        read(line, LLVM_WITH_CALLS, None)
    }

    fn read(line: &str, llvm: u32, pass: Option<PathBuf>) -> Change {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let library = "r/libdagsan_rt.rlib".into();
        let beside = Beside {
            library: "b/libdagsan_rt.rlib".into(),
            directories: vec!["b/deps".into()],
            needs: "b/needs".into(),
        };
        let beside = pass.is_some().then_some(beside);
        let rayon = "r/rayon".into();
        let runtime = Runtime { library, directories: vec!["r/deps".into()], rayon, pass, beside };
        Call::read(&arguments).change(&runtime, llvm)
    }

    fn has(change: &Change, flag: &str) -> bool {
        change.flags.iter().any(|given| given == flag)
    }

    #[test]
    fn what_is_not_for_the_target_stays_as_it_is() {
        for line in [
            "-vV",
            "- --crate-name ___ --print=file-names",
            "--crate-name build_script_build --crate-type bin build.rs -C debuginfo=0",
            "--crate-name serde_derive --crate-type proc-macro src/lib.rs",
        ] {
            assert_eq!(change(line), Change::default(), "{line}");
        }
    }

    #[test]
    fn probes_of_build_scripts_see_the_compiler_as_it_is() {
        let line = "--crate-name probe --crate-type lib --emit=metadata --target x src/probe.rs";
        assert_eq!(probe(line), Change::default());
        assert!(change(line).bootstrap);
    }

    #[test]
    fn questions_about_the_target_get_the_cfg_only() {
        let asked = change("- --crate-name ___ --print=file-names --target x --print=cfg");
        assert_eq!(asked.flags, ["--cfg=dagsan"]);
        assert!(!asked.bootstrap);
    }

    #[test]
    fn libraries_get_hooks_and_programs_the_runtime_too() {
        let library = change("--crate-name a --crate-type lib src/lib.rs --target x -C opt-level=3");
        assert!(library.bootstrap && has(&library, "-Zsanitizer=thread") && has(&library, "--cfg=dagsan"));
        assert!(!has(&library, "-Ldependency=r/deps") && library.mark.is_none());

        let line =
            "--crate-name a --crate-type bin src/main.rs --target=x --out-dir o/deps -C extra-filename=-12";
        let program = change(line);
        assert!(
            has(&program, "--extern=force:dagsan_rt=r/libdagsan_rt.rlib")
                && has(&program, "-Ldependency=r/deps")
        );
        assert_eq!(program.mark, Some(("o/deps/a-12.libtest".into(), false)));
        let test = change("--crate-name a --test src/lib.rs --target x --out-dir o -Cextra-filename=-1");
        assert_eq!(test.mark, Some(("o/a-1.libtest".into(), true)));
        assert!(has(&test, "-Zsanitizer=thread"));
    }

    #[test]
    fn calls_stay_calls_where_the_compiler_can_do_it() {
        let line = "--crate-name a --crate-type lib src/lib.rs --target x --json=artifacts";
        assert!(has(&probe_with(line, LLVM_WITH_CALLS), CALLS));
        assert!(!has(&probe_with(line, LLVM_WITH_CALLS - 1), CALLS), "it would refuse the option");
    }

    #[test]
    fn the_detector_has_no_hooks() {
        for name in OURS {
            let ours = change(&format!("--crate-name {name} --crate-type lib src/lib.rs --target x"));
            assert!(has(&ours, "--cfg=dagsan") && has(&ours, "-Cunsafe-allow-abi-mismatch=sanitizer"));
            assert!(!has(&ours, "-Zsanitizer=thread"), "{name}");
        }
    }

    #[test]
    fn rayon_core_is_compiled_from_our_source() {
        let line = "--crate-name rayon_core --crate-type lib /r/rayon-core-1.13.0/src/lib.rs";
        assert!(change(&format!("{line} --target x")).drop_in);
        assert!(!change(line).drop_in, "for the host");
        assert!(!change(&format!("{line} --target x --test")).drop_in);
        assert!(!change("--crate-name rayon --crate-type lib src/lib.rs --target x").drop_in);
    }

    #[test]
    fn debug_information_is_raised_and_never_lowered() {
        let lines = "-Cdebuginfo=1";
        for (given, raised) in [
            ("", true),
            ("-C debuginfo=0", true),
            ("-Cdebuginfo=line-tables-only", true),
            ("-C debuginfo=2 -C debuginfo=0", true),
            ("-g", false),
            ("-C debuginfo=limited", false),
            ("--codegen debuginfo=full", false),
            ("--codegen=debuginfo=2", false),
        ] {
            let change = change(&format!("--crate-name a --crate-type lib --target x {given}"));
            assert_eq!(has(&change, lines), raised, "{given}");
        }
    }

    #[test]
    fn dynamic_libraries_are_left_alone_unless_they_are_also_linked() {
        let alone = change("--crate-name a --crate-type cdylib --target x");
        assert!(!has(&alone, "-Zsanitizer=thread"));
        assert!(alone.warnings[0].starts_with("`a` is a cdylib: it is compiled without checks"));
        let both = change("--crate-name a --crate-type cdylib --crate-type lib --target x");
        assert!(has(&both, "-Zsanitizer=thread") && both.warnings.is_empty());
    }

    #[test]
    fn without_the_pass_wide_vectors_are_turned_off_with_a_warning() {
        let line = |flag: &str| format!("--crate-name a --crate-type bin --json=artifacts --target x {flag}");
        for flag in ["-Ctarget-cpu=native", "-Ctarget-feature=+sse3,+avx2", "-Ctarget-cpu=x86-64-v3"] {
            let wide = without_pass(&line(flag));
            assert!(
                wide.warnings[0].starts_with(&format!("{flag}: ")) && has(&wide, "-Ctarget-feature=-avx")
            );
            let seen = probe(&line(flag));
            assert!(seen.warnings.is_empty() && !has(&seen, "-Ctarget-feature=-avx"));
        }
        assert!(without_pass(&line("-Ctarget-cpu=x86-64-v2")).warnings.is_empty());
    }

    #[test]
    fn the_pass_goes_where_the_hooks_go() {
        let passed = |line: &str| change(line).pass.is_some();
        assert!(passed("--crate-name a --crate-type lib src/lib.rs --target x"));
        assert!(!passed("--crate-name dagsan_rt --crate-type lib src/lib.rs --target x"));
        assert!(!passed("--crate-name a --crate-type cdylib src/lib.rs --target x"));
        assert!(!passed("--crate-name a --crate-type lib src/lib.rs"));
    }

    #[test]
    fn marks_wait_where_modules_are_linked_within_the_crate() {
        let waits = |flags: &str| {
            change(&format!("--crate-name a --crate-type lib --target x {flags}")).is_linked_within
        };
        assert!(waits("-C opt-level=3 -C embed-bitcode=no"));
        assert!(waits("-Copt-level=3 -Clto=off -Cembed-bitcode=no"));
        // The object files have what was optimised once.
        assert!(!waits("-C opt-level=3") && !waits("-C embed-bitcode=no -Cembed-bitcode=yes"));
        // All crates are linked at last.
        for flag in ["-Clto", "-C lto=thin", "-Clto=fat", "-Clinker-plugin-lto", "-C linker-plugin-lto=yes"] {
            assert!(!waits(&format!("-C embed-bitcode=no {flag}")), "{flag}");
        }
    }

    #[test]
    fn the_runtime_is_linked_beside_programs_that_are_optimised_as_a_whole() {
        let program = |flags: &str| format!("--crate-name a --crate-type bin --target x {flags}");
        for flags in ["-C lto", "-Clto=fat", "-C lto=yes -C embed-bitcode=no"] {
            let change = change(&program(flags));
            assert!(has(&change, "--extern=force:dagsan_rt=b/libdagsan_rt.rlib"), "{flags}");
            assert!(has(&change, "-Ldependency=b/deps") && !has(&change, "-Ldependency=r/deps"), "{flags}");
            assert_eq!(change.outside, Some("b/needs".into()), "{flags}");
        }
        let hooks_are_inlined = without_pass(&format!("{} --json=artifacts", program("-Clto=fat")));
        for change in [change(&program("")), change(&program("-Clto=thin")), hooks_are_inlined] {
            assert!(has(&change, "-Ldependency=r/deps") && change.outside.is_none());
        }
        assert!(change("--crate-name a --crate-type lib --target x -Clto=fat").outside.is_none());
    }

    #[test]
    fn arguments_may_come_in_a_file() {
        let file = env::temp_dir().join(format!("dagsan-arguments-{}", std::process::id()));
        fs::write(&file, "--crate-name\na\n").unwrap();
        let mut argument = OsString::from("@");
        argument.push(&file);
        let all = expanded(&["--test".into(), argument]).unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!(all, ["--test", "--crate-name", "a"]);
        assert!(expanded(&["@/no/such/file".into()]).is_err());
    }
}
