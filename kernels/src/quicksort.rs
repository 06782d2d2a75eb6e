//! Quicksort: a task for each part (paper 004).

use std::time::Duration;

use dagsan_task::procedure;

use crate::random::Random;
use crate::{check, timed};

/// Up to this length the library sorts.
const CUTOFF: usize = 2048;

/// Sorts that many numbers.
pub fn run(size: usize) -> Result<Duration, String> {
    let mut random = Random(1);
    let mut numbers: Vec<u32> = (0..size).map(|_| random.next() as u32).collect();
    let sum = |numbers: &[u32]| numbers.iter().map(|&number| u64::from(number)).sum::<u64>();
    let before = sum(&numbers);
    let (time, ()) = timed(|| sort(&mut numbers));
    check(numbers.is_sorted(), "not sorted")?;
    check(sum(&numbers) == before, "numbers were lost")?;
    Ok(time)
}

fn sort(numbers: &mut [u32]) {
    if numbers.len() <= CUTOFF {
        numbers.sort_unstable();
        return;
    }
    let middle = partition(numbers);
    let (low, high) = numbers.split_at_mut(middle);
    procedure(|p| {
        _ = p.spawn(|| sort(low));
        _ = p.spawn(|| sort(high));
    });
}

/// Puts small numbers to the left and large ones to the right, and says where the right begins: neither side is empty
/// (Hoare's scheme, the pivot is the median of three).
fn partition(numbers: &mut [u32]) -> usize {
    let (last, middle) = (numbers.len() - 1, numbers.len() / 2);
    let mut three = [numbers[0], numbers[middle], numbers[last]];
    three.sort_unstable();
    let pivot = three[1];
    let (mut left, mut right) = (0, last);
    loop {
        while numbers[left] < pivot {
            left += 1;
        }
        while numbers[right] > pivot {
            right -= 1;
        }
        if left >= right {
            return left.max(1);
        }
        numbers.swap(left, right);
        left += 1;
        right -= 1;
    }
}
