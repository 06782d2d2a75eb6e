//! `dagsan cc`, `dagsan c++` and `dagsan run`, as builds and people call them.

use std::fs;
use std::path::Path;
use std::process::Command;

use dagsan_findings::{End, FINDINGS_FILE, Findings};

use crate::support::{Directory, dagsan, program, run};

const RACE: &str = "int count;\nint main(void) {\n#pragma omp parallel\n    count++;\n    return 0;\n}\n";

#[test]
fn a_race_is_shown_with_its_pragma_and_the_exit_code_says_so() {
    let directory = Directory::new("race");
    let source = directory.write("race.c", RACE);
    let executable = directory.0.join("race");
    let built = run(dagsan(&["cc", "-fopenmp", "-o"]).arg(&executable).arg(&source));
    assert_eq!(built.code, 0, "{}", built.stderr);
    let shown = run(dagsan(&["run", "--color", "never"]).arg(&executable));
    assert_eq!(shown.code, 66, "{}", shown.stderr);
    for part in ["static `count`", "race.c:4", "(parallel) are created here", "#pragma omp barrier"] {
        assert!(shown.stderr.contains(part), "{part}: {}", shown.stderr);
    }
    assert!(!shown.stderr.contains("dagsan-omp"), "{}", shown.stderr);
    let json = run(dagsan(&["run", "--format", "json"]).arg(&executable));
    assert!(json.code == 66 && json.stdout.trim_start().starts_with('{'), "{}", json.stdout);
    // By itself it leaves a file.
    let alone = run(program(&executable, "3").current_dir(&directory.0));
    assert_eq!(alone.code, 66);
    assert!(alone.stderr.contains("dagsan report dagsan."), "{}", alone.stderr);
}

#[test]
fn separate_steps_archives_dependencies_and_response_files_work() {
    let directory = Directory::new("steps");
    directory.write("a.c", "#include <omp.h>\nint value;\nvoid set(void) {\n#pragma omp parallel\n    value = omp_get_thread_num();\n}\n");
    directory.write("main.c", "void set(void);\nint main(void) { set(); return 0; }\n");
    directory.write("flags", "-fopenmp \"-O1\"\n");
    let cc = |arguments: &[&str]| {
        let ran = run(dagsan(&["cc"]).args(arguments).current_dir(&directory.0));
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        ran
    };
    cc(&["@flags", "-MMD", "-MF", "a.d", "-c", "a.c", "-o", "a.o"]);
    assert!(fs::read_to_string(directory.0.join("a.d")).unwrap().contains("a.c"));
    cc(&["-c", "main.c"]);
    let ar = Command::new("ar").args(["rcs", "liba.a", "a.o"]).current_dir(&directory.0).status();
    assert!(ar.unwrap().success());
    cc(&["-fopenmp", "main.o", "-L.", "-la", "-lgomp", "-o", "program"]);
    let ran = run(program(&directory.0.join("program"), "2").current_dir(&directory.0));
    assert_eq!(ran.code, 66, "{}", ran.stderr);
    assert!(cc(&["-fopenmp", "-dM", "-E", "main.c"]).stdout.contains("_OPENMP"));
    assert!(cc(&["--version"]).stdout.contains("clang"));
    let shared = cc(&["-shared", "-fPIC", "-fopenmp", "a.c", "-o", "liba.so"]);
    assert!(shared.stderr.contains("shared library"), "{}", shared.stderr);
}

#[test]
fn what_cannot_be_done_is_said_with_what_to_do() {
    let directory = Directory::new("cannot");
    let source = directory.write("race.c", RACE);
    let missing = run(dagsan(&["cc", "-c"]).arg(&source).env("DAGSAN_CC", "no-such-clang"));
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("apt-get install clang-19"), "{}", missing.stderr);
    let other = run(dagsan(&["cc", "-fsanitize=address", "-c"]).arg(&source));
    assert!(other.code == 2 && other.stderr.contains("-fsanitize=address"), "{}", other.stderr);
    let statically = run(dagsan(&["cc", "-static"]).arg(&source));
    assert!(statically.code == 2 && statically.stderr.contains("leave out -static"), "{}", statically.stderr);
    let nothing = run(&mut dagsan(&["run", "./no/such/program"]));
    assert!(nothing.code == 2 && nothing.stderr.contains("is not there"), "{}", nothing.stderr);
    let here = run(dagsan(&["run", "race.c"]).current_dir(&directory.0));
    assert!(here.code == 2 && here.stderr.contains("did you mean ./race.c?"), "{}", here.stderr);
}

#[test]
fn objects_without_hooks_are_named_at_the_link_and_in_the_verdict() {
    let directory = Directory::new("plain");
    directory.write("a.c", "int count;\nvoid add(void) { count++; }\n");
    directory.write(
        "main.c",
        "void add(void);\nint main(void) {\n#pragma omp parallel\n    add();\n    return 0;\n}\n",
    );
    let plain = run(Command::new("clang-19").args(["-c", "a.c"]).current_dir(&directory.0));
    assert_eq!(plain.code, 0, "{}", plain.stderr);
    let ar = run(Command::new("ar").args(["rcs", "liba.a", "a.o"]).current_dir(&directory.0));
    assert_eq!(ar.code, 0, "{}", ar.stderr);
    for (object, name) in [("a.o", "a.o"), ("liba.a", "liba.a(a.o)")] {
        let built =
            run(dagsan(&["cc", "-fopenmp", "main.c", object, "-o", "program"]).current_dir(&directory.0));
        assert_eq!(built.code, 0, "{}", built.stderr);
        assert!(built.stderr.contains(&format!("{name}: was not compiled with dagsan")), "{}", built.stderr);
        let ran = run(dagsan(&["run", "--color", "never", "./program"]).current_dir(&directory.0));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(
            ran.stderr.contains("not seen: what is accessed by files that were linked"),
            "{}",
            ran.stderr
        );
    }
    let own = run(dagsan(&["cc", "-c", "a.c"]).current_dir(&directory.0));
    assert_eq!(own.code, 0, "{}", own.stderr);
    let built = run(dagsan(&["cc", "-fopenmp", "main.c", "a.o", "-o", "program"]).current_dir(&directory.0));
    assert!(built.code == 0 && !built.stderr.contains("not compiled"), "{}", built.stderr);
    let ran = run(dagsan(&["run", "--color", "never", "./program"]).current_dir(&directory.0));
    assert_eq!(ran.code, 66, "{}", ran.stderr);
}

#[test]
fn a_construct_that_is_not_there_is_named_with_its_line() {
    let directory = Directory::new("refused");
    // As a later clang would call it.
    let text = "static struct { int none[4]; const char *source; } at = {{0, 2}, \";refused.c;main;5;1;;\"};\nvoid __kmpc_taskloop_5(void *);\nint main(void) {\n    __kmpc_taskloop_5(&at);\n    return 0;\n}\n";
    let (source, executable) = (directory.write("refused.c", text), directory.0.join("refused"));
    let built = run(dagsan(&["cc", "-fopenmp", "-o"]).arg(&executable).arg(&source));
    assert_eq!(built.code, 0, "{}", built.stderr);
    let ran = run(program(&executable, "2").current_dir(&directory.0));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("`taskloop") && ran.stderr.contains("refused.c:5"), "{}", ran.stderr);
}

#[test]
fn the_verdict_says_that_something_was_cancelled() {
    let directory = Directory::new("cancelled");
    let text = "int main(void) {\n#pragma omp parallel\n    {\n#pragma omp cancel parallel\n    }\n    return 0;\n}\n";
    let (source, executable) = (directory.write("cancelled.c", text), directory.0.join("cancelled"));
    let built = run(dagsan(&["cc", "-fopenmp", "-o"]).arg(&executable).arg(&source));
    assert_eq!(built.code, 0, "{}", built.stderr);
    let told = |on: &str| {
        let mut command = dagsan(&["run", "--color", "never"]);
        let ran = run(command.arg(&executable).env("OMP_CANCELLATION", on).current_dir(&directory.0));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        (ran.stdout + &ran.stderr).contains("`cancel` has left out")
    };
    assert!(told("true") && !told("false"));
}

#[test]
fn what_was_found_before_a_fault_is_told_and_the_program_dies_by_it() {
    const BEGIN: &str = "int count, zero, *nowhere;\nint deep(volatile int *p) { volatile int a[999]; a[*p] = *p; return deep(a + 1) + a[2]; }\nint main(void) {\n#pragma omp parallel\n    ";
    let directory = Directory::new("fault");
    for (name, code, rest) in [
        ("segv", 139, "count++;\n    *nowhere = 1;\n}\n"),
        ("segv-in-region", 139, "{ count++; if (count > 1) *nowhere = 1; }\n}\n"),
        ("fpe", 136, "count++;\n    return count / zero;\n}\n"),
        ("overflow", 139, "count++;\n    return deep(&zero);\n}\n"),
        ("overflow-in-region", 139, "{ count++; if (count > 1) deep(&zero); }\n}\n"),
    ] {
        let source = directory.write(&format!("{name}.c"), &format!("{BEGIN}{rest}"));
        let executable = directory.0.join(name);
        let built = run(dagsan(&["cc", "-w", "-fopenmp", "-o"]).arg(&executable).arg(&source));
        assert_eq!(built.code, 0, "{}", built.stderr);
        let file = directory.0.join(format!("{name}.json"));
        let ran = run(program(&executable, "3").env(FINDINGS_FILE, &file));
        let found = Findings::read(&file).unwrap();
        assert_eq!(
            (ran.code, found.end, found.races.len()),
            (code, End::Aborted, 1),
            "{name}: {}",
            ran.stderr
        );
    }
    // A handler of the program's is the one that is called.
    let source = directory.write(
        "own.c",
        "#include <signal.h>\n#include <stdlib.h>\nvoid own(int s) { _Exit(7); }\nint main(void) { signal(SIGSEGV, own); return *(volatile int *)0; }\n",
    );
    let executable = directory.0.join("own");
    let built = run(dagsan(&["cc", "-w", "-fopenmp", "-o"]).arg(&executable).arg(&source));
    assert_eq!((built.code, run(&mut program(&executable, "2")).code), (0, 7), "{}", built.stderr);
}

#[test]
fn a_task_that_spins_for_a_later_one_is_told_of() {
    let text = "int flag;\nint main(void) {\n    int seen = 0;\n#pragma omp parallel\n#pragma omp single\n    {\n#pragma omp task shared(seen)\n        for (long i = 0; i < 20000000 && !seen; i++) {\n#pragma omp atomic read\n            seen = flag;\n        }\n#pragma omp task\n        {\n#pragma omp atomic write\n            flag = 1;\n        }\n    }\n    return 0;\n}\n";
    let directory = Directory::new("spins");
    let (source, executable) = (directory.write("spins.c", text), directory.0.join("spins"));
    let built = run(dagsan(&["cc", "-fopenmp", "-o"]).arg(&executable).arg(&source));
    assert_eq!(built.code, 0, "{}", built.stderr);
    let ran = run(program(&executable, "4").current_dir(&directory.0));
    assert!(ran.code == 0 && ran.stderr.contains("seems to spin"), "{}: {}", ran.code, ran.stderr);
}

#[test]
fn a_deadlock_names_who_waits_for_what() {
    let directory = Directory::new("deadlock");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/openmp/lock-twice.c");
    let executable = directory.0.join("deadlock");
    let built = run(dagsan(&["cc", "-fopenmp", "-o"]).arg(&executable).arg(&source));
    assert_eq!(built.code, 0, "{}", built.stderr);
    let shown = run(dagsan(&["run", "--color", "never"]).arg(&executable));
    assert_eq!(shown.code, 65, "{}", shown.stderr);
    assert!(shown.stderr.contains("a lock, or a critical section"), "{}", shown.stderr);
}
