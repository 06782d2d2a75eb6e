//! DagSan tasks.
fn main() {}
