//! The queens' problem: how many ways are there to put n queens on a board of n × n fields (papers 003 and 004).

use std::time::Duration;

use dagsan_task::procedure;

use crate::{check, timed};

/// How many rows are tried with a task per place.
const PARALLEL_ROWS: usize = 4;

/// Solutions for boards of 0, 1, 2, … rows.
const SOLUTIONS: [u64; 16] = [1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365_596, 2_279_184];

/// Counts the solutions for a board of that many rows.
pub fn run(size: usize) -> Result<Duration, String> {
    let expected = *SOLUTIONS.get(size).ok_or("more than 15 queens take too long")?;
    let (time, solutions) = timed(|| place(&[], size));
    check(solutions == expected, format!("got {solutions} solutions, not {expected}"))?;
    Ok(time)
}

/// The solutions that begin with these queens; each is the column of the queen in its row.
fn place(queens: &[usize], size: usize) -> u64 {
    if queens.len() >= PARALLEL_ROWS.min(size) {
        let mut board = queens.to_vec();
        return count(&mut board, size);
    }
    procedure(|p| {
        let free = (0..size).filter(|&column| is_free(queens, column));
        let tasks: Vec<_> =
            free.map(|column| p.spawn(move || place(&[queens, &[column]].concat(), size))).collect();
        p.sync();
        tasks.into_iter().map(|task| task.join()).sum()
    })
}

fn count(board: &mut Vec<usize>, size: usize) -> u64 {
    if board.len() == size {
        return 1;
    }
    let mut solutions = 0;
    for column in 0..size {
        if is_free(board, column) {
            board.push(column);
            solutions += count(board, size);
            board.pop();
        }
    }
    solutions
}

/// May the next queen stand in this column?
fn is_free(queens: &[usize], column: usize) -> bool {
    queens
        .iter()
        .rev()
        .enumerate()
        .all(|(above, &queen)| queen.abs_diff(column) != above + 1 && queen != column)
}
