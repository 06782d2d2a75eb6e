//! What the runners of a command have told, put together at its end: reports, suppressions that were not met, the baseline.

use anyhow::{Context, Result};
use dagsan_report::Format;

use crate::accept::{Accepting, Met};
use crate::cli::ReportArguments;
use crate::native::session::Session;
use crate::native::told::Told;
use crate::native::{findings, runner, status};
use crate::reports::{self, ReportFile};

/// The format that is shown, and those that are put together: of the files, and, if it cannot be shown part by part, that one.
pub fn formats(asked: &ReportArguments, options: &findings::Options) -> (Format, Vec<Format>) {
    let format = asked.format.or(options.format).unwrap_or(Format::Text);
    let mut collected: Vec<Format> = asked.files.iter().map(|file| file.format).collect();
    collected.extend(Some(format).filter(|format| format.is_document()));
    (format, collected)
}

/// The files of `--report`, in the order of the session's formats.
pub fn files(asked: &ReportArguments) -> Result<Vec<ReportFile>> {
    let absolute = |file: &ReportFile| {
        let path = std::path::absolute(&file.path).context("cannot tell the current directory")?;
        Ok(ReportFile { format: file.format, path })
    };
    asked.files.iter().map(absolute).collect()
}

/// Puts together what the runners have told.
pub fn write(session: &Session, files: &[ReportFile], told: &[Told]) -> Result<()> {
    let parts = |at: usize| -> Vec<String> {
        let of = |told: &Told| match told {
            Told::Part { of, text } if *of == at => Some(text.clone()),
            _ => None,
        };
        told.iter().filter_map(of).collect()
    };
    let mut failures: Vec<anyhow::Error> =
        files.iter().enumerate().filter_map(|(at, file)| file.write(&parts(at)).err()).collect();
    // What cannot be shown part by part comes last.
    if let Some(&format) = session.collected.get(files.len()) {
        let parts = parts(files.len());
        let shown = match &session.output {
            Some(path) => ReportFile { format, path: path.clone() }.write(&parts),
            None => runner::put(status::stdout("never"), format.whole(&parts)),
        };
        failures.extend(shown.err());
    }
    reports::all(failures)
}

/// Says which suppressions were not met, and writes the baseline. A run that came to nothing must not empty it.
pub fn accept(accepting: &Accepting, told: &[Told], color: &str) -> Result<()> {
    let mut met = Met::default();
    let mut ran = false;
    for told in told {
        if let Told::Met(more) = told {
            met.add(more);
            ran = true;
        }
    }
    if ran {
        for warning in accepting.finish(&met)? {
            status::warning(color, &warning);
        }
    }
    Ok(())
}
