//! What is done to a sample: bytes are changed, removed, doubled and mixed; of findings, whole values too.
//!
//! A file of random bytes is refused at its first byte. So most of a case is as it was, and what is put into it is what readers have trouble with:
//! the borders of numbers, names that mean something to terminals and browsers, deep nesting.

use fastrand::Rng;
use serde_json::Value;

use super::Reader;
use super::samples::{Sample, Samples};

/// No file grows beyond this by being changed.
const LARGEST: usize = 1 << 20;

/// What a name may be.
const NAMES: [&str; 14] = [
    "</script><img src=x onerror=alert(1)>",
    "\u{1b}]0;title\u{7}\u{1b}[2J",
    "\u{202e}desrever\u{2066}",
    "a\r\n::error::b",
    "\"'`$(x)\\",
    "../../../../../../etc/passwd",
    "/dev/zero",
    "/proc/self/mem",
    "",
    "*",
    "[a-",
    "**/**/**",
    "\0",
    "é\u{301}\u{200b}漢",
];

/// What numbers break on.
const NUMBERS: [u64; 10] =
    [0, 1, 2, 0x7f, 0xff, 0x7fff_ffff, 0xffff_ffff, 0x1_0000_0000, i64::MAX as u64, u64::MAX];

/// The file that has this seed.
pub fn case(samples: &Samples, reader: Reader, seed: u64) -> Vec<u8> {
    let mut rng = Rng::with_seed(seed);
    let sample = samples.any(&mut rng);
    let structured = reader != Reader::Debug && rng.u8(..4) > 0;
    if structured && let Ok(mut value) = serde_json::from_slice::<Value>(&sample.bytes) {
        for _ in 0..rng.u32(1..4) {
            values(&mut value, &mut rng);
        }
        return value.to_string().into_bytes();
    }
    let mut bytes = sample.bytes.clone();
    if reader == Reader::Suppressions && rng.u8(..4) > 0 {
        for _ in 0..rng.u32(1..4) {
            quoted(&mut bytes, &mut rng);
        }
        return bytes;
    }
    // A text with many changes is refused for the first of them.
    let changes = if reader == Reader::Debug { rng.u32(0..6) } else { rng.u32(0..3) };
    for _ in 0..1 << changes {
        change(&mut bytes, sample, samples, reader, &mut rng);
    }
    bytes
}

/// Puts something else in the place of one value.
fn values(value: &mut Value, rng: &mut Rng) {
    let mut here = value;
    // Down, by chance, as far as the tree goes.
    loop {
        let deeper = match here {
            Value::Array(items) => !items.is_empty() && rng.u8(..8) > 0,
            Value::Object(fields) => !fields.is_empty() && rng.u8(..16) > 0,
            _ => false,
        };
        if !deeper {
            break;
        }
        here = match here {
            Value::Array(items) => {
                let at = rng.usize(..items.len());
                &mut items[at]
            }
            Value::Object(fields) => {
                let at = rng.usize(..fields.len());
                let Some((_, field)) = fields.iter_mut().nth(at) else { return };
                field
            }
            _ => return,
        };
    }
    let other = rng.u8(..12) == 0;
    match here {
        _ if other => {
            *here = [Value::Null, Value::Array(Vec::new()), 7.into(), "x".into()][rng.usize(..4)].clone();
        }
        Value::Number(_) => *here = number(rng).into(),
        Value::String(_) => *here = text(rng).into(),
        Value::Bool(old) => *old = !*old,
        Value::Array(items) if rng.bool() => {
            // Often more than the program that wrote it could have had.
            let many = if rng.u8(..32) == 0 { 5_000 } else { rng.usize(1..4) };
            let at = rng.usize(..items.len().max(1));
            if let Some(item) = items.get(at).cloned() {
                items.extend(std::iter::repeat_n(item, many));
            }
        }
        Value::Array(items) => {
            let keep = rng.usize(..=items.len());
            items.truncate(keep);
        }
        Value::Object(fields) => {
            let at = rng.usize(..fields.len().max(1));
            if let Some(key) = fields.keys().nth(at).cloned() {
                fields.remove(&key);
            }
        }
        Value::Null => *here = number(rng).into(),
    }
}

fn number(rng: &mut Rng) -> u64 {
    match rng.u8(..4) {
        0 => rng.u64(..),
        1 => rng.u64(..8),
        _ => NUMBERS[rng.usize(..NUMBERS.len())],
    }
}

fn text(rng: &mut Rng) -> String {
    let name = NAMES[rng.usize(..NAMES.len())];
    match rng.u8(..8) {
        0 => name.repeat(rng.usize(1..2_000)),
        1 => (0..rng.usize(..40)).map(|_| rng.char(..)).collect(),
        2 => {
            ["Main", "Thread", "Join", "Free", "Read", "Aborted", "dag", "oracle"][rng.usize(..8)].to_owned()
        }
        _ => name.to_owned(),
    }
}

/// Puts another text between two quotation marks.
fn quoted(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let marks: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] == b'"').collect();
    let Some(&[open, close]) = marks.as_chunks().0.get(rng.usize(..marks.len().max(2) / 2)) else { return };
    let pattern =
        |rng: &mut Rng| (0..rng.usize(1..40)).map(|_| PATTERN[rng.usize(..PATTERN.len())]).collect();
    let new: String = if rng.bool() { pattern(rng) } else { text(rng) };
    // As JSON it is quoted for TOML too.
    bytes.splice(open..=close, Value::from(new).to_string().into_bytes());
}

/// What patterns are made of; letters that are in every name.
const PATTERN: [char; 10] = ['*', '*', '*', '?', '[', ']', '-', '!', '/', 'e'];

/// Changes some bytes.
fn change(bytes: &mut Vec<u8>, sample: &Sample, samples: &Samples, reader: Reader, rng: &mut Rng) {
    let at = sample.position(bytes.len(), rng);
    let room = bytes.len() - at;
    let length = rng.usize(..=room.min(64));
    // Executables keep their layout, mostly: whatever moves makes all behind it nonsense.
    let kinds = if reader == Reader::Debug && rng.u8(..16) > 0 { 4 } else { 9 };
    match rng.u8(..kinds) {
        0 if room > 0 => bytes[at] ^= 1 << rng.u8(..8),
        1 if room > 0 => bytes[at] = rng.u8(..),
        2 => {
            let value = number(rng).to_le_bytes();
            let width = [1, 2, 4, 8][rng.usize(..4)].min(room);
            bytes[at..at + width].copy_from_slice(&value[..width]);
        }
        3 => {
            // From elsewhere in the file, over what is here.
            let from = sample.position(bytes.len(), rng);
            let length = length.min(bytes.len() - from);
            bytes.copy_within(from..from + length, at);
        }
        4 => _ = bytes.drain(at..at + length),
        5 => {
            let other = samples.any(rng);
            let from = other.position(other.bytes.len(), rng);
            let end = other.bytes.len().min(from + 4 * length);
            insert(bytes, at, &other.bytes[from..end]);
        }
        6 => bytes.truncate(at),
        7 => insert(bytes, at, text(rng).as_bytes()),
        _ => {
            let some: Vec<u8> = match rng.u8(..3) {
                0 => vec![b'['; rng.usize(1..3_000)],
                1 => bytes[at..at + length].repeat(rng.usize(1..200)),
                _ => (0..length).map(|_| rng.u8(..)).collect(),
            };
            insert(bytes, at, &some);
        }
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, what: &[u8]) {
    if bytes.len() + what.len() <= LARGEST.max(bytes.len()) {
        bytes.splice(at..at, what.iter().copied());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_file() {
        let sample = Sample::of(br#"{"a": [1, 2, "x"], "b": null}"#.to_vec());
        let samples = Samples(vec![sample]);
        let all: Vec<Vec<u8>> = (0..200).map(|seed| case(&samples, Reader::Findings, seed)).collect();
        let again: Vec<Vec<u8>> = (0..200).map(|seed| case(&samples, Reader::Findings, seed)).collect();
        assert_eq!(all, again);
        let distinct: std::collections::HashSet<&Vec<u8>> = all.iter().collect();
        assert!(distinct.len() > 150, "{}", distinct.len());
        for seed in 0..200 {
            assert!(case(&samples, Reader::Debug, seed).len() <= LARGEST);
        }
    }
}
