//! What the runners of one `cargo dagsan` tell the command: a file of lines, to which each adds.
//!
//! Runners may be several at a time. A line is one write to a file that is only appended to.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::accept::Met;
use crate::native::findings;
use crate::native::session::Session;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Told {
    /// A runner has started.
    Started,
    /// A program has ended with this code; its runner has told all.
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

/// Waits until all runners have told all, some seconds at most: after Ctrl-C they outlive cargo.
pub fn settle(session: &Session) {
    let told = |what: fn(&Told) -> bool| read(session).iter().filter(|told| what(told)).count();
    for _ in 0..200 {
        if told(|told| *told == Told::Started) <= told(|told| matches!(told, Told::Code(_))) {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn read(session: &Session) -> Vec<Told> {
    let text = fs::read_to_string(&session.told).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// All lines; the file goes away. A last line that was cut off, with its runner, is left out.
pub fn all(session: &Session) -> Result<Vec<Told>> {
    let told = read(session);
    findings::remove(&session.told)?;
    Ok(told)
}
