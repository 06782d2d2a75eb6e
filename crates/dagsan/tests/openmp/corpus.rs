//! The programs of `corpus/openmp`: the first line of each says what is expected of it, with any number of threads, optimised or not.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use dagsan_findings::{End, FINDINGS_FILE, Findings};

use crate::support::{Directory, dagsan, program, run};

const LEVELS: [&str; 2] = ["-O0", "-O2"];
const THREADS: [&str; 4] = ["2", "4", "8", "33"];

/// What a program must be found to do.
fn expected(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let line = text.lines().next().unwrap_or_default();
    let expected = line.strip_prefix("// expect: ");
    expected.unwrap_or_else(|| panic!("{}: the first line says what is expected", path.display())).to_owned()
}

/// What it was found to do; the program itself must say that its result is right.
fn verdict(executable: &Path, threads: &str, file: &Path) -> String {
    let ran = run(program(executable, threads).env(FINDINGS_FILE, file));
    let Ok(found) = Findings::read(file) else {
        return format!("ended with {} and said nothing: {}", ran.code, ran.stderr);
    };
    match (found.races.len(), &found.end, ran.code) {
        (0, End::Exited, 0) => "race-free".to_owned(),
        (0, End::Deadlock(blocked), 65) if !blocked.is_empty() => "deadlock".to_owned(),
        (1.., End::Exited, 66) => "race".to_owned(),
        (races, end, code) => format!("{races} races, {end:?}, exit code {code}: {}", ran.stderr),
    }
}

/// Compiles a program and runs it in all ways; what is not as expected.
fn check(path: &Path, directory: &Directory) -> Vec<String> {
    let name = path.file_name().unwrap().to_str().unwrap();
    let (compiler, expected) = (if name.ends_with(".cpp") { "c++" } else { "cc" }, expected(path));
    let mut wrong = Vec::new();
    for level in LEVELS {
        let executable = directory.0.join(format!("{name}{level}"));
        let mut compile = dagsan(&[compiler, "-w", "-fopenmp", level, "-o"]);
        let compiled = run(compile.arg(&executable).arg(path));
        if compiled.code != 0 {
            wrong.push(format!("{name} {level}: {}", compiled.stderr));
            continue;
        }
        for threads in THREADS {
            let file = directory.0.join(format!("{name}{level}-{threads}.json"));
            let found = verdict(&executable, threads, &file);
            if found != expected {
                wrong.push(format!("{name} {level} with {threads} threads: {found}, and not {expected}"));
            }
        }
        fs::remove_file(&executable).unwrap();
    }
    wrong
}

#[test]
fn programs_are_found_to_do_what_they_say() {
    let directory = Directory::new("corpus");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/openmp");
    let mut programs: Vec<PathBuf> =
        fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    programs.sort();
    assert!(programs.len() >= 150, "the corpus has {} programs", programs.len());
    // The runtime is built by the first, for each language.
    for compiler in ["cc", "c++"] {
        let source = directory.write("empty.c", "int main(void) { return 0; }\n");
        let ran = run(dagsan(&[compiler, "-x", if compiler == "cc" { "c" } else { "c++" }, "-o"])
            .arg(directory.0.join("empty"))
            .arg(source));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut wrong = Vec::new();
        // Only the number itself is shared.
        while let Some(path) = programs.get(next.fetch_add(1, Relaxed)) {
            wrong.extend(check(path, &directory));
        }
        wrong
    };
    let wrong: Vec<String> = thread::scope(|scope| {
        let hands: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        hands.into_iter().flat_map(|hand| hand.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
