//! What the runners of one `cargo dagsan` tell the command: a file of lines, to which each adds.
//!
//! Runners may be several at a time. A line is one write to a file that is only appended to.

use std::fs::{self, OpenOptions};
use std::io::Write;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::accept::Met;
use crate::native::findings;
use crate::native::session::Session;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Told {
    /// A program has ended with this code.
    Code(u8),
    /// What a program gives to one of [`Session::collected`].
    Part { of: usize, text: String },
    /// Which races were met, and which suppressions.
    Met(Met),
}

/// Adds a line.
pub fn tell(session: &Session, told: &Told) -> Result<()> {
    let line = serde_json::to_string(told)? + "\n";
    let file = OpenOptions::new().create(true).append(true).open(&session.told);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.with_context(|| format!("cannot write {}", session.told.display()))
}

/// All lines; the file goes away. A last line that was cut off, with its runner, is left out.
pub fn all(session: &Session) -> Result<Vec<Told>> {
    let text = fs::read_to_string(&session.told).unwrap_or_default();
    findings::remove(&session.told)?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}
