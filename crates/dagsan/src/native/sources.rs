//! DagSan's own sources, of which the runtime, the pass and the drop-in for rayon are built for the user's toolchain: always those that the command was
//! built with.
//!
//! If the checkout that it was built from is there, and still has them, they are taken from there. Otherwise, and always for a command that was
//! installed from a registry, they come out of the command itself (`build.rs`) and are kept in the user's cache, by version and digest, for all programs.

use std::env;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail};

/// The variable that names other sources.
const SOURCE: &str = "DAGSAN_SOURCE";
/// The variable that names another cache.
const CACHE: &str = "DAGSAN_CACHE";

mod carried {
    include!(concat!(env!("OUT_DIR"), "/carried.rs"));
}

/// Where the sources are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    /// The root of the workspace.
    pub root: PathBuf,
    /// Where to keep what is built of them for all programs; a checkout's is built for each program by itself.
    pub builds: Option<PathBuf>,
}

/// The directory of what is kept.
pub fn cache() -> Result<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set(CACHE)
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("dagsan")))
        .or_else(|| set("HOME").map(|home| home.join(".cache").join("dagsan")))
        .with_context(|| format!("there is no place for what is built: set {CACHE} to a directory"))
}

/// Finds them, or unpacks them.
pub fn find() -> Result<Sources> {
    if let Some(root) = env::var_os(SOURCE).map(PathBuf::from) {
        if !root.join("crates").join("dagsan-rt").join("Cargo.toml").is_file() {
            bail!(
                "the sources of the dagsan runtime are not in {}: set {SOURCE} to a checkout of DagSan, or to nothing at all: \
                 the command has sources with it",
                root.display()
            );
        }
        return Ok(Sources { root, builds: None });
    }
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).filter(|root| has_all(root));
    match checkout {
        Some(root) => Ok(Sources { root: root.to_owned(), builds: None }),
        None => {
            let (root, builds) = kept()?;
            unpack(&root).with_context(|| format!("cannot unpack dagsan's sources to {}", root.display()))?;
            Ok(Sources { root, builds: Some(builds) })
        }
    }
}

/// Removes what is kept of this and of other versions.
pub fn clean() -> Result<()> {
    // Without a place for it, nothing was kept.
    let Ok(cache) = cache() else { return Ok(()) };
    for name in [SOURCES, BUILDS, COMPILERS, ELSEWHERE, FOUND] {
        let directory = cache.join(name);
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", directory.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

const SOURCES: &str = "sources";
const BUILDS: &str = "runtime";
/// What programs in C are linked with.
pub const COMPILERS: &str = "cc";
/// What is built where there is no package.
pub const ELSEWHERE: &str = "elsewhere";
/// What programs in C were found to do.
pub const FOUND: &str = "findings";

/// Where sources and builds of this version are kept.
fn kept() -> Result<(PathBuf, PathBuf)> {
    // A path that is not absolute would be another one for the cargo that is started.
    let cache = std::path::absolute(cache()?).context("cannot tell the current directory")?;
    let version = format!("{}-{}", env!("CARGO_PKG_VERSION"), carried::DIGEST);
    Ok((cache.join(SOURCES).join(&version), cache.join(BUILDS).join(version)))
}

/// Are they all there, as they were? What is beside the crates is another thing in a checkout, and cargo changes it.
fn has_all(root: &Path) -> bool {
    let crates = carried::FILES.iter().filter(|(name, _)| name.starts_with("crates/"));
    crates.into_iter().all(|(name, bytes)| fs::read(root.join(name)).is_ok_and(|found| found == *bytes))
}

/// Writes them, if they are not there. Other commands may do so at the same time, and find all of it or nothing.
fn unpack(root: &Path) -> io::Result<()> {
    if has_all(root) {
        return Ok(());
    }
    // Each has a name of its own; only the number itself is shared.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let beside = |what: &str| root.with_file_name(format!("{what}.{}.{number}", std::process::id()));
    let (new, old) = (beside("new"), beside("old"));
    for (name, bytes) in carried::FILES {
        let path = new.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&new))?;
        fs::write(path, bytes)?;
    }
    // What is there is not as it was. Somebody else may have put it right meanwhile.
    if root.exists() && !has_all(root) {
        match fs::rename(root, &old) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            done => done.and_then(|()| fs::remove_dir_all(&old))?,
        }
    }
    match fs::rename(&new, root) {
        Err(_) if has_all(root) => fs::remove_dir_all(&new),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_carried_with_what_cargo_needs() {
        let names: Vec<&str> = carried::FILES.iter().map(|(name, _)| *name).collect();
        for crate_name in
            ["dagsan-core", "dagsan-findings", "dagsan-omp", "dagsan-pass", "dagsan-rt", "rayon-core"]
        {
            for file in ["Cargo.toml", "src/lib.rs"] {
                let name = format!("crates/{crate_name}/{file}");
                assert!(names.contains(&&*name), "{name}");
            }
        }
        for name in ["Cargo.toml", "Cargo.lock", "crates/dagsan-omp/include/omp.h"] {
            assert!(names.contains(&name), "{name}");
        }
    }

    #[test]
    fn they_are_unpacked_once_and_mended() {
        let directory = env::temp_dir().join(format!("dagsan-sources-{}", std::process::id()));
        let root = directory.join("x");
        unpack(&root).unwrap();
        assert!(has_all(&root));
        // cargo's own changes are left alone.
        fs::write(root.join("Cargo.lock"), "").unwrap();
        unpack(&root).unwrap();
        assert_eq!(fs::read(root.join("Cargo.lock")).unwrap(), b"");
        fs::remove_file(root.join("crates/dagsan-rt/src/lib.rs")).unwrap();
        assert!(!has_all(&root));
        unpack(&root).unwrap();
        assert!(has_all(&root));
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "nothing is left beside it");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn commands_that_unpack_at_the_same_time_find_all_of_it() {
        let directory = env::temp_dir().join(format!("dagsan-sources-race-{}", std::process::id()));
        let root = directory.join("x");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    unpack(&root).unwrap();
                    assert!(has_all(&root));
                });
            }
        });
        fs::remove_dir_all(&directory).unwrap();
    }
}
