//! The corpus, program by program, with every engine.

use std::collections::BTreeSet;
use std::path::Path;

use dagsan_core::{Detector, order};
use dagsan_lang::{CompileOptions, End, Limits, Program};

#[test]
fn corpus() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut failures = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "task") {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        let expected = source.lines().next().unwrap().trim_start_matches("// expect: ").trim().to_owned();
        let found = match Program::compile(&source, &CompileOptions::default()) {
            Err(diagnostics) => format!("error {}", diagnostics[0]),
            Ok(program) => {
                let mut detector = Detector::new(order::default_engine(), Default::default());
                let run = program.run(&Limits::default(), &mut detector);
                match &run.end {
                    End::Failed(failure) => format!("error {}", failure.message),
                    End::Deadlock(_) => "deadlock".to_owned(),
                    End::Refused(e) => format!("refused {e}"),
                    End::Stopped => "stopped".to_owned(),
                    End::Finished => {
                        let names: BTreeSet<String> =
                            detector.races().iter().flat_map(|r| run.location_names(r.location)).collect();
                        if names.is_empty() {
                            "race-free".into()
                        } else {
                            format!("race {}", names.into_iter().collect::<Vec<_>>().join(", "))
                        }
                    }
                }
            }
        };
        let norm = |s: &str| -> BTreeSet<String> { s.split([',', ' ']).map(|s| s.to_owned()).filter(|s| !s.is_empty()).collect() };
        let same = if let Some(t) = expected.strip_prefix("error ") { found.contains(t) } else { norm(&expected) == norm(&found) };
        if !same {
            failures.push(format!("{}: expected {expected}, found {found}", path.file_name().unwrap().to_string_lossy()));
        }
    }
    failures.sort();
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}
