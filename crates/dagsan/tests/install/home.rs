//! An empty home, and DagSan installed into it.
//!
//! The packages are put together as for a registry, and unpacked. `[patch]` says that they are where the registry would have them. When the commands are
//! installed, the packages are moved away: what the commands need from then on, they have with them. Crates of others come from the
//! registry that the tests themselves were built from, and are compiled once for both (`build.build-dir`).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::{env, fs};

/// What is published, in the order of their needs.
pub const PUBLISHED: [&str; 7] = [
    "dagsan-core",
    "dagsan-findings",
    "dagsan-task",
    "dagsan-lang",
    "dagsan-explore",
    "dagsan-report",
    "dagsan",
];

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Seconds for what has to be compiled, on a machine with other work.
const LIMIT: &str = "1800";

/// A directory of the checkout.
pub fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("install")
}

/// Runs it, and wants it to succeed.
pub fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn cargo(current: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", LIMIT, "cargo"]).current_dir(current);
    for name in ["RUSTFLAGS", "RUSTC_WRAPPER", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"] {
        command.env_remove(name);
    }
    command
}

/// The directory of the packages as a registry has them, in their archives.
pub static ARCHIVES: LazyLock<PathBuf> = LazyLock::new(|| {
    let target = directory().join("package");
    let mut command = cargo(&checkout());
    command.args(["package", "--no-verify", "--allow-dirty", "--quiet", "--target-dir"]).arg(&target);
    succeed(command.args(PUBLISHED.iter().flat_map(|name| ["--package", name])));
    target.join("package")
});

/// A home, removed at the end. Not in the checkout, where cargo would take packages for parts of its workspace.
pub struct Home(pub PathBuf);

impl Drop for Home {
    fn drop(&mut self) {
        // A test that has failed says more than what it leaves behind.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Home {
    /// An empty one, into which DagSan is installed.
    pub fn install() -> Home {
        let path = env::temp_dir().join(format!("dagsan-home-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let home = Home(path.canonicalize().unwrap());
        let (packages, gone) = (directory().join("packages"), directory().join("gone"));
        // From the last time: what has not changed need not be compiled again.
        if gone.exists() {
            fs::rename(&gone, &packages).unwrap();
        }
        // What the user's programs need, while there is a network.
        let fetch = ["fetch", "--quiet", "--locked", "--manifest-path", "tests/rayon/Cargo.toml"];
        succeed(cargo(&checkout()).args(fetch));
        unpack(&packages);
        install(&packages, &home.0);
        fs::rename(&packages, &gone).unwrap();
        home
    }

    /// A program as it is started there, when the network is off.
    pub fn command(&self, program: &str, arguments: &[&str], current: &Path) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", LIMIT, program]).args(arguments).current_dir(current).env_clear();
        let mut path = self.0.join(".cargo/bin").into_os_string();
        path.push(":");
        path.push(env::var_os("PATH").unwrap());
        command.env("PATH", path).env("HOME", &self.0).env("CARGO_HOME", self.0.join(".cargo"));
        command.env("RUSTUP_HOME", real("RUSTUP_HOME", ".rustup"));
        if let Some(toolchain) = env::var_os("RUSTUP_TOOLCHAIN") {
            command.env("RUSTUP_TOOLCHAIN", toolchain);
        }
        // Nobody listens there.
        command.env("CARGO_HTTP_PROXY", "http://127.0.0.1:9");
        command
    }
}

fn unpack(packages: &Path) {
    let fresh = directory().join("fresh");
    fs::create_dir_all(&fresh).unwrap();
    fs::create_dir_all(packages).unwrap();
    let mut patches = String::new();
    let mut profiles = String::new();
    for name in PUBLISHED {
        let full = format!("{name}-{VERSION}");
        // In archives all files have the same old time, by which cargo would not know them from others.
        let mut tar = Command::new("tar");
        tar.arg("-xzmf").arg(ARCHIVES.join(format!("{full}.crate"))).arg("-C").arg(&fresh);
        succeed(&mut tar);
        let (old, new) = (packages.join(&full), fresh.join(&full));
        let mut diff = Command::new("diff");
        diff.args(["-r", "-q", "-x", ".cargo_vcs_info.json"]).arg(&old).arg(&new);
        if !diff.output().unwrap().status.success() {
            if old.exists() {
                fs::remove_dir_all(&old).unwrap();
            }
            fs::rename(new, old).unwrap();
        }
        patches += &format!("{name} = {{ path = \"{full}\" }}\n");
        profiles += &format!("[profile.dev.package.{name}]\nopt-level = 0\ndebug = false\n\n");
    }
    fs::remove_dir_all(fresh).unwrap();
    let root = fs::read_to_string(checkout().join("Cargo.toml")).unwrap();
    let (_, profile) = root.split_once("[profile.dev.package.\"*\"]").unwrap();
    let manifest = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\"*-{VERSION}\"]\n\n[patch.crates-io]\n{patches}\n{profiles}\
         [profile.dev.package.\"*\"]{profile}"
    );
    fs::write(packages.join("Cargo.toml"), manifest).unwrap();
    fs::copy(checkout().join("Cargo.lock"), packages.join("Cargo.lock")).unwrap();
    // Leaves out of the lock file what these do not need.
    succeed(cargo(packages).args(["metadata", "--format-version=1"]));
}

fn install(packages: &Path, home: &Path) {
    let cargo_home = home.join(".cargo");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let mut command = cargo(packages);
    command.args(["install", "--locked", "--debug", "--quiet", "--path"]).arg(format!("dagsan-{VERSION}"));
    command.arg("--root").arg(&cargo_home).arg("--target-dir").arg(directory().join("target"));
    succeed(command.env("CARGO_BUILD_BUILD_DIR", target));
    for shared in ["registry", "config.toml"] {
        let theirs = real("CARGO_HOME", ".cargo").join(shared);
        if theirs.exists() {
            std::os::unix::fs::symlink(theirs, cargo_home.join(shared)).unwrap();
        }
    }
}

fn real(variable: &str, name: &str) -> PathBuf {
    env::var_os(variable).map_or_else(|| Path::new(&env::var_os("HOME").unwrap()).join(name), PathBuf::from)
}
