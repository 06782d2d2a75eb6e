//! The programs of `cargo xtask bench order`, each growing with the number of tasks.
//!
//! Every task has the strands that a program of its kind would have, and each strand asks about the
//! strands whose data it would use. All are race-free: the answer to these questions is yes.

use dagsan_core::{Event, StrandId, TaskId, TaskKind};

use super::script::{Script, Writer};

/// A program shape.
pub struct Shape {
    /// Its name in the table.
    pub name: &'static str,
    /// The numbers of tasks it is made in.
    pub sizes: &'static [u32],
    /// Makes it with about so many tasks.
    pub build: fn(u32) -> Script,
}

/// All shapes.
pub const SHAPES: &[Shape] = &[
    Shape { name: "binary async-finish tree", sizes: DECADES, build: tree },
    Shape { name: "wide flat finish", sizes: DECADES, build: flat },
    Shape { name: "chain of structured futures", sizes: DECADES, build: chain },
    Shape { name: "promise stencil (poisson)", sizes: &[1_000, 10_000, 106_496, 1_000_000], build: stencil },
    Shape { name: "promise LU (sparselu)", sizes: &[1_000, 10_000, 194_054, 1_000_000], build: lu },
];

const DECADES: &[u32] = &[1_000, 10_000, 100_000, 1_000_000];

/// Divide and conquer: a task reads what the tasks above it wrote, and what its two children made.
fn tree(tasks: u32) -> Script {
    let mut writer = Writer::new(TaskKind::Async);
    let mut above = vec![writer.strand(TaskId::MAIN, &[])];
    conquer(&mut writer, TaskId::MAIN, &mut above, tasks);
    writer.finish()
}

fn conquer(writer: &mut Writer, task: TaskId, above: &mut Vec<StrandId>, tasks: u32) -> StrandId {
    let divided = writer.strand(task, &above[above.len().saturating_sub(4)..]);
    if tasks < 3 {
        return divided;
    }
    writer.event(Event::FinishBegin { task });
    above.push(divided);
    let results = [(tasks - 1) / 2, tasks - 1 - (tasks - 1) / 2].map(|part| {
        let child = writer.spawn(task, TaskKind::Async);
        let result = conquer(writer, child, above, part);
        writer.event(Event::TaskEnd { task: child });
        result
    });
    above.pop();
    writer.event(Event::FinishEnd { task });
    writer.strand(task, &results)
}

/// A parallel loop: every task reads what the main task wrote before it, in four places; the main task reads
/// the last results.
fn flat(tasks: u32) -> Script {
    let mut writer = Writer::new(TaskKind::Async);
    let main = TaskId::MAIN;
    let inputs = [(); 4].map(|()| {
        writer.event(Event::FinishBegin { task: main });
        let input = writer.strand(main, &[]);
        writer.event(Event::FinishEnd { task: main });
        input
    });
    writer.event(Event::FinishBegin { task: main });
    let mut results = Vec::new();
    for _ in 0..tasks {
        let task = writer.spawn(main, TaskKind::Async);
        results.push(writer.strand(task, &inputs));
        writer.event(Event::TaskEnd { task });
    }
    writer.event(Event::FinishEnd { task: main });
    writer.strand(main, &results[results.len().saturating_sub(4)..]);
    writer.finish()
}

/// A pipeline: each future gets the one before it, and reads its result and the main task's input.
fn chain(tasks: u32) -> Script {
    let mut writer = Writer::new(TaskKind::Spawn);
    let main = TaskId::MAIN;
    let input = writer.strand(main, &[]);
    let mut last = None;
    for _ in 0..tasks {
        let task = writer.spawn(main, TaskKind::Future);
        let result = match last {
            Some((future, result)) => {
                writer.event(Event::FutureGet { task, future });
                writer.strand(task, &[result, input])
            }
            None => writer.strand(task, &[input]),
        };
        writer.event(Event::TaskEnd { task });
        last = Some((task, result));
    }
    writer.finish()
}

/// Sweeps over a row of blocks, 26 as in the paper's run. A block waits for itself in the sweep before
/// and, every fifth, for its neighbour too: that is the paper's ratio of joins to tasks, 1.15.
fn stencil(tasks: u32) -> Script {
    const SWEEPS: u32 = 26;
    let blocks = (tasks / SWEEPS) as usize;
    let mut writer = Writer::new(TaskKind::Async);
    let main = TaskId::MAIN;
    let input = writer.strand(main, &[]);
    writer.event(Event::FinishBegin { task: main });
    let mut before: Vec<(dagsan_core::PromiseId, StrandId)> = Vec::new();
    for _ in 0..SWEEPS {
        let mut sweep = Vec::with_capacity(blocks);
        for block in 0..blocks {
            let promise = writer.promise();
            let task = writer.spawn(main, TaskKind::Async);
            let mut asks = vec![input];
            let neighbour = (block % 5 == 4 && block + 1 < blocks).then_some(block + 1);
            for needed in [Some(block), neighbour].into_iter().flatten() {
                if let Some(&(promise, strand)) = before.get(needed) {
                    writer.event(Event::PromiseGet { task, promise });
                    asks.push(strand);
                }
            }
            let strand = writer.strand(task, &asks);
            writer.event(Event::PromiseSet { task, promise });
            writer.event(Event::TaskEnd { task });
            sweep.push((promise, strand));
        }
        before = sweep;
    }
    writer.event(Event::FinishEnd { task: main });
    writer.finish()
}

/// LU decomposition by blocks, a finish per step: the row and column blocks wait for the diagonal block,
/// the inner ones for their row and column block; versions of a block are ordered by the finish.
fn lu(tasks: u32) -> Script {
    // n steps make 1 + 4 + 9 + … + n² tasks.
    let n = (1..).find(|&n: &u64| n * (n + 1) * (2 * n + 1) / 6 >= u64::from(tasks)).unwrap_or(1) as usize;
    let mut writer = Writer::new(TaskKind::Async);
    let main = TaskId::MAIN;
    let input = writer.strand(main, &[]);
    let mut version = vec![input; n * n];
    for k in 0..n {
        writer.event(Event::FinishBegin { task: main });
        let mut done = vec![None; n * n];
        let mut block = |writer: &mut Writer, at: (usize, usize), needs: &[(usize, usize)]| {
            let promise = writer.promise();
            let task = writer.spawn(main, TaskKind::Async);
            let mut asks = vec![version[at.0 * n + at.1]];
            for &(i, j) in needs {
                if let Some(promise) = done[i * n + j] {
                    writer.event(Event::PromiseGet { task, promise });
                }
                asks.push(version[i * n + j]);
            }
            version[at.0 * n + at.1] = writer.strand(task, &asks);
            writer.event(Event::PromiseSet { task, promise });
            writer.event(Event::TaskEnd { task });
            done[at.0 * n + at.1] = Some(promise);
        };
        block(&mut writer, (k, k), &[]);
        for j in k + 1..n {
            block(&mut writer, (k, j), &[(k, k)]);
            block(&mut writer, (j, k), &[(k, k)]);
        }
        for i in k + 1..n {
            for j in k + 1..n {
                block(&mut writer, (i, j), &[(k, j), (i, k)]);
            }
        }
        writer.event(Event::FinishEnd { task: main });
    }
    writer.finish()
}
