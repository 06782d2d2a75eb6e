//! A pool of threads: jobs come through one channel that all receive from, results go back through another.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::{THREADS, checked, random, timed};

/// Bytes of a job.
const BLOCK: usize = 4096;

/// Adler's checksum.
fn checksum(block: &[u8]) -> u32 {
    let (low, high) = block.iter().fold((1u32, 0u32), |(low, high), &byte| {
        let low = (low + u32::from(byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    high << 16 | low
}

pub fn run(size: usize) -> Result<Duration, String> {
    let mut next = random();
    let block: Vec<u8> = (0..BLOCK).map(|_| next() as u8).collect();
    let input = block.clone();
    let (time, sums) = timed(move || {
        let (give, jobs) = channel::<(usize, Vec<u8>)>();
        let jobs = Arc::new(Mutex::new(jobs));
        let (done, results) = channel();
        let workers: Vec<_> = (0..THREADS)
            .map(|_| {
                let (jobs, done) = (Arc::clone(&jobs), done.clone());
                thread::spawn(move || {
                    loop {
                        // The lock is given back before the work begins.
                        let job = jobs.lock().expect("nobody panics").recv();
                        let Ok((number, block)) = job else { break };
                        // It fails if nobody wants results any more.
                        if done.send((number, checksum(&block))).is_err() {
                            break;
                        }
                    }
                })
            })
            .collect();
        drop(done);
        for number in 0..size {
            let mut block = block.clone();
            block[0] = number as u8;
            give.send((number, block)).expect("the pool waits for jobs");
        }
        drop(give);
        let mut sums = vec![0; size];
        for (number, sum) in results {
            sums[number] = sum;
        }
        workers.into_iter().for_each(|worker| worker.join().expect("nobody panics"));
        sums
    });
    let expected: Vec<u32> = (0..256.min(size))
        .map(|number| {
            let mut block = input.clone();
            block[0] = number as u8;
            checksum(&block)
        })
        .collect();
    checked(time, sums.iter().zip(expected.iter().cycle()).all(|(sum, expected)| sum == expected))
}
