//! What is in the packages.

use std::fs;
use std::process::Command;

use crate::home::{ARCHIVES, PUBLISHED, VERSION, succeed};

/// The names of the files in a package.
fn files(name: &str) -> Vec<String> {
    let full = format!("{name}-{VERSION}");
    let mut tar = Command::new("tar");
    tar.arg("-tzf").arg(ARCHIVES.join(format!("{full}.crate")));
    let list = String::from_utf8(succeed(&mut tar).stdout).unwrap();
    list.lines().map(|line| line.strip_prefix(&format!("{full}/")).unwrap().to_owned()).collect()
}

#[test]
fn packages_have_what_a_registry_asks_for_and_no_tests() {
    for name in PUBLISHED {
        let files = files(name);
        for file in ["Cargo.toml", "Cargo.lock", "LICENSE-MIT", "LICENSE-APACHE", "README.md"] {
            assert!(files.iter().any(|found| found == file), "{name}: {file} is missing");
        }
        assert!(!files.iter().any(|file| file.starts_with("tests/")), "{name}: {files:?}");
        let manifest = succeed(
            Command::new("tar")
                .args(["-xzOf"])
                .arg(ARCHIVES.join(format!("{name}-{VERSION}.crate")))
                .arg(format!("{name}-{VERSION}/Cargo.toml")),
        );
        let manifest = String::from_utf8(manifest.stdout).unwrap();
        for key in ["description", "license", "readme", "rust-version", "keywords", "categories"] {
            assert!(manifest.contains(&format!("\n{key} = ")), "{name}: {key} is missing");
        }
    }
}

#[test]
fn the_command_carries_what_it_builds() {
    let files = files("dagsan");
    for name in ["dagsan-core", "dagsan-findings", "dagsan-omp", "dagsan-pass", "dagsan-rt", "rayon-core"] {
        let directory = crate::home::checkout().join("crates").join(name).join("src");
        for entry in fs::read_dir(directory).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            if file.ends_with(".rs") {
                let carried = format!("runtime/{name}/src/{file}");
                assert!(files.contains(&carried), "{carried} is missing");
            }
        }
        assert!(files.contains(&format!("runtime/{name}/manifest.toml")), "{files:?}");
    }
    assert!(files.iter().any(|file| file == "runtime/dagsan-omp/include/omp.h"));
}
