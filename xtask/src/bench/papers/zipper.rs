//! Table 3 of the Zipper paper: `cg` against `zipper`, and how both grow.

use anyhow::Context;
use dagsan_core::order;

use super::load::{self, Recorded, Source, program};
use super::table::{Printer, mark, ms};
use super::{Effort, best_ms};

/// A row of the paper's table.
struct Row {
    name: &'static str,
    source: Source,
    /// The same with futures, which `zipper` does not take.
    futures: Option<Source>,
    nodes: u32,
    isolation: bool,
    race: bool,
    cg: u32,
    zipper: u32,
}

const fn row(
    name: &'static str,
    source: Source,
    nodes: u32,
    (isolation, race): (bool, bool),
    (cg, zipper): (u32, u32),
) -> Row {
    Row { name, source, futures: None, nodes, isolation, race, cg, zipper }
}

const fn with_futures(row: Row, futures: Source) -> Row {
    Row { futures: Some(futures), ..row }
}

const Y: bool = true;
const N: bool = false;

/// Nodes, isolation, race, milliseconds of CG and of Zipper as printed; the ratio is theirs too. The sizes
/// of our programs are those with which their numbers of nodes come out, where they do.
const TABLE: [Row; 27] = [
    row("ClumpedAcess", program!("clumped_access"), 11, (Y, N), (4, 14)),
    row("PrimitiveArrayNoRace", program!("primitive_array_no_race"), 11, (N, N), (1, 12)),
    row("PrimitiveArrayRace", program!("primitive_array_race"), 11, (N, Y), (1, 8)),
    row("SimpleSimple", program!("simple_simple"), 11, (N, Y), (1, 14)),
    row("SimpleSimpleSimple2", program!("simple_simple_simple2"), 11, (N, Y), (1, 7)),
    row("VectorAdd", program!("vector_add"), 11, (N, N), (5, 18)),
    row("DataRaceIsolateSimple", program!("data_race_isolate_simple"), 13, (Y, Y), (10, 17)),
    row("DoubleBranchExample", program!("double_branch"), 13, (Y, N), (1, 7)),
    row("DataRaceIsolateSimple1", program!("data_race_isolate_simple1"), 15, (Y, Y), (5, 22)),
    row("ForallWithIterable", program!("forall_with_iterable"), 17, (N, N), (4, 11)),
    row("IsolatedBlockNo", program!("isolated_block_no"), 19, (Y, N), (9, 2)),
    row("Add", program!("add"), 23, (N, N), (18, 28)),
    row("PrimeNumCounter", program!("prime_num_counter", tasks = 5), 23, (Y, N), (34, 22)),
    row("PrimeNumCounterForAll", program!("prime_num_counter_forall", tasks = 6), 27, (Y, N), (39, 44)),
    row("ScalarMultiply", program!("scalar_multiply"), 27, (N, N), (37, 41)),
    row("TwoDimArrays", program!("two_dim_arrays"), 27, (N, N), (22, 40)),
    with_futures(
        row("ReciprocalArraySumFutures", program!("reciprocal_array_sum", tasks = 15), 37, (N, N), (32, 72)),
        program!("reciprocal_array_sum_futures"),
    ),
    row("IntegerCounterIsolated", program!("integer_counter_isolated"), 43, (Y, N), (774, 697)),
    row(
        "PrimeNumCounterForAsync",
        program!("prime_num_counter_forasync", tasks = 12),
        43,
        (Y, N),
        (138, 103),
    ),
    row("Antidep1VarYes", program!("antidep1", length = 20), 45, (N, Y), (1271, 54)),
    row("Antidep2OrigYes", program!("antidep2", rows = 20, columns = 20), 45, (N, Y), (1234, 58)),
    row("ReciprocalArraySum", program!("reciprocal_array_sum"), 53, (N, N), (1801, 51)),
    with_futures(
        row(
            "PipelineWithFutures",
            program!("pipeline_with_finish", items = 3, stages = 5),
            62,
            (N, N),
            (61, 53),
        ),
        program!("pipeline_with_futures", items = 3, stages = 5),
    ),
    row("DoAll1OrigNo", program!("doall1"), 207, (N, N), (650, 372)),
    row("DoAll2OrigNo", program!("doall2"), 207, (N, N), (47287, 49534)),
    row("Antidep1OrigYes", program!("antidep1", length = 1000), 2005, (N, Y), (247736, 58215)),
    row("Antidep2VarYes", program!("antidep2", rows = 1000, columns = 100), 2005, (N, Y), (246561, 7003)),
];

/// What we say of a row.
struct Ours {
    recorded: Recorded,
    /// By an exploration of all schedules, and of the program with futures if there is one.
    race: bool,
    /// Does somebody see it otherwise: `cg` or `zipper` on the recorded run, the paper?
    disagree: bool,
}

impl Row {
    fn ours(&self) -> anyhow::Result<Ours> {
        let program = self.source.compile()?;
        let recorded = Recorded::new(&program)?;
        let mut verdicts = Vec::new();
        for source in [Some(self.source), self.futures].into_iter().flatten() {
            let program = source.compile()?;
            verdicts.push(load::all_schedules(&program)?.race);
            let (_, detector) = Recorded::new(&program)?.judge(order::find("cg")?)?;
            verdicts.push(!detector.races().is_empty());
        }
        let (_, detector) = recorded.judge(order::find("zipper")?)?;
        verdicts.push(!detector.races().is_empty());
        let disagree = verdicts.iter().any(|&race| race != self.race);
        Ok(Ours { race: verdicts[0], disagree, recorded })
    }
}

/// Prints table 3.
pub(super) fn table_3(effort: &Effort) -> anyhow::Result<()> {
    println!("## Zipper, table 3\n");
    let mut printer = Printer::new(&[
        "program",
        "nodes",
        "our nodes",
        "isolation",
        "our sections",
        "race",
        "our race",
        "CG ms",
        "Zipper ms",
        "ratio",
        "our cg ms",
        "our zipper ms",
        "our ratio",
    ]);
    let mut disagreements = 0;
    for row in &TABLE {
        let ours = row.ours().with_context(|| row.name.to_owned())?;
        disagreements += u32::from(ours.disagree);
        let (cg, zipper) = both(&ours.recorded, effort)?;
        printer.row(vec![
            format!("{}{}", row.name, if row.futures.is_some() { " (1)" } else { "" }),
            row.nodes.to_string(),
            ours.recorded.nodes.to_string(),
            mark(row.isolation),
            ours.recorded.sections.to_string(),
            mark(row.race),
            format!("{}{}", mark(ours.race), if ours.disagree { " DISAGREES" } else { "" }),
            row.cg.to_string(),
            row.zipper.to_string(),
            format!("{:.2}", f64::from(row.zipper) / f64::from(row.cg)),
            ms(cg),
            ms(zipper),
            format!("{:.2}", zipper / cg),
        ]);
    }
    printer.print();
    println!("(1) with async and finish; the program with futures is judged too, but not by `zipper`\n");
    println!("Verdicts that are not the paper's: {disagreements} of {}.\n", TABLE.len());
    Ok(())
}

/// Times of `cg` and `zipper`.
fn both(recorded: &Recorded, effort: &Effort) -> anyhow::Result<(f64, f64)> {
    let (cg, zipper) = (order::find("cg")?, order::find("zipper")?);
    let cg = best_ms(effort, || Ok(recorded.judge(cg)?.0))?;
    let zipper = best_ms(effort, || Ok(recorded.judge(zipper)?.0))?;
    Ok((cg, zipper))
}

/// A growing series of programs: a text, and its sizes for so many tasks.
struct Series {
    name: &'static str,
    text: &'static str,
    sizes: fn(u64) -> Vec<(&'static str, u64)>,
}

const SERIES: [Series; 3] = [
    Series { name: "flat loop", text: program!("doall1").text, sizes: |tasks| vec![("tasks", tasks)] },
    Series {
        name: "binary tree",
        text: program!("tree").text,
        sizes: |tasks| vec![("depth", u64::from(tasks.ilog2())), ("cells", 2 << tasks.ilog2())],
    },
    Series {
        name: "isolated counter",
        text: program!("integer_counter_isolated").text,
        sizes: |tasks| vec![("tasks", tasks)],
    },
];

/// Prints times on growing programs, and the exponents of growth.
pub(super) fn growth(effort: &Effort) -> anyhow::Result<()> {
    println!("## Growth of cg and zipper\n");
    let mut times = Printer::new(&["series", "nodes", "cg ms", "zipper ms"]);
    let mut exponents = Printer::new(&["series", "cg", "zipper"]);
    for series in &SERIES {
        let (mut cg_points, mut zipper_points) = (Vec::new(), Vec::new());
        for tasks in
            std::iter::successors(Some(50), |tasks| Some(2 * tasks)).take_while(|&n| n <= effort.most_tasks)
        {
            let recorded = Recorded::new(&load::compile(series.text, &(series.sizes)(tasks))?)?;
            let (cg, zipper) = both(&recorded, effort)?;
            times.row(vec![series.name.to_owned(), recorded.nodes.to_string(), ms(cg), ms(zipper)]);
            cg_points.push((recorded.nodes as f64, cg));
            zipper_points.push((recorded.nodes as f64, zipper));
        }
        let exponent = |points: &[(f64, f64)]| format!("{:.2}", slope(points));
        exponents.row(vec![series.name.to_owned(), exponent(&cg_points), exponent(&zipper_points)]);
    }
    times.print();
    println!("Exponents e of time ~ nodes^e, by least squares on the logarithms:\n");
    exponents.print();
    Ok(())
}

/// The slope of the line through the logarithms, by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let count = logs.len() as f64;
    let mean_x = logs.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = logs.iter().map(|(_, y)| y).sum::<f64>() / count;
    let shared: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    shared / logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_those_of_the_paper() {
        for row in &TABLE {
            let ours = row.ours().unwrap();
            assert!(!ours.disagree, "{}", row.name);
            assert_eq!(ours.recorded.sections > 0, row.isolation, "{}", row.name);
        }
    }

    #[test]
    fn the_slope_of_a_square_is_two() {
        let squares: Vec<(f64, f64)> = [1.0, 2.0, 5.0, 9.0].map(|x: f64| (x, 7.0 * x * x)).to_vec();
        assert!((slope(&squares) - 2.0).abs() < 1e-9);
    }
}
