//! DagSan's reports: the only crate that renders.
//!
//! A front end fills a [`Report`]; [`text`] and [`json`] show it, [`graph`] draws computation graphs. Nothing
//! here knows a front end: places are byte ranges of source texts, locations and tasks come with their names.
//! Nothing here prints either: renderers make strings, the command decides where they go.

#[cfg(test)]
mod fixture;
pub mod graph;
pub mod json;
mod model;
pub mod text;

pub use model::{
    Blocked, Diagnostic, End, Expectation, Exploration, Failure, Join, OUTPUT, Place, Race, Report, Side,
    Source, Stats, Task, Verdict, Witness,
};
