//! Three stages with channels in between: records are cut out of a log, parsed, and added up by user.
//!
//! Each stage is a half of a join, with those that feed it in the other half: also a single thread comes to its end.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::{checked, random, timed};

/// Lines that are sent together.
const BATCH: usize = 16;

struct Record {
    user: String,
    bytes: u64,
}

fn parse(line: &str) -> Option<Record> {
    let mut fields = line.split(' ');
    let user = fields.next()?.strip_prefix("user=")?.to_owned();
    let bytes = fields.next()?.strip_prefix("bytes=")?.parse().ok()?;
    Some(Record { user, bytes })
}

fn add_up(records: impl Iterator<Item = Record>) -> BTreeMap<String, u64> {
    let mut totals = BTreeMap::new();
    for Record { user, bytes } in records {
        *totals.entry(user).or_default() += bytes;
    }
    totals
}

pub fn run(size: usize) -> Result<Duration, String> {
    let mut next = random();
    let log: String =
        (0..size).map(|_| format!("user=u{} bytes={}\n", next() % 100, next() % 10_000)).collect();
    let (time, totals) = timed(|| {
        let (to_parser, lines) = channel();
        let (to_adder, records) = channel();
        let cut = || {
            let lines: Vec<&str> = log.lines().collect();
            for batch in lines.chunks(BATCH) {
                // It fails if nobody receives any more, and then nobody wants the rest.
                if to_parser.send(batch.to_vec()).is_err() {
                    break;
                }
            }
            drop(to_parser);
        };
        let parse_all = || {
            for batch in lines {
                let parsed: Vec<Record> = batch.into_iter().filter_map(parse).collect();
                if to_adder.send(parsed).is_err() {
                    break;
                }
            }
            drop(to_adder);
        };
        let ((), ((), totals)) =
            rayon::join(cut, || rayon::join(parse_all, || add_up(records.into_iter().flatten())));
        totals
    });
    checked(time, totals == add_up(log.lines().filter_map(parse)))
}
