//! The program `cargo-dagsan`, which cargo starts for `cargo dagsan`; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    dagsan::cargo_dagsan()
}
