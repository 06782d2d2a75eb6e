//! The loop of a campaign: programs by number, on several threads, until one fails.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// What is added up over the programs of a campaign.
pub trait Tally: Default + Send {
    /// Adds what another thread has counted.
    fn merge(&mut self, other: &Self);
}

/// How many programs are judged, from which seed, on how many threads.
#[derive(Debug, Clone, Copy)]
pub struct Campaign {
    pub programs: u64,
    pub seed: u64,
    pub jobs: usize,
}

impl Campaign {
    /// The seeds of the programs.
    pub fn seeds(self) -> impl Iterator<Item = u64> {
        (0..self.programs).map(move |number| self.seed.wrapping_add(number))
    }

    /// Calls `judge` once per seed. A failure ends the campaign; if several threads have one at that time, the
    /// first of them counts.
    pub fn run<T: Tally, F: Send>(self, judge: impl Fn(u64, &mut T) -> Result<(), F> + Sync) -> Result<T, F> {
        let next = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let failure = Mutex::new(None);
        let total: Mutex<T> = Mutex::default();
        let bar = progress_bar(self.programs);
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| {
                    let mut tally = T::default();
                    // Relaxed: the numbers order nothing else, and the scope ends with a join.
                    while !stop.load(Ordering::Relaxed) {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= self.programs {
                            break;
                        }
                        if let Err(found) = judge(self.seed.wrapping_add(number), &mut tally) {
                            stop.store(true, Ordering::Relaxed);
                            failure.lock().expect("no thread panics").get_or_insert(found);
                        }
                        bar.inc(1);
                    }
                    total.lock().expect("no thread panics").merge(&tally);
                });
            }
        });
        bar.finish_and_clear();
        match failure.into_inner().expect("no thread panics") {
            Some(found) => Err(found),
            None => Ok(total.into_inner().expect("no thread panics")),
        }
    }
}

fn progress_bar(programs: u64) -> ProgressBar {
    // Hidden by indicatif itself if standard error is not a terminal.
    let style =
        ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} programs, {per_sec}, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(programs).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Sum(u64);

    impl Tally for Sum {
        fn merge(&mut self, other: &Sum) {
            self.0 += other.0;
        }
    }

    #[test]
    fn every_seed_is_judged_once_and_a_failure_is_told() {
        let campaign = Campaign { programs: 100, seed: 5, jobs: 3 };
        let sum = |seed, sum: &mut Sum| -> Result<(), u64> {
            sum.0 += seed;
            Ok(())
        };
        assert_eq!(campaign.run(sum), Ok(Sum(campaign.seeds().sum())));
        let fails = |seed, _: &mut Sum| if seed == 50 { Err(seed) } else { Ok(()) };
        assert_eq!(campaign.run(fails), Err(50));
    }
}
