//! DagSan's reports: the only crate that renders.
//!
//! A front end fills a [`Report`]; it is shown in one of the [`Format`]s: [`text`], [`lines`], [`json`], [`sarif`], [`html`]. [`graph`] draws computation graphs. They know no
//! front end: places are byte ranges of source texts, locations and tasks come with their names. For native programs
//! [`native`] fills the report, from findings and [`symbols`].
//! Nothing here prints either: renderers make strings, the command decides where they go.

mod clean;
mod fingerprint;
#[cfg(test)]
mod fixture;
mod formats;
pub mod graph;
pub mod html;
pub mod json;
pub mod lines;
mod model;
pub mod native;
mod project;
pub mod sarif;
mod shell;
mod source;
pub mod symbols;
pub mod text;

pub use clean::{clean, clean_message};
pub use fingerprint::{file, fingerprint, function, line_text};
pub use formats::Format;
pub use project::Project;
pub use shell::word;

pub use model::{
    Acceptance, Accepted, Blocked, Detail, Diagnostic, End, Expectation, Exploration, Failure, Frame, Join,
    Native, OUTPUT, Race, Report, ScheduleDependence, Side, StandIn, Stats, Task, Threads, Verdict, Witness,
};
pub use source::{Place, Source};
