//! What programs are linked with, and the pass that goes into clang: built once for a state of DagSan's sources, and kept in the user's cache. Each version, and each
//! checkout, has a directory of its own there: one is not built anew under what another one links.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail, ensure};

use crate::native::cc::{Language, missing};
use crate::native::sources::{self, Sources};
use crate::native::{pass, runtime, status};

/// What was built.
pub struct Library {
    pub archive: PathBuf,
    /// Functions of the C library that tell what they touch.
    pub strings: PathBuf,
    /// Where `omp.h` is.
    pub include: PathBuf,
    /// The pass, if it can be loaded into the compiler.
    pub pass: Option<PathBuf>,
}

/// The crates that it is made of.
const CRATES: [&str; 5] = ["dagsan-omp", "dagsan-rt", "dagsan-core", "dagsan-findings", "dagsan-pass"];

/// Builds what is not there.
pub fn prepare(compiler: &OsStr, language: Language) -> Result<Library> {
    let sources = sources::find()?;
    let include = sources.root.join("crates").join("dagsan-omp").join("include");
    let directory = directory(&sources.root)?;
    let state = state_of(&sources.root)?;
    let pass = pass_for(&sources, &directory, state, compiler, language)?;
    let name = if pass.is_some() { "runtime" } else { "runtime-without-pass" };
    let own = directory.join(name);
    let archive = release(&own).join("libdagsan_omp.a");
    let strings = own.join("strings.o");
    if !is_built(&own, state) {
        status::progress("auto", "Compiling", "dagsan runtime for OpenMP");
        let features = if pass.is_some() { "callers pass" } else { "callers" };
        runtime::package(&sources, &own, "dagsan-omp", features, "")?;
        ensure!(archive.exists(), "{} was built and is not there", archive.display());
        let file = sources.root.join("crates").join("dagsan-omp").join("src").join("strings.c");
        compile_strings(compiler, language, &file, &strings)?;
        mark_built(&own, state)?;
    }
    Ok(Library { archive, strings, include, pass })
}

/// Where what is built of these sources is kept. Those of an installed command are in a directory that has its version in its name.
fn directory(root: &Path) -> Result<PathBuf> {
    let mut digest = DefaultHasher::new();
    root.hash(&mut digest);
    Ok(sources::cache()?.join(sources::COMPILERS).join(format!("{:016x}", digest.finish())))
}

/// Compiles a file of the runtime that is in C. It has no hooks, and is as good for C as for C++.
fn compile_strings(compiler: &OsStr, language: Language, file: &Path, object: &Path) -> Result<()> {
    let mut command = Command::new(compiler);
    command.args(["-x", "c", "-O2", "-g", "-fPIC", "-fno-builtin", "-fno-omit-frame-pointer", "-c", "-o"]);
    let output = match command.arg(object).arg(file).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("{}", missing(Path::new(compiler), language))
        }
        other => other.with_context(|| format!("cannot start {}", compiler.display()))?,
    };
    ensure!(
        output.status.success(),
        "{}\n{} cannot be compiled: see above",
        String::from_utf8_lossy(&output.stderr).trim_end(),
        file.display()
    );
    Ok(())
}

fn release(directory: &Path) -> PathBuf {
    directory.join(crate::native::config::TARGET).join("release")
}

fn is_built(directory: &Path, state: u64) -> bool {
    fs::read_to_string(directory.join("built")).is_ok_and(|known| known == format!("{state:x}"))
}

fn mark_built(directory: &Path, state: u64) -> Result<()> {
    let file = directory.join("built");
    fs::write(&file, format!("{state:x}")).with_context(|| format!("cannot write {}", file.display()))
}

/// Changes with the sources, and with the command.
fn state_of(source: &Path) -> Result<u64> {
    let mut digest = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut digest);
    source.hash(&mut digest);
    for name in CRATES {
        let directory = source.join("crates").join(name);
        hash_files(&directory, &mut digest)
            .with_context(|| format!("cannot read {}", directory.display()))?;
    }
    Ok(digest.finish())
}

fn hash_files(directory: &Path, digest: &mut DefaultHasher) -> std::io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(directory)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            hash_files(&entry.path(), digest)?;
        } else {
            let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            (entry.file_name(), metadata.len(), modified).hash(digest);
        }
    }
    Ok(())
}

/// The pass, if this compiler takes it. That is tried once for each compiler.
fn pass_for(
    sources: &Sources,
    directory: &Path,
    state: u64,
    compiler: &OsStr,
    language: Language,
) -> Result<Option<PathBuf>> {
    if env::var("DAGSAN_PASS").is_ok_and(|value| matches!(&*value, "0" | "off" | "no")) {
        return Ok(None);
    }
    let own = directory.join("pass");
    let library = release(&own).join("libdagsan_pass.so");
    let mut digest = DefaultHasher::new();
    (state, compiler).hash(&mut digest);
    let tried = directory.join(format!("compiler-{:x}", digest.finish()));
    match fs::read_to_string(&tried).ok().as_deref() {
        Some("takes it") => return Ok(Some(library)),
        Some(_) => return Ok(None),
        None => {}
    }
    if !is_built(&own, state) {
        status::progress("auto", "Compiling", "dagsan pass for clang");
        runtime::package(sources, &own, "dagsan-pass", "", "")?;
        mark_built(&own, state)?;
    }
    let takes = attempt(directory, compiler, language, &library)?;
    let text = if takes { "takes it" } else { "does not take it" };
    fs::write(&tried, text).with_context(|| format!("cannot write {}", tried.display()))?;
    if !takes {
        let seen = "accesses of other sizes than 1, 2, 4, 8 and 16 bytes are not seen";
        status::warning(
            "auto",
            &format!("dagsan's own pass cannot be loaded into {}: {seen}", compiler.display()),
        );
    }
    Ok(takes.then_some(library))
}

/// Reads three bytes, for which ThreadSanitizer's pass has no hook.
const PROBE: &str = "unsigned _BitInt(24) three(const unsigned _BitInt(24) *bytes) { return *bytes; }\n";
const HOOK: &[u8] = b"__dagsan_miss_read";

/// Compiles something with the pass. Are its hooks there?
fn attempt(directory: &Path, compiler: &OsStr, language: Language, library: &Path) -> Result<bool> {
    let own = directory.join(format!("probe.{}", std::process::id()));
    let cannot = || format!("cannot prepare {}", own.display());
    fs::create_dir_all(&own).with_context(cannot)?;
    let (source, object) = (own.join("probe.c"), own.join("probe.o"));
    fs::write(&source, PROBE).with_context(cannot)?;
    let mut command = Command::new(compiler);
    command.args(["-x", "c", "-std=c2x", "-O1", "-fsanitize=thread", "-c", "-o"]).arg(&object).arg(&source);
    pass::preload(&mut command, library);
    let ran = command.output();
    let output = match ran {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            fs::remove_dir_all(&own).with_context(cannot)?;
            bail!("{}", missing(Path::new(compiler), language))
        }
        other => other.with_context(|| format!("cannot start {}", compiler.display()))?,
    };
    let bytes = fs::read(&object).unwrap_or_default();
    fs::remove_dir_all(&own).with_context(cannot)?;
    if !output.status.success() && !is_clang(compiler) {
        bail!("{} is not clang, which dagsan needs: see DAGSAN_CC and DAGSAN_CXX", compiler.display());
    }
    Ok(bytes.windows(HOOK.len()).any(|window| window == HOOK))
}

fn is_clang(compiler: &OsStr) -> bool {
    let version = Command::new(compiler).arg("--version").output();
    version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("clang"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_and_each_checkout_has_its_own() {
        let of = |root: &str| directory(Path::new(root)).unwrap();
        assert_ne!(of("/one"), of("/two"));
        assert_eq!(of("/one"), of("/one"));
    }
}
