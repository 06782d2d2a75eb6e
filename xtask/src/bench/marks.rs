//! `cargo xtask bench marks`: how many marks the pass leaves in the kernels, and how many of them are executed.
//!
//! The kernels are built with `DAGSAN_COUNTS`: the pass tells what became of the accesses of each function, and the
//! program counts while it runs. In the code, a kernel is the functions that have its module in their names: those of other crates that
//! are made for its types and closures are among them, and what it shares with other kernels is not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use dagsan_findings::{FINDINGS_FILE, Marks};

use crate::bench::native::table::{markdown, text};
use crate::bench::native::{
    Page, TARGET, cargo_dagsan, checked, forget_programs, list, process, succeed, target_directory,
};

/// Options of `bench marks`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only kernels whose name contains this
    #[arg(long, default_value = "")]
    kernel: String,
    /// Put the tables into the page in docs/benchmarks
    #[arg(long)]
    write: bool,
}

const PAGE: Page = Page {
    name: "docs/benchmarks/marks.md",
    marks: ["<!-- measured: by cargo xtask bench marks --write -->\n", "<!-- end -->\n"],
};

/// Packages of kernels, and what stands before the names of their kernels.
const PACKAGES: [(&str, &str); 2] = [("kernels", ""), ("kernels/rayon", "rayon ")];

/// How the kernels are optimised.
const PROFILES: [(&str, &[&str]); 2] = [
    ("Fat LTO, one unit, as `bench native` has it", &[]),
    (
        "`--release` as cargo has it",
        &["--config=profile.release.lto=false", "--config=profile.release.codegen-units=16"],
    ),
];

/// What was counted of a kernel.
struct Row {
    kernel: String,
    code: Marks,
    executed: Marks,
}

/// Counts, and prints the tables.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let mut all = String::new();
    for (profile, settings) in PROFILES {
        let mut rows = Vec::new();
        for (package, prefix) in PACKAGES {
            rows.extend(count(root, package, prefix, settings, &args.kernel)?);
        }
        ensure!(!rows.is_empty(), "no kernel is called {}", args.kernel);
        for (what, of) in [("in the code", true), ("executed", false)] {
            let marks =
                rows.iter().map(|row| (row.kernel.as_str(), if of { &row.code } else { &row.executed }));
            let lines = table(marks);
            println!("\n{profile}, {what}:\n\n{}", text(&lines));
            all += &format!("{profile}, {what}:\n\n{}\n", markdown(&lines));
        }
    }
    if args.write {
        PAGE.write(root, "each kernel at the size of `bench native` and `bench rayon`", &all)?;
    }
    Ok(())
}

/// Builds the kernels of a package, and runs each of them.
fn count(root: &Path, package: &str, prefix: &str, settings: &[&str], wanted: &str) -> Result<Vec<Row>> {
    println!("building {package}");
    let directory = target_directory(root).join("native").join("counts");
    let (functions, findings) = (directory.join("functions"), directory.join("findings.json"));
    // Only what is compiled is told of.
    forget_programs(&directory)?;
    fs::create_dir_all(&directory)
        .and_then(|()| fs::write(&functions, ""))
        .with_context(|| format!("cannot write {}", functions.display()))?;
    let mut command = Command::new(cargo_dagsan(root)?);
    command.args(["build", "--quiet", "--release"]).args(settings);
    command.arg("--manifest-path").arg(root.join(package).join("Cargo.toml"));
    command.arg("--target-dir").arg(&directory).current_dir(root);
    // The other mangling leaves out what a function was made for.
    command.env("RUSTFLAGS", "-Csymbol-mangling-version=v0").env("DAGSAN_COUNTS", &functions);
    succeed(&mut command)?;
    let program: PathBuf = [&directory, Path::new("dagsan"), Path::new(TARGET), Path::new("release/kernels")]
        .into_iter()
        .collect();
    let told = fs::read_to_string(&functions)
        .with_context(|| format!("the pass has told nothing: {}", functions.display()))?;
    let mut rows = Vec::new();
    for (name, _) in list(&program)?.into_iter().filter(|(name, _)| name.contains(wanted)) {
        println!("running {name}");
        let mut command = Command::new(&program);
        command.arg(&name).env(FINDINGS_FILE, &findings).env_remove("DAGSAN_OPTIONS");
        let ended = process::run(&mut command)?;
        ensure!(ended.status.success(), "{name} ended with {}", ended.status);
        let executed = checked(&findings).with_context(|| name.clone())?.marks;
        let executed = executed.with_context(|| format!("{name} has counted nothing"))?;
        let code = in_code(&told, &module(&name))?;
        rows.push(Row { kernel: format!("{prefix}{name}"), code, executed });
    }
    Ok(rows)
}

/// A kernel's module, as mangled names have it.
fn module(kernel: &str) -> String {
    let name = kernel.trim_start_matches("par_").replace('-', "_");
    format!("7kernels{}{name}", name.len())
}

/// The sum of the functions of a module.
fn in_code(functions: &str, module: &str) -> Result<Marks> {
    let mut sum = Marks::default();
    for line in functions.lines().filter(|line| line.contains(module)) {
        let mut words = line.split(' ');
        for number in [
            &mut sum.in_place,
            &mut sum.covered,
            &mut sum.merged,
            &mut sum.sunk,
            &mut sum.other,
            &mut sum.in_line,
            &mut sum.ranges,
        ] {
            let word = words.next().and_then(|word| word.parse::<u64>().ok());
            *number += word.with_context(|| format!("not the counts of a function: {line}"))?;
        }
    }
    Ok(sum)
}

const HEAD: [&str; 10] = [
    "kernel",
    "accesses",
    "covered",
    "merged",
    "sunk",
    "in place",
    "other",
    "marks in line",
    "ranges",
    "marks per access",
];

fn table<'a>(rows: impl Iterator<Item = (&'a str, &'a Marks)>) -> Vec<[String; 10]> {
    let mut lines = vec![HEAD.map(String::from)];
    for (kernel, marks) in rows {
        let accesses = marks.in_place + marks.covered + marks.merged + marks.sunk + marks.other;
        let all = marks.in_line + marks.ranges + marks.other;
        let per_access =
            if accesses == 0 { String::new() } else { format!("{:.4}", all as f64 / accesses as f64) };
        lines.push([
            kernel.to_owned(),
            short(accesses),
            short(marks.covered),
            short(marks.merged),
            short(marks.sunk),
            short(marks.in_place),
            short(marks.other),
            short(marks.in_line),
            short(marks.ranges),
            per_access,
        ]);
    }
    lines
}

/// A number in a few digits.
fn short(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..10_000_000 => format!("{:.1} k", number as f64 / 1e3),
        10_000_000.. => format!("{:.1} M", number as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_the_functions_with_its_module_in_their_names() {
        assert_eq!(module("smith-waterman"), "7kernels14smith_waterman");
        let told = "1 2 3 4 5 6 7 _RNvNtCs1_7kernels4sort3run\n\
                    1 1 1 1 1 1 1 _RNvNtCs1_4core4sort3run\n\
                    0 0 0 0 0 0 1 _RINvCs2_11dagsan_task5spawnNCNvNtCs1_7kernels4sort3run0EB2_\n";
        let sort = in_code(told, &module("par_sort")).unwrap();
        let expected = Marks { in_place: 1, covered: 2, merged: 3, sunk: 4, other: 5, in_line: 6, ranges: 8 };
        assert_eq!(sort, expected);
        assert!(in_code("1 2 _RNvNtCs1_7kernels4sort3run", &module("sort")).is_err());
    }

    #[test]
    fn other_accesses_have_their_marks() {
        let marks = Marks { in_place: 1, covered: 0, merged: 2, sunk: 6, other: 1, in_line: 2, ranges: 2 };
        let lines = table([("a", &marks), ("none", &Marks::default())].into_iter());
        assert_eq!(lines[1], ["a", "10", "0", "2", "6", "1", "1", "2", "2", "0.5000"]);
        assert_eq!(lines[2][9], "");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([9_999, 12_345, 9_999_999].map(short), ["9999", "12.3 k", "10000.0 k"]);
        assert_eq!(short(1_234_567_890), "1234.6 M");
    }
}
