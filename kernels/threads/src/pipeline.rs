//! A pipeline: each stage is a thread, with a bounded channel to the next one.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::{checked, random, timed};

/// Items that may wait between two stages.
const ROOM: usize = 64;
/// Numbers of an item.
const LENGTH: usize = 128;

type Item = Vec<u64>;

/// Passes on what it is given, changed.
fn stage(from: Receiver<Item>, to: SyncSender<Item>, change: impl Fn(&mut Item)) {
    for mut item in from {
        change(&mut item);
        // It fails if nobody receives any more, and then nobody wants the rest.
        if to.send(item).is_err() {
            break;
        }
    }
}

fn mix(item: &mut Item) {
    for at in 1..item.len() {
        item[at] = item[at].rotate_left(7) ^ item[at - 1];
    }
}

fn scale(item: &mut Item) {
    item.iter_mut().for_each(|number| *number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3);
}

fn sum(item: &Item) -> u64 {
    item.iter().fold(0, |sum, &number| sum.wrapping_add(number))
}

pub fn run(size: usize) -> Result<Duration, String> {
    let mut next = random();
    let first: Item = (0..LENGTH).map(|_| next()).collect();
    let (time, total) = timed(|| {
        let (to_mixer, from_source) = sync_channel(ROOM);
        let (to_scaler, from_mixer) = sync_channel(ROOM);
        let (to_sink, from_scaler) = sync_channel(ROOM);
        thread::scope(|scope| {
            scope.spawn(|| stage(from_source, to_scaler, mix));
            scope.spawn(|| stage(from_mixer, to_sink, scale));
            let sink =
                scope.spawn(|| from_scaler.into_iter().fold(0u64, |all, item| all.wrapping_add(sum(&item))));
            for number in 0..size as u64 {
                let item = first.iter().map(|first| first ^ number).collect();
                to_mixer.send(item).expect("the mixer receives all");
            }
            drop(to_mixer);
            sink.join().expect("nobody panics")
        })
    });
    let expected = (0..size as u64).fold(0u64, |all, number| {
        let mut item: Item = first.iter().map(|first| first ^ number).collect();
        mix(&mut item);
        scale(&mut item);
        all.wrapping_add(sum(&item))
    });
    checked(time, total == expected)
}
