//! The project's corpus, in all schedules, with every engine that supports a program.

use std::path::Path;
use std::process::Command;

use dagsan_core::order::ENGINES;

#[test]
fn every_engine_finds_what_the_programs_say() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    for engine in ENGINES {
        let output = Command::new(env!("CARGO_BIN_EXE_dagsan"))
            .args(["check", "--expect", "--engine", engine.name])
            .arg(&corpus)
            .output()
            .expect("the command can be started");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{}:\n{text}", engine.name);
        let last = text.lines().last().unwrap_or_default();
        assert!(last.contains("as expected") && !last.contains("unexpected"), "{}: {last}", engine.name);
    }
}
