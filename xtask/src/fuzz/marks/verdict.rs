//! What a function has shown, and how that differs from what the reference says.

use std::fmt;

use anyhow::{Result, bail, ensure};
use dagsan_fuzz::marks::{ARENA, Expected, Touched};

/// What a function has shown.
pub struct Found {
    shown: Vec<Touched>,
    panics: bool,
    hash: [u64; 2],
    memory: Vec<u8>,
}

/// What is done to a byte: is it seen, and is it written?
type Done = (bool, bool);

/// How a function fails.
#[derive(Debug)]
pub enum Failure {
    /// Bytes of which something else is found than expected; at which time of showing.
    Bytes { time: usize, bytes: Vec<Byte> },
    /// It does something else than the reference.
    Otherwise(String),
}

/// A byte by its offset, what is expected of it, and what was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Byte {
    at: usize,
    expected: Done,
    found: Done,
}

impl Failure {
    /// Is it the same kind of failure? Too few bytes or too many, or another execution.
    pub fn is_like(&self, other: &Failure) -> bool {
        let kind = |failure: &Failure| match failure {
            Failure::Bytes { bytes, .. } => {
                bytes.first().map(|byte| (byte.expected.0 && !byte.found.0, byte.expected.1 && !byte.found.1))
            }
            Failure::Otherwise(_) => None,
        };
        kind(self) == kind(other)
    }
}

/// Reads what a program has written: records that begin with what they are, and whose.
pub fn read(output: &[u8]) -> Result<Vec<Found>> {
    const HEAD: usize = 40;
    let (mut all, mut shown) = (Vec::new(), Vec::new());
    let mut rest = output;
    while !rest.is_empty() {
        ensure!(rest.len() >= HEAD, "the output is cut off");
        let (head, behind) = rest.split_at(HEAD);
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| head[at * 8 + byte]));
        ensure!(
            word(1) == all.len() as u64,
            "function {} shows something in the place of {}",
            word(1),
            all.len()
        );
        let length = match word(0) {
            1 => ARENA / 4,
            2 => ARENA,
            other => bail!("a record of kind {other}"),
        };
        ensure!(behind.len() >= length, "the output is cut off");
        let (body, behind) = behind.split_at(length);
        rest = behind;
        if word(0) == 1 {
            let (seen, written) = body.split_at(ARENA / 8);
            shown.push(Touched { seen: seen.try_into()?, written: written.try_into()? });
        } else {
            let shown = std::mem::take(&mut shown);
            all.push(Found { shown, panics: word(2) != 0, hash: [word(3), word(4)], memory: body.to_vec() });
        }
    }
    Ok(all)
}

/// How what was found differs from what is expected.
pub fn compare(expected: &Expected, found: &Found) -> Option<Failure> {
    let otherwise = |what: String| Some(Failure::Otherwise(what));
    if expected.panics != found.panics {
        return otherwise(format!("panics: {}, not {}", found.panics, expected.panics));
    }
    if expected.shown.len() != found.shown.len() {
        return otherwise(format!("shows {} strands, not {}", found.shown.len(), expected.shown.len()));
    }
    if let Some(at) = expected.memory.iter().zip(&found.memory).position(|(a, b)| a != b) {
        return otherwise(format!("byte {at} is {:#x}, not {:#x}", found.memory[at], expected.memory[at]));
    }
    if expected.hash != found.hash {
        return otherwise(format!("reads {:x?}, not {:x?}", found.hash, expected.hash));
    }
    for (time, (expected, found)) in expected.shown.iter().zip(&found.shown).enumerate() {
        let expected = expected.expected(found);
        let of = |at| Byte { at, expected: expected.of(at), found: found.of(at) };
        let bytes: Vec<_> = (0..ARENA).map(of).filter(|byte| byte.expected != byte.found).collect();
        if !bytes.is_empty() {
            return Some(Failure::Bytes { time, bytes });
        }
    }
    None
}

fn touched((seen, written): Done) -> &'static str {
    match (seen, written) {
        (false, false) => "not touched",
        (true, false) => "read",
        (_, true) => "written",
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Otherwise(what) => f.write_str(what),
            Failure::Bytes { time, bytes } => {
                write!(f, "when it shows what is touched, time {time}:")?;
                // Neighbours that differ in the same way are one line.
                let mut rest = &bytes[..];
                while let Some(&first) = rest.first() {
                    let is_next =
                        |&(number, byte): &(usize, &Byte)| *byte == Byte { at: first.at + number, ..first };
                    let length = rest.iter().enumerate().take_while(is_next).count();
                    let (expected, found) = (touched(first.expected), touched(first.found));
                    let last = first.at + length - 1;
                    write!(f, "\n  bytes {} to {last}: expected {expected}, found {found}", first.at)?;
                    rest = &rest[length..];
                }
                Ok(())
            }
        }
    }
}
