//! The program `dagsan`; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    dagsan::dagsan()
}
