//! `dagsan report` and `dagsan explain`: findings that a program has left, shown again.
//!
//! The first shows a file as it is. The second starts the program once more, in the same directory and with the same
//! arguments, and lets the runtime keep whole call stacks, which would be too slow for the first run. A program may do
//! something else the second time; then the report says what has changed.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use anyhow::{Context, Result, bail};
use dagsan_findings::{FINDINGS_FILE, Findings};
use dagsan_report::{Format, Project, Report, Verdict};

use crate::accept::Accepting;
use crate::cli::{ExplainArguments, FindingsArguments};
use crate::exit;
use crate::native::findings::{self, OPTIONS};
use crate::native::outcome::{describe, program_code, shown, typed};
use crate::native::{runner, second, status};
use crate::reports::{self, ReportFiles};

/// Shows a file of findings.
pub fn report(arguments: &FindingsArguments) -> Result<u8> {
    let found = read(arguments)?;
    let mut report = describe(&found)?;
    report.notes.extend(rebuilt(&arguments.file, &found.process.executable));
    show(arguments, &mut report)?;
    Ok(exit::of_native(&report, 0))
}

/// The findings that are to be shown; nothing is written over them.
fn read(arguments: &FindingsArguments) -> Result<Findings> {
    let accept = arguments.accept.absolute(&current()?, &[])?;
    arguments.reports.check_files(&accept, arguments.graph.path(), [arguments.file.as_path()])?;
    Findings::read(&arguments.file).context(
        "there are no findings to show: `cargo dagsan` and `dagsan run` name the file when there is a race",
    )
}

/// Runs the program again, and shows what it has left this time.
pub fn explain(arguments: &ExplainArguments) -> Result<u8> {
    let arguments = &arguments.findings;
    let before = read(arguments)?;
    let process = &before.process;
    let directory = arguments.file.parent().unwrap_or(Path::new("")).to_owned();
    let directory = std::path::absolute(&directory).context("cannot tell the current directory")?;
    let file = findings::file(&directory, process.executable.as_os_str());
    let ended = Command::new(&process.executable)
        .args(&process.arguments)
        .current_dir(&process.directory)
        .env(FINDINGS_FILE, &file)
        .env(OPTIONS, second::options())
        // Standard output is for the report, which may be a document.
        .stdout(io::stderr().as_fd().try_clone_to_owned().context("cannot use standard error")?)
        .status()
        .with_context(|| {
            format!("cannot run {} again in {}", process.executable.display(), process.directory.display())
        })?;
    if !file.exists() {
        bail!(
            "the second run left no findings ({ended}); `dagsan report {}` shows the first",
            typed(&arguments.file)
        );
    }
    let again = Findings::read(&file)?;
    findings::remove(&file)?;
    let mut report = describe(&again)?;
    report.notes.extend(rebuilt(&arguments.file, &process.executable));
    report.notes.extend(second::differences(&before, &again));
    show(arguments, &mut report)?;
    // The code of races is not the program's own. Of the number, the system hands on the last eight bits.
    let code = match (report.verdict(), again.code) {
        (Verdict::Accepted, Some(code)) => code as u8,
        _ => program_code(ended),
    };
    Ok(exit::of_native(&report, code))
}

fn current() -> Result<PathBuf> {
    std::env::current_dir().context("cannot tell the current directory")
}

/// Shows and writes all that was asked for. What cannot be written does not keep the rest from it.
fn show(arguments: &FindingsArguments, report: &mut Report) -> Result<()> {
    let current = current()?;
    let project = Project::around(&current);
    let accepting = Accepting::load(&arguments.accept.absolute(&current, &[])?, project.clone())?;
    let met = accepting.apply(report);
    let drawn = arguments.graph.file.as_ref().map_or(Ok(()), |file| file.write_around(report));
    let mut files = ReportFiles::new(project.clone(), &arguments.reports.files);
    files.add(report)?;
    let written = files.write();
    let format = arguments.reports.format.unwrap_or(Format::Text);
    let part = format.part(report, &project)?;
    let text = if format.is_document() { format.whole(&[part]) } else { part };
    let color = match arguments.color {
        clap::ColorChoice::Auto => "auto",
        clap::ColorChoice::Always => "always",
        clap::ColorChoice::Never => "never",
    };
    runner::put(status::stdout(color), &text)?;
    for warning in accepting.finish(&met)? {
        status::warning(color, &warning);
    }
    reports::all([drawn, written].into_iter().filter_map(Result::err).collect())
}

/// Was the executable built again after it had left the findings?
fn rebuilt(findings: &Path, executable: &Path) -> Option<String> {
    let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let (found, built) = (modified(findings)?, modified(executable)?);
    (built > found).then(|| {
        format!("{} was built again since then: places may be wrong, and the run another", shown(executable))
    })
}
