//! Figure 4 of the SF-Order paper (001): base, *reach* and *full*, on one and two workers.
//!
//! Of the paper's five benchmarks three are here (`programs.rs`); Heart Wall and Ferret are applications with inputs of their own. Tasks
//! run by dagsan-task's work stealing. `sf-order` is told of them while they run, by whichever worker runs them; `multibags` and `dag` by a
//! stream, on one worker. Accesses are told as ranges, a row of a block at a time, as our marks of loops are, and not one
//! by one as in the paper: *full* is not its *full*.

mod checker;
mod programs;

use anyhow::ensure;
use dagsan_core::order;
use dagsan_task::with_workers;

use super::table::{Printer, ms};
use super::{Effort, best_ms};
use checker::{Base, Checker, SfOrder, Streamed};
use programs::{PROGRAMS, Program};

/// Prints the table.
pub(super) fn figure_4(effort: &Effort) -> anyhow::Result<()> {
    println!("SF-Order (001), figure 4: times in ms, and how many times the base of one worker that is\n");
    let heads = ["program", "config", "base 1", "base 2", "multibags 1", "dag 1", "sf-order 1", "sf-order 2"];
    let mut table = Printer::new(&heads);
    for program in PROGRAMS {
        let (base_1, base_2) = (measure(effort, program, 1, || Base)?, measure(effort, program, 2, || Base)?);
        for (config, full) in [("reach", false), ("full", true)] {
            let cell = |time: f64| format!("{} ({:.2}x)", ms(time), time / base_1);
            let mut cells = vec![program.name().to_owned(), config.to_owned(), ms(base_1), cell(base_2)];
            for name in ["multibags", "dag"] {
                let engine = order::find(name)?;
                cells.push(cell(measure(effort, program, 1, || Streamed::new(engine, full))?));
            }
            for workers in [1, 2] {
                cells.push(cell(measure(effort, program, workers, || SfOrder::new(full))?));
            }
            table.row(cells);
        }
    }
    table.print();
    Ok(())
}

fn measure<C: Checker>(
    effort: &Effort,
    program: Program,
    workers: usize,
    checker: impl Fn() -> C,
) -> anyhow::Result<f64> {
    best_ms(effort, || {
        let checker = checker();
        let time = with_workers(workers, || program.run(&checker))?;
        ensure!(checker.races() == 0, "{} has races", program.name());
        Ok(time)
    })
}
