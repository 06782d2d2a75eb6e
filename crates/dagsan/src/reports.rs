//! Reports that are written to files, besides what is shown.
//!
//! A file has the parts of all programs of a call, in the order in which they were checked, and is written once, at the end.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use dagsan_findings::output;
use dagsan_report::{Format, Project, Report};
use serde::{Deserialize, Serialize};

use crate::cli::format_named;

/// A file that was asked for: `--report FORMAT=FILE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportFile {
    pub format: Format,
    pub path: PathBuf,
}

impl ReportFile {
    /// Reads `FORMAT=FILE`.
    pub fn parse(text: &str) -> Result<ReportFile> {
        let names = || Format::ALL.map(Format::name).join(", ");
        let Some((format, path)) = text.split_once('=') else {
            bail!("say in which format: FORMAT={text}, where FORMAT is one of {}", names());
        };
        let Some(format) = format_named(format) else {
            bail!("there is no format `{format}`: use one of {}", names());
        };
        if path.is_empty() {
            bail!("name a file: {}=FILE", format.name());
        }
        Ok(ReportFile { format, path: path.into() })
    }

    /// Writes what these parts give.
    pub fn write(&self, parts: &[String]) -> Result<()> {
        let whole = self.format.whole(parts);
        let plain = anstream::adapter::strip_str(&whole).to_string();
        // Only text has colours; elsewhere what looks like one is data.
        let text = if self.format == Format::Text { plain } else { whole };
        output::write(&self.path, text.as_bytes())
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// The files of one call, with what they are to hold so far.
#[derive(Debug)]
pub struct ReportFiles {
    project: Project,
    files: Vec<(ReportFile, Vec<String>)>,
}

impl ReportFiles {
    /// Empty files.
    pub fn new(project: Project, files: &[ReportFile]) -> ReportFiles {
        ReportFiles { project, files: files.iter().map(|file| (file.clone(), Vec::new())).collect() }
    }

    /// Adds a report to all of them.
    pub fn add(&mut self, report: &Report) -> Result<()> {
        for (file, parts) in &mut self.files {
            parts.push(file.format.part(report, &self.project)?);
        }
        Ok(())
    }

    /// Writes them. One that cannot be written does not keep the others from it.
    pub fn write(&self) -> Result<()> {
        let failures: Vec<anyhow::Error> =
            self.files.iter().filter_map(|(file, parts)| file.write(parts).err()).collect();
        all(failures)
    }
}

/// One error of several.
pub fn all(failures: Vec<anyhow::Error>) -> Result<()> {
    match failures.is_empty() {
        true => Ok(()),
        false => {
            let texts: Vec<String> = failures.iter().map(|error| format!("{error:#}")).collect();
            bail!("{}", texts.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_a_format_and_a_file() {
        let file = ReportFile::parse("sarif=a=b.sarif").unwrap();
        assert_eq!((file.format, file.path), (Format::Sarif, PathBuf::from("a=b.sarif")));
        let error = |text| ReportFile::parse(text).unwrap_err().to_string();
        assert!(
            error("a.sarif").starts_with("say in which format: FORMAT=a.sarif, where FORMAT is one of text")
        );
        assert!(error("xml=a").starts_with("there is no format `xml`: use one of text, short, json, sarif"));
        assert_eq!(error("json="), "name a file: json=FILE");
    }
}
