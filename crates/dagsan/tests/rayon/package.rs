//! What users see of the drop-in: nothing in their packages, and an error for a version that it does not know.

use std::fs;

use crate::support::{Directory, cargo_dagsan, run, workspace};

#[test]
fn the_package_is_left_as_it_was() {
    let files = ["tests/rayon/Cargo.toml", "tests/rayon/Cargo.lock"].map(workspace);
    let read = || files.each_ref().map(|file| fs::read_to_string(file).unwrap());
    let before = read();
    let (code, output) = run(&mut cargo_dagsan(&workspace("tests/rayon"), &["run", "-q", "--", "counter"]));
    assert_eq!(code, 66, "{output:?}");
    assert_eq!(before, read());
}

/// ThreadSanitizer reports races in rayon's own deques here: docs/rayon.md.
#[test]
fn the_scheduler_is_not_held_against_the_program() {
    let (code, output) = run(&mut cargo_dagsan(&workspace("tests/rayon"), &["run", "-q", "--bin", "sums"]));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(code == 0 && text.starts_with("race-free: "), "{text}");
}

#[test]
fn a_version_that_is_not_known_is_refused_with_the_next_step() {
    let package = Directory::new("old");
    fs::create_dir(package.0.join("src")).unwrap();
    fs::write(package.0.join("src/main.rs"), "fn main() { rayon::join(|| (), || ()); }\n").unwrap();
    let manifest = "[package]\nname = \"old\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
                    rayon = \"=1.7.0\"\nrayon-core = \"=1.11.0\"\n";
    fs::write(package.0.join("Cargo.toml"), manifest).unwrap();
    let (code, output) = run(&mut cargo_dagsan(&package.0, &["build"]));
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(code, 101, "cargo's code for a build that fails\n{text}");
    assert!(text.contains("rayon-core 1.11.0 is not supported"), "{text}");
    assert!(text.contains("cargo update -p rayon-core --precise 1.13.0"), "{text}");
}
