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

/// How a function fails.
#[derive(Debug)]
pub enum Failure {
    /// Bytes that are touched, and as what, expected and found; at which time of showing.
    Bytes { time: usize, bytes: Vec<(usize, (bool, bool), (bool, bool))> },
    /// It does something else than the reference.
    Otherwise(String),
}

impl Failure {
    /// Is it the same kind of failure? Too few bytes or too many, or another execution.
    pub fn is_like(&self, other: &Failure) -> bool {
        let kind = |failure: &Failure| match failure {
            Failure::Bytes { bytes, .. } => {
                bytes.first().map(|(_, expected, found)| (expected.0 > found.0, expected.1 > found.1))
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
        let of = |byte| (byte, expected.of(byte), found.of(byte));
        let bytes: Vec<_> = (0..ARENA).map(of).filter(|(_, expected, found)| expected != found).collect();
        if !bytes.is_empty() {
            return Some(Failure::Bytes { time, bytes });
        }
    }
    None
}

fn touched((seen, written): (bool, bool)) -> &'static str {
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
                while let Some(&(first, expected, found)) = rest.first() {
                    let is_next = |(number, entry): (usize, &(usize, _, _))| {
                        *entry == (first + number, expected, found)
                    };
                    let length = rest.iter().enumerate().take_while(|&entry| is_next(entry)).count();
                    let (expected, found) = (touched(expected), touched(found));
                    write!(
                        f,
                        "\n  bytes {first} to {}: expected {expected}, found {found}",
                        first + length - 1
                    )?;
                    rest = &rest[length..];
                }
                Ok(())
            }
        }
    }
}
