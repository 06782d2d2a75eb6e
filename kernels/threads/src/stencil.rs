//! Heat in a plate: each thread has some rows, and a barrier stands between two steps.

use std::cell::UnsafeCell;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::{THREADS, checked, timed};

const STEPS: usize = 40;

/// A plate, of which each thread writes rows of its own.
struct Plate {
    cells: Vec<UnsafeCell<f64>>,
    size: usize,
}

// SAFETY: whoever uses it keeps to the contracts of `get` and `set`.
unsafe impl Sync for Plate {}

impl Plate {
    fn new(size: usize) -> Plate {
        let hot = |at: usize| if at < size { 100.0 } else { 0.0 };
        Plate { cells: (0..size * size).map(|at| UnsafeCell::new(hot(at))).collect(), size }
    }

    /// # Safety
    /// Nobody writes the cell at the same time.
    unsafe fn get(&self, row: usize, column: usize) -> f64 {
        // SAFETY: promised by the caller.
        unsafe { *self.cells[row * self.size + column].get() }
    }

    /// # Safety
    /// Nobody touches the cell at the same time.
    unsafe fn set(&self, row: usize, column: usize, heat: f64) {
        // SAFETY: promised by the caller.
        unsafe { *self.cells[row * self.size + column].get() = heat }
    }

    fn sum(&mut self) -> f64 {
        self.cells.iter_mut().map(|cell| *cell.get_mut()).sum()
    }
}

/// A step for some rows.
///
/// # Safety
/// Nobody else touches these rows of `to`, nor writes `from`, before the next barrier.
unsafe fn step(from: &Plate, to: &Plate, rows: std::ops::Range<usize>) {
    for row in rows {
        for column in 1..from.size - 1 {
            // SAFETY: promised by the caller.
            unsafe {
                let around = from.get(row - 1, column) + from.get(row + 1, column);
                let beside = from.get(row, column - 1) + from.get(row, column + 1);
                to.set(row, column, (around + beside) / 4.0);
            }
        }
    }
}

pub fn run(size: usize) -> Result<Duration, String> {
    let inner = size.saturating_sub(2);
    if inner < THREADS {
        return Err(format!("{size} is too small"));
    }
    let mut plates = [Plate::new(size), Plate::new(size)];
    let (time, ()) = timed(|| {
        let (plates, barrier) = (&plates, &Barrier::new(THREADS));
        thread::scope(|scope| {
            for number in 0..THREADS {
                let rows = 1 + inner * number / THREADS..1 + inner * (number + 1) / THREADS;
                scope.spawn(move || {
                    for at in 0..STEPS {
                        // SAFETY: the rows of threads are disjoint, and after each step all wait before they change plates.
                        unsafe { step(&plates[at % 2], &plates[(at + 1) % 2], rows.clone()) };
                        barrier.wait();
                    }
                });
            }
        });
    });
    let alone = [Plate::new(size), Plate::new(size)];
    for at in 0..STEPS {
        // SAFETY: there is nobody else.
        unsafe { step(&alone[at % 2], &alone[(at + 1) % 2], 1..size - 1) };
    }
    let [mut expected, _] = alone;
    checked(time, plates[0].sum() == expected.sum())
}
