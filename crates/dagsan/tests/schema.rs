//! Validates reports by their schemas: ours, and SARIF's.
//!
//! SARIF's is no part of this repository: it is in the package `serde-sarif`, which cargo fetches by its name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

static REPORT: LazyLock<Validator> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.schema.json");
    validator(&fs::read_to_string(path).unwrap())
});

static SARIF: LazyLock<Validator> = LazyLock::new(|| {
    let path = fetched("serde-sarif", "0.8.0", "src/schema.json");
    let text = fs::read_to_string(path).unwrap();
    // A lone bracket, which strict readers of regular expressions refuse. It describes a key that we do not write.
    let language = r"^[a-zA-Z]{2}|^[a-zA-Z]{2}-[a-zA-Z]{2}]?$";
    assert!(text.contains(language));
    validator(&text.replace(language, r"^[a-zA-Z]{2}(-[a-zA-Z]{2})?$"))
});

fn validator(schema: &str) -> Validator {
    jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap()
}

/// A file of a package that cargo has, or fetches.
fn fetched(package: &str, version: &str, file: &str) -> PathBuf {
    let directory =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fetched-{package}-{}", std::process::id()));
    fs::create_dir_all(directory.join("src")).unwrap();
    fs::write(directory.join("src/lib.rs"), "").unwrap();
    let manifest = format!(
        "[package]\nname = \"fetches\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n{package} = \"={version}\"\n"
    );
    fs::write(directory.join("Cargo.toml"), manifest).unwrap();
    let output = Command::new("cargo")
        .args(["metadata", "--format-version=1", "--manifest-path"])
        .arg(directory.join("Cargo.toml"))
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo cannot fetch {package}, which has {file}: {error}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found =
        metadata["packages"].as_array().unwrap().iter().find(|found| found["name"] == package).unwrap();
    fs::remove_dir_all(&directory).unwrap();
    Path::new(found["manifest_path"].as_str().unwrap()).with_file_name(file)
}

fn assert_valid(validator: &Validator, document: &Value) {
    let errors: Vec<String> =
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{}\nin {document:#}", errors.join("\n"));
}

/// Is it what docs/report.schema.json describes?
pub fn assert_report(document: &Value) {
    assert_valid(&REPORT, document);
}

/// Is it SARIF 2.1.0? The results of each run are named by rules that it has.
pub fn assert_sarif(document: &Value) {
    assert_valid(&SARIF, document);
    for run in document["runs"].as_array().unwrap() {
        for result in run["results"].as_array().unwrap() {
            let index = result["ruleIndex"].as_u64().unwrap() as usize;
            assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
        }
    }
}
