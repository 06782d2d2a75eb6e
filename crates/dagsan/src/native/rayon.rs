//! rayon, unmodified: where the program's build compiles rayon-core, our drop-in is compiled in its place.
//!
//! Only the name of the source file changes, from that in the registry to that in DagSan's sources (`crates/rayon-core`).
//! So the program's Cargo.toml and Cargo.lock stay as they are, and rayon itself is the one that they name. The crates
//! that rayon-core needs are built, and not used.
//!
//! cargo believes that what comes from a registry never changes. So the sources of the drop-in are part of what
//! `flags` says, and with others all is built anew.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The crate, as rustc knows it.
pub const CRATE: &str = "rayon_core";

/// The versions whose interface the drop-in has: 1.12 and 1.13, which are rayon 1.8 to 1.12.
const VERSIONS: std::ops::RangeInclusive<(u32, u32)> = (1, 12)..=(1, 13);

/// The directory of the drop-in's sources.
pub fn source(dagsan: &Path) -> PathBuf {
    dagsan.join("crates").join("rayon-core").join("src")
}

/// The arguments of rustc with another source file, if the version of rayon-core is one that we know.
pub fn substitute(arguments: Vec<String>, source: &Path) -> Result<Vec<OsString>> {
    check_version(&env::var("CARGO_PKG_VERSION").unwrap_or_default())?;
    let ours = |argument: String| match is_root(&argument) {
        true => source.join("lib.rs").into(),
        false => argument.into(),
    };
    Ok(arguments.into_iter().map(ours).collect())
}

/// Is it the argument that names the source file?
fn is_root(argument: &str) -> bool {
    !argument.starts_with('-') && argument.ends_with("lib.rs")
}

fn check_version(version: &str) -> Result<()> {
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    let found = numbers.next().zip(numbers.next());
    if found.is_some_and(|found| VERSIONS.contains(&found)) {
        return Ok(());
    }
    bail!(
        "rayon-core {version} is not supported: cargo dagsan knows 1.12 and 1.13, which come with rayon 1.8 to 1.12; \
         change the version with `cargo update -p rayon-core --precise 1.13.0`, and that of rayon to match"
    )
}

/// Changes with the sources.
pub fn digest(source: &Path) -> Result<u64> {
    let cannot = || format!("cannot read {}", source.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(source).with_context(cannot)? {
        files.push(entry.with_context(cannot)?.path());
    }
    files.sort();
    let mut digest = DefaultHasher::new();
    for file in files {
        fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?.hash(&mut digest);
    }
    Ok(digest.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_without_our_interface_are_refused() {
        for version in ["1.12.0", "1.12.1", "1.13.0", "1.13.9-beta.1"] {
            assert!(check_version(version).is_ok(), "{version}");
        }
        for version in ["1.11.0", "1.9.3", "2.0.0", "1.14.0", "", "x.y"] {
            let error = check_version(version).unwrap_err().to_string();
            assert!(error.starts_with(&format!("rayon-core {version} is not supported: ")), "{error}");
        }
    }

    #[test]
    fn the_source_file_is_the_one_argument_that_changes() {
        let line = "--crate-name rayon_core --edition=2021 /r/rayon-core-1.13.0/src/lib.rs --crate-type lib \
                    --extern crossbeam_deque=/d/lib.rmeta --remap-path-prefix=/r/lib.rs=lib.rs";
        let root: Vec<&str> = line.split_whitespace().filter(|argument| is_root(argument)).collect();
        assert_eq!(root, ["/r/rayon-core-1.13.0/src/lib.rs"]);
    }

    #[test]
    fn the_drop_in_is_where_it_is_looked_for() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let source = source(root);
        assert!(source.join("lib.rs").is_file());
        assert_eq!(digest(&source).unwrap(), digest(&source).unwrap());
    }
}
