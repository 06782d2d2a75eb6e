//! `cargo xtask test`: everything that must pass before a commit, cheapest first.
//!
//! The steps are plain commands, so that a failed one can be repeated by hand without xtask.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::tidy;

/// Which steps to run.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Args {
    /// Only format, tidy, clippy and the tests
    #[arg(long)]
    fast: bool,
    /// Also check the dependencies against the advisory database, which needs the network
    #[arg(long, conflicts_with = "fast")]
    advisories: bool,
}

/// Runs the steps in order, and stops at the first that fails.
pub fn run(root: &Path, args: Args) -> Result<()> {
    let start = Instant::now();
    require_components(root)?;
    let steps = steps(args);
    for (number, step) in steps.iter().enumerate() {
        println!("\n==> [{}/{}] {}: {}", number + 1, steps.len(), step.name, step.work);
        let begin = Instant::now();
        let result = step.run(root);
        let seconds = begin.elapsed().as_secs_f64();
        if let Err(error) = result {
            bail!("{} failed after {seconds:.1} s: {error:#}\nrepeat it with: {}", step.name, step.work);
        }
        println!("    {}: ok in {seconds:.1} s", step.name);
    }
    println!("\nall {} steps passed in {:.1} s", steps.len(), start.elapsed().as_secs_f64());
    Ok(())
}

/// One step.
#[derive(Debug)]
struct Step {
    name: &'static str,
    /// What must hold, or be made to hold, before the work can mean anything.
    before: Option<fn(&Path) -> Result<()>>,
    work: Work,
}

/// What a step does. Displayed as the command that repeats it.
#[derive(Debug)]
enum Work {
    /// A cargo command, with variables for its environment.
    Cargo { env: &'static [(&'static str, &'static str)], args: &'static [&'static str] },
    /// Tidy, in this process.
    Tidy,
}

/// Random joins, whose halves run beside each other.
const JOINS: &[&str] =
    &["xtask", "fuzz-native", "--joins", "--programs", "2000", "--options", "workers=4:delays=1"];

const LOOM_ENV: &[(&str, &str)] = &[("RUSTFLAGS", "--cfg loom")];
// A directory of its own: other flags would throw away what the other steps have built.
const LOOM_ARGS: &[&str] = &[
    "test",
    "-p",
    "dagsan-core",
    "-p",
    "dagsan-task",
    "--release",
    "--lib",
    "--target-dir",
    "target/loom",
    "loom",
];

fn steps(args: Args) -> Vec<Step> {
    let cargo = |name, args| Step { name, before: None, work: Work::Cargo { env: &[], args } };
    let mut steps = vec![
        cargo("format", &["fmt", "--all", "--check"]),
        Step { name: "tidy", before: None, work: Work::Tidy },
        cargo("clippy", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
        // Not nextest: it leaves out the doctests.
        Step {
            name: "tests",
            before: Some(require_packages),
            work: Work::Cargo { env: &[], args: &["test", "--workspace"] },
        },
    ];
    if args.fast {
        return steps;
    }
    steps.push(Step {
        name: "loom",
        before: Some(require_loom_tests),
        work: Work::Cargo { env: LOOM_ENV, args: LOOM_ARGS },
    });
    steps.push(cargo("native programs", &["xtask", "fuzz-native", "--programs", "4000"]));
    steps.push(cargo("workers", JOINS));
    steps.push(cargo("thread programs", &["xtask", "fuzz-native", "--threads", "--programs", "1000"]));
    steps.push(cargo("compiled programs", &["xtask", "fuzz-native", "--compiled", "--programs", "60"]));
    steps.push(Step {
        name: "OpenMP programs",
        before: Some(require_packages),
        work: Work::Cargo { env: &[], args: &["xtask", "fuzz-openmp", "--programs", "100"] },
    });
    steps.push(cargo("marks", &["xtask", "fuzz-marks", "--count", "300"]));
    steps.push(Step {
        name: "doc",
        before: None,
        work: Work::Cargo {
            env: &[("RUSTDOCFLAGS", "-Dwarnings")],
            args: &["doc", "--workspace", "--no-deps", "--document-private-items"],
        },
    });
    steps.push(cargo("book", &["xtask", "book"]));
    // Without `advisories`: they are fetched by git from the network, which the machines that run
    // this for every change do not have; and a new advisory would fail a change that is not at fault.
    steps.push(Step {
        name: "deny",
        before: Some(require_deny),
        work: Work::Cargo { env: &[], args: &["deny", "check", "bans", "licenses", "sources"] },
    });
    if args.advisories {
        steps.push(cargo("advisories", &["deny", "check", "advisories"]));
    }
    steps
}

impl Step {
    fn run(&self, root: &Path) -> Result<()> {
        if let Some(before) = self.before {
            before(root)?;
        }
        match self.work {
            Work::Tidy => tidy::run(root),
            Work::Cargo { env, args } => run_cargo(root, env, args),
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Work::Cargo { env, args } = self else {
            return f.write_str("cargo xtask tidy");
        };
        for (name, value) in *env {
            write!(f, "{name}=\"{value}\" ")?;
        }
        write!(f, "cargo {}", args.join(" "))
    }
}

/// Cargo as the user would call it: by name, so that the printed command is the one that ran.
fn cargo(root: &Path, env: &[(&str, &str)], args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(args).envs(env.iter().copied()).current_dir(root);
    command
}

fn run_cargo(root: &Path, env: &[(&str, &str)], args: &[&str]) -> Result<()> {
    let status = cargo(root, env, args).status().context("cannot start cargo; is it in PATH?")?;
    ensure!(status.success(), "cargo {} ended with {status}", args[0]);
    Ok(())
}

/// Does `cargo <name>` exist?
fn has_subcommand(root: &Path, name: &str) -> bool {
    let mut command = cargo(root, &[], &[name, "--version"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn require_components(root: &Path) -> Result<()> {
    let missing: Vec<&str> =
        ["clippy", "fmt"].into_iter().filter(|component| !has_subcommand(root, component)).collect();
    ensure!(
        missing.is_empty(),
        "this toolchain has no cargo {}; add it with: rustup component add clippy rustfmt",
        missing.join(" and no cargo ")
    );
    Ok(())
}

fn require_deny(root: &Path) -> Result<()> {
    if has_subcommand(root, "deny") {
        return Ok(());
    }
    println!("cargo-deny is missing; installing it, which takes some minutes");
    run_cargo(root, &[], &["install", "cargo-deny", "--locked"])
        .context("cannot install cargo-deny; install it by hand, then run `cargo xtask test` again")
}

/// Programs of the distribution that tests start: the clang that compiles tests in C, and the browser that pages are opened in.
/// The packages have the same names.
const PACKAGES: [&str; 2] = ["clang-19", "chromium"];

fn require_packages(_root: &Path) -> Result<()> {
    let is_missing = |program: &&str| {
        let mut version = Command::new(program);
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        !version.status().is_ok_and(|status| status.success())
    };
    for package in PACKAGES.into_iter().filter(is_missing) {
        println!("{package} is missing; installing it");
        let install = ["install", "--yes", "--no-install-recommends", package];
        let apt_get = |arguments: &[&str]| {
            Command::new("apt-get").args(arguments).status().is_ok_and(|status| status.success())
        };
        // Lists of packages may be missing, or name versions that are gone.
        ensure!(
            apt_get(&install) || (apt_get(&["update"]) && apt_get(&install)),
            "cannot install {package}; install it by hand, then run `cargo xtask test` again"
        );
    }
    Ok(())
}

/// Cargo is content when a filter matches no test: that would be a step that checks nothing.
fn require_loom_tests(root: &Path) -> Result<()> {
    let args = [LOOM_ARGS, &["--", "--list"]].concat();
    let output = cargo(root, LOOM_ENV, &args)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo; is it in PATH?")?;
    ensure!(output.status.success(), "the loom tests do not build: cargo ended with {}", output.status);
    let tests = count_loom_tests(&String::from_utf8_lossy(&output.stdout));
    ensure!(tests > 0, "there is no loom model test: no test or test module is named loom_…");
    Ok(())
}

/// Counts the loom tests in the output of `cargo test -- --list`. The filter matches parts of words.
fn count_loom_tests(list: &str) -> usize {
    list.lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .filter(|path| path.split("::").any(|name| name == "loom" || name.starts_with("loom_")))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(fast: bool, advisories: bool) -> Vec<String> {
        steps(Args { fast, advisories }).iter().map(|step| step.work.to_string()).collect()
    }

    #[test]
    fn steps_come_in_order_as_commands_to_repeat() {
        let all = [
            "cargo fmt --all --check",
            "cargo xtask tidy",
            "cargo clippy --workspace --all-targets -- -D warnings",
            "cargo test --workspace",
            "RUSTFLAGS=\"--cfg loom\" \
             cargo test -p dagsan-core -p dagsan-task --release --lib --target-dir target/loom loom",
            "cargo xtask fuzz-native --programs 4000",
            "cargo xtask fuzz-native --joins --programs 2000 --options workers=4:delays=1",
            "cargo xtask fuzz-native --threads --programs 1000",
            "cargo xtask fuzz-native --compiled --programs 60",
            "cargo xtask fuzz-openmp --programs 100",
            "cargo xtask fuzz-marks --count 300",
            "RUSTDOCFLAGS=\"-Dwarnings\" cargo doc --workspace --no-deps --document-private-items",
            "cargo xtask book",
            "cargo deny check bans licenses sources",
            "cargo deny check advisories",
        ];
        assert_eq!(commands(false, true), all);
        assert_eq!(commands(false, false), all[..14]);
        assert_eq!(commands(true, false), all[..4]);
    }

    #[test]
    fn only_loom_tests_count_as_loom_tests() {
        let list = "order::jump::loom_publish: test\nloom_tests::two_readers: test\n\
                    bytes::bloom_filter: test\nloom_speed: benchmark\n\n3 tests, 1 benchmark\n";
        assert_eq!(count_loom_tests(list), 2);
        assert_eq!(count_loom_tests("\n0 tests, 0 benchmarks\n"), 0);
    }
}
