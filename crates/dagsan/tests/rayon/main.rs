//! rayon programs from end to end: `cargo dagsan` builds them with rayon from the registry, and they run.
//!
//! The programs are the package `tests/rayon`, built once per profile under the workspace's target directory. They run
//! with a time limit: a program that hangs fails its test.

mod choices;
mod package;
mod seeds;
mod support;
