//! The pass that goes into the compiler (`dagsan-pass`): built like the runtime, and tried before anything relies on it.
//!
//! It takes the place of ThreadSanitizer's pass by the dynamic linker's preloading, which a compiler with LLVM inside
//! does not notice. So a function that reads three bytes is compiled first: without a hook on them, the pass is not used, the
//! program is compiled as ThreadSanitizer's pass needs it, and its verdict says what is not seen. That it works is kept, for
//! the compiler, the flags and the pass that it was tried with.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::native::config::{TARGET, rustc_version};
use crate::native::runtime;
use crate::native::sources::Sources;
use crate::native::wrapper;

/// The variable that switches it off.
const VARIABLE: &str = "DAGSAN_PASS";
/// The variable that the pass reads: which marks it leaves out.
pub const ELIMINATIONS: &str = "DAGSAN_ELIM";
/// Another one: the file that it tells its counts to.
pub const COUNTS: &str = "DAGSAN_COUNTS";
/// And one that the wrapper of rustc sets: may marks wait until modules are optimised a second time?
pub const LATER: &str = "DAGSAN_LATER";
/// And another: what code that is linked beside the program needs of it.
pub const OUTSIDE: &str = "DAGSAN_OUTSIDE";
/// The variable of the dynamic linker.
const PRELOAD: &str = "LD_PRELOAD";
const LIBRARY: &str = "libdagsan_pass.so";

/// Reads three bytes, which ThreadSanitizer's pass has no hook for.
const PROBE: &str = "#[inline(never)] pub fn three(bytes: &[u8; 3]) -> [u8; 3] { *bytes }\n";
/// The hook that it has then.
const HOOK: &[u8] = b"__dagsan_miss_read";

/// Who puts hooks on accesses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pass {
    /// Ours, from this library.
    Ours(PathBuf),
    /// ThreadSanitizer's, because of this.
    ThreadSanitizers(String),
}

impl Pass {
    /// The library, if it is ours.
    pub fn library(&self) -> Option<PathBuf> {
        match self {
            Pass::Ours(library) => Some(library.clone()),
            Pass::ThreadSanitizers(_) => None,
        }
    }
}

/// Builds it under `directory`, and tries it with the compiler, unless that has been done.
pub fn prepare(sources: &Sources, directory: &Path) -> Result<Pass> {
    if env::var(VARIABLE).is_ok_and(|value| matches!(&*value, "0" | "off" | "no")) {
        return Ok(Pass::ThreadSanitizers(format!("it is switched off by {VARIABLE}")));
    }
    let release = runtime::package(sources, directory, "dagsan-pass", "", "")?;
    let library = release.join(LIBRARY);
    let works = directory.join("works");
    let with = format!("{:x}\n{}\n{}", digest(&library)?, wrapper::flags(true), rustc_version()?);
    if fs::read_to_string(&works).is_ok_and(|known| known == with) {
        return Ok(Pass::Ours(library));
    }
    // Several commands may try at the same time, each by itself.
    let own = directory.join(format!("probe.{}", std::process::id()));
    fs::create_dir_all(&own).with_context(|| format!("cannot create {}", own.display()))?;
    let attempted = attempt(&own, &library);
    fs::remove_dir_all(&own).with_context(|| format!("cannot remove {}", own.display()))?;
    match attempted? {
        Some(why) => Ok(Pass::ThreadSanitizers(why)),
        None => {
            fs::write(&works, with).with_context(|| format!("cannot write {}", works.display()))?;
            Ok(Pass::Ours(library))
        }
    }
}

/// Changes with the library.
pub fn digest(library: &Path) -> Result<u64> {
    let bytes = fs::read(library).with_context(|| format!("cannot read {}", library.display()))?;
    let mut digest = DefaultHasher::new();
    bytes.hash(&mut digest);
    Ok(digest.finish())
}

/// Compiles the probe. Why the pass cannot be used; nothing if it can.
fn attempt(directory: &Path, library: &Path) -> Result<Option<String>> {
    let (source, object) = (directory.join("probe.rs"), directory.join("probe.o"));
    fs::write(&source, PROBE).with_context(|| format!("cannot write {}", source.display()))?;
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(&rustc);
    command.args(["--crate-type=lib", "--emit=obj", "-Copt-level=3", "--target", TARGET]);
    command.args(wrapper::library_flags(true)).arg("-o").arg(&object).arg(&source);
    preload(&mut command, library);
    command.env_remove(COUNTS);
    let output = command.env("RUSTC_BOOTSTRAP", "1").output().context("cannot start rustc")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let why = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("the compiler has failed");
        return Ok(Some(why.to_owned()));
    }
    let bytes = fs::read(&object).with_context(|| format!("cannot read {}", object.display()))?;
    let has_hook = bytes.windows(HOOK.len()).any(|window| window == HOOK);
    Ok((!has_hook).then(|| "the compiler's LLVM is not a shared library".to_owned()))
}

/// Has the dynamic linker load it into a compiler, before what the user preloads.
pub fn preload(command: &mut Command, library: &Path) {
    let theirs = env::var_os(PRELOAD).filter(|list| !list.is_empty());
    command.env(PRELOAD, preloaded(library, theirs.as_deref())).env_remove(LATER).env_remove(OUTSIDE);
}

fn preloaded(library: &Path, theirs: Option<&OsStr>) -> OsString {
    let mut list = library.as_os_str().to_owned();
    if let Some(theirs) = theirs {
        list.push(":");
        list.push(theirs);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_preloads_is_loaded_too() {
        let library = Path::new("/x/libdagsan_pass.so");
        assert_eq!(preloaded(library, None), "/x/libdagsan_pass.so");
        assert_eq!(preloaded(library, Some(OsStr::new("a.so"))), "/x/libdagsan_pass.so:a.so");
    }
}
