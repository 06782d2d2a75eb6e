//! The formats of reports, and how the parts of several reports become one whole.
//!
//! A part is what one program or test gives. Parts can be kept as texts, made by different processes, and put together at the end.

use serde::{Deserialize, Serialize};

use crate::model::Report;
use crate::project::Project;
use crate::{html, json, lines, sarif, text};

/// How to show what was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// For people.
    Text,
    /// A line per finding, for editors.
    Short,
    /// For programs.
    Json,
    /// For programs that show the results of many tools.
    Sarif,
    /// Annotations of GitHub.
    Github,
    /// A page to look at.
    Html,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 6] =
        [Format::Text, Format::Short, Format::Json, Format::Sarif, Format::Github, Format::Html];

    /// What it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Short => "short",
            Format::Json => "json",
            Format::Sarif => "sarif",
            Format::Github => "github",
            Format::Html => "html",
        }
    }

    /// What it is for, in a few words.
    pub fn summary(self) -> &'static str {
        match self {
            Format::Text => "for people",
            Format::Short => "one line per race, file:line:column, for editors",
            Format::Json => "for programs; its schema is in docs/",
            Format::Sarif => "SARIF 2.1.0, for programs that show the results of many tools",
            Format::Github => "annotations, in workflows of GitHub",
            Format::Html => "one page to look at, which needs nothing else",
        }
    }

    /// Is it for people, who look at a terminal?
    pub fn is_for_terminals(self) -> bool {
        matches!(self, Format::Text | Format::Short)
    }

    /// Are the parts nothing by themselves?
    pub fn is_document(self) -> bool {
        matches!(self, Format::Sarif | Format::Html)
    }

    /// What one report gives.
    pub fn part(self, report: &Report, project: &Project) -> Result<String, serde_json::Error> {
        Ok(match self {
            Format::Text => text::render(report),
            Format::Short => lines::short(report),
            Format::Json => json::object(report, project)?,
            Format::Sarif => sarif::run(report, project)?,
            Format::Github => lines::github(report, project),
            Format::Html => html::part(report, project)?,
        })
    }

    /// What several parts give. Of JSON an array.
    pub fn whole(self, parts: &[String]) -> String {
        match self {
            Format::Text | Format::Short | Format::Github => parts.concat(),
            Format::Json => json::array(parts),
            Format::Sarif => sarif::document(parts),
            Format::Html => html::page(parts),
        }
    }
}
