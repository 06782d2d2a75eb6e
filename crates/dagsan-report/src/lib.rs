//! DagSan's reports: the only crate that renders.
//!
//! A front end fills a [`Report`]; [`text`] and [`json`] show it, [`graph`] draws computation graphs. They know no
//! front end: places are byte ranges of source texts, locations and tasks come with their names. For native programs
//! [`native`] fills the report, from findings and [`symbols`].
//! Nothing here prints either: renderers make strings, the command decides where they go.

#[cfg(test)]
mod fixture;
pub mod graph;
pub mod json;
mod model;
pub mod native;
mod source;
pub mod symbols;
pub mod text;

pub use model::{
    Blocked, Detail, Diagnostic, End, Expectation, Exploration, Failure, Frame, Join, Native, OUTPUT, Race,
    Report, ScheduleDependence, Side, StandIn, Stats, Task, Threads, Verdict, Witness,
};
pub use source::{Place, Source};
