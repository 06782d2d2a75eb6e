//! What the user's toolchain and cargo's configuration say: host, target directory, wrapper, runner, linker.
//!
//! cargo can print its merged configuration, but on stable only if it is told that it may (`RUSTC_BOOTSTRAP`, for
//! this one call). If it still will not, only environment variables are known, and a runner or a wrapper from a
//! configuration file is not chained.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

/// The only target.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Its name in environment variables.
const TARGET_VARIABLE: &str = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU";

/// cargo, as it was started.
pub fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// What the compiler says of itself.
pub fn rustc_version() -> Result<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(&rustc)
        .arg("-vV")
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}: install Rust", rustc.display()))?;
    ensure!(output.status.success(), "{} does not work: see above", rustc.display());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Is the toolchain one that we support? If not, says what to do; if so, which LLVM it has.
pub fn check_host(target: Option<&str>) -> Result<u32> {
    let text = rustc_version()?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or("an unknown host");
    ensure!(host == TARGET, "cargo dagsan runs on {TARGET} only, and this toolchain is for {host}");
    match target {
        None | Some(TARGET) => Ok(llvm(&text)),
        Some(other) => bail!("--target {other} is not supported: leave it out to check on {TARGET}"),
    }
}

/// The version of LLVM that `rustc -vV` tells of; 0 if it tells of none.
fn llvm(text: &str) -> u32 {
    let version = text.lines().find_map(|line| line.strip_prefix("LLVM version: "));
    version.and_then(|version| version.split('.').next()?.parse().ok()).unwrap_or(0)
}

/// The part of `cargo metadata` that is needed.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    pub target_directory: PathBuf,
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    manifest_path: PathBuf,
}

impl Metadata {
    /// The directories of the packages of the workspace.
    pub fn packages(&self) -> Vec<PathBuf> {
        self.packages.iter().filter_map(|package| Some(package.manifest_path.parent()?.to_owned())).collect()
    }

    /// Asks cargo. Its own message says why, if there is no package.
    pub fn read(manifest_path: Option<&Path>) -> Result<Metadata> {
        let mut command = cargo();
        command.args(["metadata", "--no-deps", "--format-version=1"]);
        if let Some(path) = manifest_path {
            command.arg("--manifest-path").arg(path);
        }
        let output = command.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
        ensure!(output.status.success(), "cargo cannot read the package: see above");
        serde_json::from_slice(&output.stdout).context("cargo metadata is not as expected")
    }
}

/// cargo's configuration, merged by cargo.
#[derive(Debug)]
pub struct Config {
    values: Value,
}

impl Config {
    /// Asks cargo.
    pub fn read() -> Config {
        let output = cargo()
            .args(["-Zunstable-options", "config", "get", "--format=json"])
            .env("RUSTC_BOOTSTRAP", "1")
            .stderr(Stdio::null())
            .output();
        let values = output.ok().and_then(|output| serde_json::from_slice(&output.stdout).ok());
        Config { values: values.unwrap_or_default() }
    }

    /// The user's rustc wrapper.
    pub fn wrapper(&self) -> Option<PathBuf> {
        let variable = ["RUSTC_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER"].into_iter().find_map(env::var_os);
        let value = variable.or_else(|| self.values["build"]["rustc-wrapper"].as_str().map(OsString::from));
        // An empty variable turns a configured wrapper off.
        value.filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// The user's runner for the target, and its arguments.
    pub fn runner(&self) -> Vec<String> {
        if let Ok(line) = env::var(format!("{TARGET_VARIABLE}_RUNNER")) {
            return words(&line);
        }
        match &self.values["target"][TARGET]["runner"] {
            Value::String(line) => words(line),
            Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }

    /// Targets given as `cfg(…)` that have a runner. Which of them cargo would take, only cargo knows.
    pub fn conditional_runners(&self) -> Vec<&str> {
        let targets = self.values["target"].as_object();
        let with_runner = targets.into_iter().flatten().filter(|(_, target)| !target["runner"].is_null());
        with_runner.map(|(name, _)| name.as_str()).filter(|name| name.starts_with("cfg(")).collect()
    }

    /// Is there a linker? rustc takes `cc` if the user names none.
    pub fn check_linker(&self) -> Result<()> {
        let named = env::var_os(format!("{TARGET_VARIABLE}_LINKER")).is_some()
            || self.values["target"][TARGET]["linker"].is_string();
        ensure!(
            named || in_path(OsStr::new("cc")),
            "there is no linker `cc`: install a C compiler (on Debian and Ubuntu: apt install gcc)"
        );
        Ok(())
    }
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn in_path(program: &OsStr) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_version_of_llvm_is_read() {
        assert_eq!(llvm("rustc 1.95.0\nrelease: 1.95.0\nLLVM version: 22.1.2\n"), 22);
        assert_eq!((llvm("rustc 1.95.0"), llvm("LLVM version: rust")), (0, 0));
    }

    #[test]
    fn runners_are_strings_or_arrays() {
        let runner =
            |value: Value| Config { values: json!({ "target": { TARGET: { "runner": value } } }) }.runner();
        assert_eq!(runner(json!("qemu -L x")), ["qemu", "-L", "x"]);
        assert_eq!(runner(json!(["a b", "c"])), ["a b", "c"]);
        assert!(runner(Value::Null).is_empty());
        let config = Config { values: json!({ "target": { "cfg(unix)": { "runner": "x" }, "cfg(b)": {} } }) };
        assert_eq!(config.conditional_runners(), ["cfg(unix)"]);
        assert!(Config { values: Value::Null }.runner().is_empty());
    }

    #[test]
    fn other_targets_are_refused() {
        assert!(check_host(Some(TARGET)).is_ok());
        let error = check_host(Some("wasm32-wasip1")).unwrap_err().to_string();
        assert!(error.contains("wasm32-wasip1 is not supported"), "{error}");
    }
}
