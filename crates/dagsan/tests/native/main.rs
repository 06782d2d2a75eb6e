//! Native programs from end to end: `cargo dagsan` builds them, they run, and what they leave is what their sources say.
//!
//! The programs are the package `tests/native` and the examples, built once per profile under the workspace's target
//! directory. They run with a time limit: a program that hangs fails its test.

mod accepted;
mod behaviours;
mod cargo;
mod clang;
mod command;
mod ends;
mod examples;
mod explain;
mod findings;
mod harness;
mod interrupt;
mod nextest;
mod pass;
mod points;
mod reports;
#[path = "../schema.rs"]
mod schema;
mod second;
mod support;
