//! The programs: matrix multiplication, merge sort and Smith-Waterman, with structured futures.
//!
//! Each future is got once, by the task that has created it. The finishes around them are there for what tasks borrow; by their ends all
//! futures have been got, so that checkers need not hear of them.

use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use dagsan_core::AccessKind::{Read, Write};
use dagsan_task::{Scope, finish};
use fastrand::Rng;

use super::checker::Checker;

/// A benchmark of the paper's.
#[derive(Debug, Clone, Copy)]
pub enum Program {
    /// Divide and conquer, 64 x 64 at the base, as in the paper; 512 x 512.
    Mm,
    /// A million numbers; 8192 at the base, as in the paper.
    Sort,
    /// 2048 letters, 64 x 64 at the base, as in the paper.
    Sw,
}

pub const PROGRAMS: [Program; 3] = [Program::Mm, Program::Sort, Program::Sw];

impl Program {
    pub fn name(self) -> &'static str {
        match self {
            Program::Mm => "mm",
            Program::Sort => "sort",
            Program::Sw => "sw",
        }
    }

    /// Runs it, and checks the result. The time is that of the tasks.
    pub fn run<C: Checker>(self, checker: &C) -> anyhow::Result<Duration> {
        match self {
            Program::Mm => mm(checker, 512),
            Program::Sort => sort(checker, 1 << 20),
            Program::Sw => sw(checker, 2048),
        }
    }
}

/// Creates a future for a task of the checked program.
fn create<'a, C: Checker>(
    checker: &'a C,
    scope: &Scope<'a>,
    parent: &mut C::Here,
    body: impl FnOnce(&mut C::Here) -> anyhow::Result<()> + Send + 'a,
) -> anyhow::Result<Created<C>>
where
    C::Here: 'a,
    C::End: 'a,
{
    let (mut child, handle) = checker.create(parent)?;
    let future = scope.future(move |_| {
        body(&mut child)?;
        checker.end(child)
    });
    Ok(Created { handle, future })
}

/// A future of the checked program.
struct Created<C: Checker> {
    handle: C::Handle,
    future: dagsan_task::Future<anyhow::Result<C::End>>,
}

impl<C: Checker> Created<C> {
    fn get(self, checker: &C, by: &mut C::Here) -> anyhow::Result<()> {
        match self.future.get() {
            Ok(end) => checker.get(by, self.handle, end),
            Err(error) => Err(anyhow::anyhow!("{error}")),
        }
    }
}

const BASE: usize = 64;

/// Matrices are stored by quarters, down to blocks of 64 x 64, which are stored by rows.
fn mm<C: Checker>(checker: &C, size: usize) -> anyhow::Result<Duration> {
    let mut random = Rng::with_seed(1);
    let mut matrix = || -> Vec<f64> { (0..size * size).map(|_| f64::from(random.u8(0..8))).collect() };
    let (a, b, mut product) = (matrix(), matrix(), vec![0.0; size * size]);
    let mut main = checker.main();
    let start = Instant::now();
    multiply(checker, &mut main, &a, &b, &mut product)?;
    checker.end(main)?;
    let time = start.elapsed();
    for _ in 0..100 {
        let (row, column) = (random.usize(0..size), random.usize(0..size));
        let expected: f64 =
            (0..size).map(|k| a[by_quarters(size, row, k)] * b[by_quarters(size, k, column)]).sum();
        ensure!(product[by_quarters(size, row, column)] == expected, "the product is wrong");
    }
    Ok(time)
}

/// Where an element is.
fn by_quarters(size: usize, row: usize, column: usize) -> usize {
    if size == BASE {
        return row * BASE + column;
    }
    let half = size / 2;
    let quarter = row / half * 2 + column / half;
    quarter * half * half + by_quarters(half, row % half, column % half)
}

fn multiply<C: Checker>(
    checker: &C,
    here: &mut C::Here,
    a: &[f64],
    b: &[f64],
    product: &mut [f64],
) -> anyhow::Result<()> {
    if product.len() == BASE * BASE {
        checker.touch(here, Read, a)?;
        checker.touch(here, Read, b)?;
        checker.touch(here, Write, product)?;
        for (sums, factors) in product.chunks_exact_mut(BASE).zip(a.chunks_exact(BASE)) {
            for (factor, row) in factors.iter().zip(b.chunks_exact(BASE)) {
                sums.iter_mut().zip(row).for_each(|(sum, element)| *sum += factor * element);
            }
        }
        return Ok(());
    }
    let quarter = product.len() / 4;
    for k in 0..2 {
        finish(|scope| {
            let mut tasks = Vec::with_capacity(4);
            for (number, part) in product.chunks_exact_mut(quarter).enumerate() {
                let (row, column) = (number / 2, number % 2);
                let (a, b) =
                    (&a[(row * 2 + k) * quarter..][..quarter], &b[(k * 2 + column) * quarter..][..quarter]);
                tasks.push(create(checker, scope, here, move |here| multiply(checker, here, a, b, part))?);
            }
            tasks.into_iter().try_for_each(|task| task.get(checker, here))
        })?;
    }
    Ok(())
}

const SORT_BASE: usize = 8192;

fn sort<C: Checker>(checker: &C, size: usize) -> anyhow::Result<Duration> {
    let mut random = Rng::with_seed(1);
    let mut numbers: Vec<u64> = (0..size).map(|_| random.u64(..)).collect();
    let mut scratch = vec![0; size];
    let sum = |numbers: &[u64]| numbers.iter().fold(0, |sum: u64, number| sum.wrapping_add(*number));
    let before = sum(&numbers);
    let mut main = checker.main();
    let start = Instant::now();
    sort_part(checker, &mut main, &mut numbers, &mut scratch)?;
    checker.end(main)?;
    let time = start.elapsed();
    ensure!(numbers.is_sorted() && sum(&numbers) == before, "not sorted");
    Ok(time)
}

fn sort_part<C: Checker>(
    checker: &C,
    here: &mut C::Here,
    numbers: &mut [u64],
    scratch: &mut [u64],
) -> anyhow::Result<()> {
    if numbers.len() <= SORT_BASE {
        checker.touch(here, Write, numbers)?;
        numbers.sort_unstable();
        return Ok(());
    }
    let half = numbers.len() / 2;
    let (left, right) = numbers.split_at_mut(half);
    let (left_scratch, right_scratch) = scratch.split_at_mut(half);
    finish(|scope| {
        let left = create(checker, scope, here, |here| sort_part(checker, here, left, left_scratch))?;
        sort_part(checker, here, right, right_scratch)?;
        left.get(checker, here)
    })?;
    checker.touch(here, Read, numbers)?;
    checker.touch(here, Write, scratch)?;
    let (mut left, mut right) = numbers.split_at(half);
    for next in scratch.iter_mut() {
        let from = if right.first().is_none_or(|right| left.first().is_some_and(|left| left <= right)) {
            &mut left
        } else {
            &mut right
        };
        let (first, rest) = from.split_first().context("as many numbers as there is room for")?;
        (*next, *from) = (*first, rest);
    }
    checker.touch(here, Write, numbers)?;
    numbers.copy_from_slice(scratch);
    Ok(())
}

/// Diagonal by diagonal of blocks, a future each. Cells are atomics, so that tasks may share them in safe Rust.
fn sw<C: Checker>(checker: &C, size: usize) -> anyhow::Result<Duration> {
    let mut random = Rng::with_seed(1);
    let mut letters = || -> Vec<u8> { (0..size).map(|_| random.u8(0..4)).collect() };
    let (a, b) = (letters(), letters());
    let width = size + 1;
    let cells: Vec<AtomicI32> = (0..width * width).map(|_| AtomicI32::new(0)).collect();
    let blocks = size / BASE;
    let mut main = checker.main();
    let start = Instant::now();
    for diagonal in 0..2 * blocks - 1 {
        let rows = diagonal.saturating_sub(blocks - 1)..blocks.min(diagonal + 1);
        let (a, b, cells) = (&a, &b, &cells);
        finish(|scope| {
            let mut tasks = Vec::with_capacity(rows.len());
            for row in rows {
                let column = diagonal - row;
                let body =
                    move |here: &mut C::Here| align(checker, here, a, b, cells, row * BASE, column * BASE);
                tasks.push(create(checker, scope, &mut main, body)?);
            }
            tasks.into_iter().try_for_each(|task| task.get(checker, &mut main))
        })?;
    }
    checker.end(main)?;
    let time = start.elapsed();
    for _ in 0..10_000 {
        let (row, column) = (random.usize(0..size), random.usize(0..size));
        let at = (row + 1) * width + column + 1;
        let [both, up, left] = [at - width - 1, at - width, at - 1].map(|cell| cells[cell].load(Relaxed));
        let expected = score(a[row] == b[column], both, up, left);
        ensure!(cells[at].load(Relaxed) == expected, "the score at {row}, {column} is wrong");
    }
    Ok(time)
}

fn score(same: bool, both: i32, up: i32, left: i32) -> i32 {
    (both + if same { 2 } else { -1 }).max(up - 1).max(left - 1).max(0)
}

fn align<C: Checker>(
    checker: &C,
    here: &mut C::Here,
    a: &[u8],
    b: &[u8],
    cells: &[AtomicI32],
    row: usize,
    column: usize,
) -> anyhow::Result<()> {
    let width = b.len() + 1;
    checker.touch(here, Read, &a[row..][..BASE])?;
    checker.touch(here, Read, &b[column..][..BASE])?;
    checker.touch(here, Read, &cells[row * width + column..][..BASE + 1])?;
    for row in row..row + BASE {
        let (above, line) = cells[row * width + column..].split_at(width);
        checker.touch(here, Read, &line[..1])?;
        checker.touch(here, Write, &line[1..=BASE])?;
        let (mut both, mut left) = (above[0].load(Relaxed), line[0].load(Relaxed));
        for ((cell, above), other) in line[1..=BASE].iter().zip(&above[1..]).zip(&b[column..]) {
            let up = above.load(Relaxed);
            left = score(a[row] == *other, both, up, left);
            both = up;
            cell.store(left, Relaxed);
        }
    }
    Ok(())
}
