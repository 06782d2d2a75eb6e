//! The kernels of `kernels/openmp`, small: without a race as they are, with one as their seeded twins; optimised or not.

use std::fs;
use std::path::Path;

use dagsan_findings::{End, FINDINGS_FILE, Findings};

use crate::support::{Directory, dagsan, program, run};

/// Each, and a size at which it still has tasks of all kinds.
const KERNELS: [(&str, &str); 13] = [
    ("alignment", "6"),
    ("fft", "16384"),
    ("fib", "16"),
    ("floorplan", "4"),
    ("health", "3"),
    ("jacobi-depend", "128"),
    ("knapsack", "14"),
    ("nqueens", "6"),
    ("sort", "20000"),
    ("sparselu", "6"),
    ("sparselu-depend", "6"),
    ("strassen", "128"),
    ("uts", "20"),
];

/// What is not as it should be with a kernel; `seeded` if it has its mistake.
fn check(directory: &Directory, name: &str, size: &str, level: &str, seeded: bool) -> Result<(), String> {
    let of = format!("{name}{}{level}", if seeded { "-race" } else { "" });
    let (executable, findings) = (directory.0.join(&of), directory.0.join(format!("{of}.json")));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/openmp").join(format!("{name}.c"));
    let mut compile = dagsan(&["cc", "-fopenmp", "-g", level]);
    compile.args(seeded.then_some("-DRACE")).arg("-o").arg(&executable).arg(source).arg("-lm");
    let compiled = run(&mut compile);
    if compiled.code != 0 {
        return Err(format!("{of}: {}", compiled.stderr));
    }
    let ran = run(program(&executable, "4").arg(size).env(FINDINGS_FILE, &findings));
    fs::remove_file(&executable).map_err(|error| format!("{of}: {error}"))?;
    let found = Findings::read(&findings).map_err(|error| format!("{of}: {error}: {}", ran.stderr))?;
    let ended = found.end == End::Exited && ran.stdout.contains("result ");
    match (seeded, found.races.len(), ran.code) {
        (false, 0, 0) | (true, 1.., 66) if ended => Ok(()),
        (_, races, code) => Err(format!("{of}: {races} races, exit code {code}: {}", ran.stderr)),
    }
}

#[test]
fn kernels_are_race_free_and_their_seeded_races_are_found() {
    let directory = Directory::new("kernels");
    let mut wrong = Vec::new();
    for (name, size) in KERNELS {
        for level in ["-O0", "-O2"] {
            for seeded in [false, true] {
                wrong.extend(check(&directory, name, size, level, seeded).err());
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_kernel_is_tried() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/openmp");
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let sources = files.filter(|path| path.extension().is_some_and(|extension| extension == "c"));
    let mut names: Vec<String> =
        sources.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(names, KERNELS.map(|(name, _)| name));
}
