//! `dagsan report` and `dagsan explain`: findings that a program has left, shown again.
//!
//! The first shows a file as it is. The second starts the program once more, in the same directory and with the same
//! arguments, and lets the runtime keep whole call stacks, which would be too slow for the first run. A program may do
//! something else the second time; then the report says what has changed.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use dagsan_findings::{FINDINGS_FILE, Findings};
use dagsan_report::{Report, json, text};

use crate::cli::{ExplainArguments, FindingsArguments, Format};
use crate::exit;
use crate::native::findings::{self, OPTIONS};
use crate::native::outcome::{describe, program_code, shown};
use crate::native::{runner, status};

/// Shows a file of findings.
pub fn report(arguments: &FindingsArguments) -> Result<u8> {
    let found = Findings::read(&arguments.file)?;
    let mut report = describe(&found)?;
    report.notes.extend(rebuilt(&arguments.file, &found.process.executable));
    show(arguments, &report)?;
    Ok(exit::of_native(&report, 0))
}

/// Runs the program again, and shows what it has left this time.
pub fn explain(arguments: &ExplainArguments) -> Result<u8> {
    let arguments = &arguments.findings;
    let before = Findings::read(&arguments.file)?;
    let process = &before.process;
    let directory = arguments.file.parent().unwrap_or(Path::new("")).to_owned();
    let directory = std::path::absolute(&directory).context("cannot tell the current directory")?;
    let file = findings::file(&directory, process.executable.as_os_str());
    let options = match env::var(OPTIONS) {
        Ok(options) if !options.is_empty() => format!("{options}:stacks=1"),
        _ => "stacks=1".to_owned(),
    };
    let ended = Command::new(&process.executable)
        .args(&process.arguments)
        .current_dir(&process.directory)
        .env(FINDINGS_FILE, &file)
        .env(OPTIONS, options)
        .status()
        .with_context(|| {
            format!("cannot run {} again in {}", process.executable.display(), process.directory.display())
        })?;
    if !file.exists() {
        bail!(
            "the second run left no findings ({ended}); `dagsan report {}` shows the first",
            shown(&arguments.file)
        );
    }
    let again = Findings::read(&file)?;
    findings::remove(&file)?;
    let mut report = describe(&again)?;
    report.notes.extend(rebuilt(&arguments.file, &process.executable));
    report.notes.extend(differences(&describe(&before)?, &report));
    show(arguments, &report)?;
    Ok(exit::of_native(&report, program_code(ended)))
}

fn show(arguments: &FindingsArguments, report: &Report) -> Result<()> {
    let text = match arguments.format {
        Format::Text => text::render(report),
        Format::Json => json::object(report)?,
    };
    let color = match arguments.color {
        clap::ColorChoice::Auto => "auto",
        clap::ColorChoice::Always => "always",
        clap::ColorChoice::Never => "never",
    };
    runner::put(status::stdout(color), &text)
}

/// Was the executable built again after it had left the findings?
fn rebuilt(findings: &Path, executable: &Path) -> Option<String> {
    let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let (found, built) = (modified(findings)?, modified(executable)?);
    (built > found).then(|| {
        format!("{} was built again since then: places may be wrong, and the run another", shown(executable))
    })
}

/// A race as it can be compared: what was done, by which tasks, and where.
fn key(report: &Report, side: &dagsan_report::Side) -> (String, u32) {
    let file = report.sources.get(side.place.source).map_or("", dagsan_report::Source::name);
    (format!("{file}:{}:{}", side.place.line, side.place.column), side.task)
}

/// What is not the same in both runs.
fn differences(before: &Report, again: &Report) -> Option<String> {
    let races = |report: &Report| -> BTreeSet<_> {
        let race =
            |race: &dagsan_report::Race| (race.kind(), key(report, &race.first), key(report, &race.second));
        report.races.iter().map(race).collect()
    };
    let (before, again) = (races(before), races(again));
    let (gone, new) = (before.difference(&again).count(), again.difference(&before).count());
    (gone + new > 0).then(|| {
        format!(
            "the second run went another way: {gone} of {} races are not there any more, {new} are new; \
             does the program depend on time, chance or the environment?",
            before.len()
        )
    })
}

#[cfg(test)]
mod tests {
    use dagsan_core::AccessKind;
    use dagsan_core::order::default_engine;
    use dagsan_report::{Detail, End, Race, Side, Source};

    use super::*;

    fn report(lines: &[usize]) -> Report {
        let source = Source::new("a.rs", "one\ntwo\nthree\n");
        let mut report = Report::new(source, default_engine(), End::Finished);
        for &line in lines {
            let side = Side {
                place: report.sources[0].place_at(0, line, 1),
                kind: AccessKind::Write,
                task: 1,
                isolated: false,
                detail: Detail::default(),
            };
            report.races.push(Race {
                locations: vec!["8 bytes".to_owned()],
                object: Some("mapped memory".to_owned()),
                first: side.clone(),
                second: side,
                allocated: None,
                duplicates: 0,
                schedule: None,
                witness: None,
            });
        }
        report
    }

    #[test]
    fn a_second_run_that_went_another_way_is_told() {
        assert_eq!(differences(&report(&[1, 2]), &report(&[2, 1])), None);
        let text = differences(&report(&[1, 2]), &report(&[2, 3])).unwrap();
        assert!(text.contains("1 of 2 races are not there any more, 1 are new"), "{text}");
    }
}
