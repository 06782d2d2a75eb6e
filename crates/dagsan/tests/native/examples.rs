//! Every example says in its first lines how the last line of its report begins, and it does.
//!
//! ```text
//! //! cargo dagsan run --bin missing_get # 1 race on a heap block of 80 bytes
//! ```

use std::collections::BTreeSet;
use std::fs;

use crate::support::{EXAMPLES, cargo_dagsan, run, workspace};

#[test]
fn examples_keep_their_promises_and_have_twins() {
    let _built = &*EXAMPLES;
    let (mut clean, mut not_clean) = (BTreeSet::new(), BTreeSet::new());
    for entry in fs::read_dir(workspace("examples/native/src/bin")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let source = fs::read_to_string(&path).unwrap();
        let command = format!("//! cargo dagsan run --bin {name} # ");
        let promise = source.lines().find_map(|line| line.strip_prefix(&command));
        let promise = promise.unwrap_or_else(|| panic!("{name} promises nothing"));

        let ran = run(&mut cargo_dagsan(&workspace("examples/native"), &["run", "--quiet", "--bin", name]));
        let verdict = ran.stderr.lines().last().unwrap_or_default();
        assert!(verdict.starts_with(promise), "{name}\n{}", ran.stderr);
        let code = match promise.split(':').next().unwrap() {
            "race-free" => 0,
            "deadlock" => 65,
            _ => 66,
        };
        assert_eq!(ran.code, code, "{name}\n{}", ran.stderr);
        let pair = name.trim_end_matches("_fixed").trim_end_matches("_racy").to_owned();
        if code == 0 {
            clean.insert(pair)
        } else {
            not_clean.insert(pair)
        };
    }
    assert_eq!(clean, not_clean);
    assert!(!clean.is_empty());
}
