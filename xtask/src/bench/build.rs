//! `cargo xtask bench build`: how long `cargo dagsan build` takes beside `cargo build`.
//!
//! Each package is built from nothing, plainly and with DagSan, in turn, in the profiles of cargo and as its own manifest says. The
//! runtime and the pass are built before the clock starts: that is once for each target directory.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::bench::native::table::{markdown, text};
use crate::bench::native::{Page, TARGET, cargo_dagsan, forget_programs, process, target_directory};

/// Options of `bench build`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only packages whose path contains this
    #[arg(long, default_value = "")]
    package: String,
    /// Builds of which the best counts
    #[arg(long, default_value_t = 2)]
    runs: u32,
    /// Put the table into the page in docs/benchmarks
    #[arg(long)]
    write: bool,
}

const PAGE: Page = Page {
    name: "docs/benchmarks/build.md",
    marks: ["<!-- measured: by cargo xtask bench build --write -->\n", "<!-- end -->\n"],
};

const PACKAGES: [&str; 3] = ["kernels", "kernels/rayon", "tests/native"];
const PROFILES: [(&str, &[&str]); 2] = [("dev", &[]), ("release", &["--release"])];

/// Some tests call the runtime by name, which plain programs do not have. They are linked all the same, and not run.
const WITHOUT_RUNTIME: &str = "-Clink-arg=-Wl,--unresolved-symbols=ignore-all";

/// So much longer may it take.
const AIM: f64 = 1.5;

/// How long something takes, in seconds.
#[derive(Debug, Clone, Copy)]
struct Time {
    real: f64,
    /// On all processors together.
    cpu: f64,
}

impl Time {
    fn best(self, other: Time) -> Time {
        Time { real: self.real.min(other.real), cpu: self.cpu.min(other.cpu) }
    }
}

/// A package in a profile.
struct Row {
    package: &'static str,
    profile: &'static str,
    plain: Time,
    dagsan: Time,
}

/// Measures, and prints the table.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let builder = Builder {
        root,
        directory: target_directory(root).join("native").join("builds"),
        dagsan: cargo_dagsan(root)?,
    };
    let mut rows = Vec::new();
    for package in PACKAGES.into_iter().filter(|package| package.contains(&args.package)) {
        for (profile, flags) in PROFILES {
            println!("building {package}, {profile}");
            // Also builds the runtime and the pass, and brings what the package depends on.
            builder.dagsan(package, flags)?;
            let mut times = (builder.plain(package, flags)?, builder.dagsan(package, flags)?);
            for _ in 1..args.runs {
                times.0 = times.0.best(builder.plain(package, flags)?);
                times.1 = times.1.best(builder.dagsan(package, flags)?);
            }
            rows.push(Row { package, profile, plain: times.0, dagsan: times.1 });
        }
    }
    ensure!(!rows.is_empty(), "no package is called {}", args.package);
    let lines = table(&rows);
    let target = target(&rows);
    println!("\n{}\n{target}", text(&lines));
    if args.write {
        let measured = format!("{}\n- {target}\n\n", markdown(&lines));
        PAGE.write(root, &format!("`--runs {}`", args.runs), &measured)?;
    }
    Ok(())
}

struct Builder<'a> {
    root: &'a Path,
    directory: PathBuf,
    dagsan: PathBuf,
}

impl Builder<'_> {
    fn plain(&self, package: &str, flags: &[&str]) -> Result<Time> {
        let directory = self.directory.join("plain");
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", directory.display()));
            }
            _ => {}
        }
        let mut command = Command::new("cargo");
        command.env("RUSTFLAGS", WITHOUT_RUNTIME);
        self.build(command, &directory, package, flags)
    }

    fn dagsan(&self, package: &str, flags: &[&str]) -> Result<Time> {
        forget_programs(&self.directory)?;
        let mut command = Command::new(&self.dagsan);
        command.env_remove("RUSTFLAGS");
        self.build(command, &self.directory, package, flags)
    }

    fn build(&self, mut command: Command, directory: &Path, package: &str, flags: &[&str]) -> Result<Time> {
        command.args(["build", "--quiet", "--target", TARGET]).args(flags);
        command.arg("--manifest-path").arg(self.root.join(package).join("Cargo.toml"));
        command.arg("--target-dir").arg(directory).current_dir(self.root);
        let start = Instant::now();
        let ended = process::run(&mut command)?;
        let real = start.elapsed().as_secs_f64();
        ensure!(ended.status.success(), "the build of {package} ended with {}", ended.status);
        Ok(Time { real, cpu: ended.cpu })
    }
}

const HEAD: [&str; 8] = [
    "package",
    "profile",
    "plain, s",
    "dagsan, s",
    "dagsan/plain",
    "plain, processor s",
    "dagsan, processor s",
    "dagsan/plain",
];

fn table(rows: &[Row]) -> Vec<[String; 8]> {
    let mut lines = vec![HEAD.map(String::from)];
    for Row { package, profile, plain, dagsan } in rows {
        lines.push([
            (*package).to_owned(),
            (*profile).to_owned(),
            format!("{:.2}", plain.real),
            format!("{:.2}", dagsan.real),
            format!("{:.2}", dagsan.real / plain.real),
            format!("{:.2}", plain.cpu),
            format!("{:.2}", dagsan.cpu),
            format!("{:.2}", dagsan.cpu / plain.cpu),
        ]);
    }
    lines
}

/// What the worst build is, held against the aim.
fn target(rows: &[Row]) -> String {
    let ratio = |row: &Row| row.dagsan.real / row.plain.real;
    let worst = rows.iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let Some(worst) = worst else { return String::new() };
    let (most, verdict) = (ratio(worst), if ratio(worst) <= AIM { "met" } else { "missed" });
    let Row { package, profile, .. } = worst;
    format!("dagsan/plain (worst: {package}, {profile}): {most:.2}, at most {AIM}: {verdict}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_build_counts() {
        let time = |real, cpu| Time { real, cpu };
        let rows = [
            Row { package: "a", profile: "dev", plain: time(2.0, 4.0), dagsan: time(3.0, 4.0) },
            Row { package: "b", profile: "release", plain: time(2.0, 4.0), dagsan: time(4.0, 10.0) },
        ];
        assert_eq!(table(&rows)[1], ["a", "dev", "2.00", "3.00", "1.50", "4.00", "4.00", "1.00"]);
        assert_eq!(target(&rows[..1]), "dagsan/plain (worst: a, dev): 1.50, at most 1.5: met");
        assert_eq!(target(&rows), "dagsan/plain (worst: b, release): 2.00, at most 1.5: missed");
    }

    #[test]
    fn the_best_of_two_counts() {
        let best = Time { real: 1.0, cpu: 5.0 }.best(Time { real: 2.0, cpu: 4.0 });
        assert_eq!((best.real, best.cpu), (1.0, 4.0));
    }
}
