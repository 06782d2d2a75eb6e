//! What was measured and found, as tables, and what was aimed at.

use crate::bench::native::table::geometric_mean;

/// How a kernel is run.
pub const HOW: [&str; 4] = ["plain, 1 thread", "plain", "archer", "dagsan"];

const ONE: usize = 0;
const ARCHER: usize = 2;
const DAGSAN: usize = 3;

/// What Archer has made of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Race,
    Nothing,
    Crash,
}

/// A kernel.
#[derive(Debug)]
pub struct Row {
    pub kernel: String,
    pub size: String,
    /// How many tasks DagSan has seen.
    pub tasks: u64,
    /// The best times, in seconds, of [`HOW`].
    pub seconds: [f64; 4],
    /// The least peaks of memory, in MiB.
    pub mib: [f64; 4],
    /// Has DagSan found the seeded race?
    pub dagsan: bool,
    /// What Archer has found of it, run by run; and without it, where there is nothing.
    pub archer: Vec<Found>,
    pub alarms: Vec<Found>,
}

impl Row {
    /// Nothing yet.
    pub fn new(kernel: &str) -> Row {
        Row {
            kernel: kernel.to_owned(),
            size: String::new(),
            tasks: 0,
            seconds: [f64::MAX; 4],
            mib: [f64::MAX; 4],
            dagsan: false,
            archer: Vec::new(),
            alarms: Vec::new(),
        }
    }

    fn against_plain(&self) -> f64 {
        self.seconds[DAGSAN] / self.seconds[ONE]
    }

    fn against_archer(&self) -> f64 {
        self.seconds[DAGSAN] / self.seconds[ARCHER]
    }
}

/// What the check costs.
pub fn costs(rows: &[Row]) -> Vec<[String; 10]> {
    let mut lines = vec![
        [
            "kernel",
            "size",
            "tasks",
            "plain, 1 thread, s",
            "plain, s",
            "archer, s",
            "dagsan, s",
            "dagsan/plain, 1 thread",
            "dagsan/archer",
            "MiB plain/archer/dagsan",
        ]
        .map(String::from),
    ];
    for row in rows {
        let [one, all, archer, dagsan] = row.seconds.map(|seconds| format!("{seconds:.3}"));
        let mib = [1, ARCHER, DAGSAN].map(|at| format!("{:.0}", row.mib[at])).join("/");
        let ratios = [row.against_plain(), row.against_archer()].map(|ratio| format!("{ratio:.2}"));
        let [plain, against] = ratios;
        let (kernel, size, tasks) = (row.kernel.clone(), row.size.clone(), row.tasks.to_string());
        lines.push([kernel, size, tasks, one, all, archer, dagsan, plain, against, mib]);
    }
    if rows.len() > 1 {
        let mut mean = [""; 10].map(String::from);
        mean[0] = "geometric mean".into();
        mean[7] = format!("{:.2}", geometric_mean(rows.iter().map(Row::against_plain)));
        mean[8] = format!("{:.2}", geometric_mean(rows.iter().map(Row::against_archer)));
        lines.push(mean);
    }
    lines
}

/// Which seeded races were found.
pub fn races(rows: &[Row]) -> Vec<[String; 4]> {
    let head = ["seeded race in", "dagsan", "archer", "archer without the race"];
    let mut lines = vec![head.map(String::from)];
    for row in rows {
        let dagsan = if row.dagsan { "found" } else { "missed" };
        lines.push([
            row.kernel.clone(),
            dagsan.into(),
            runs("found", &row.archer),
            runs("false alarm", &row.alarms),
        ]);
    }
    lines
}

/// In how many runs something was reported.
fn runs(what: &str, found: &[Found]) -> String {
    let count = |wanted| found.iter().filter(|&&one| one == wanted).count();
    let crashes = match count(Found::Crash) {
        0 => String::new(),
        some => format!(", crashed in {some}"),
    };
    match count(Found::Race) {
        0 if crashes.is_empty() => format!("no {what}").replace("no found", "missed"),
        some => format!("{what} in {some} of {}{crashes}", found.len()),
    }
}

/// The aims, one line each; the mean is that of `all` kernels.
pub fn targets(rows: &[Row], all: bool) -> Vec<String> {
    let mut targets = Vec::new();
    let mut target = |what: &str, measured: f64, most: f64| {
        let verdict = if measured <= most { "met" } else { "missed" };
        targets.push(format!("{what}: {measured:.2}, at most {most}: {verdict}"));
    };
    if all {
        let mean = geometric_mean(rows.iter().map(Row::against_archer));
        target("geometric mean, dagsan/archer", mean, 0.5);
    }
    let worst = |of: fn(&Row) -> f64| rows.iter().max_by(|a, b| of(a).total_cmp(&of(b)));
    if let Some(row) = worst(Row::against_plain) {
        let what = format!("each, dagsan/plain on one thread (worst: {})", row.kernel);
        target(&what, row.against_plain(), 3.0);
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_aims_and_what_was_found() {
        let mut row = Row::new("fib");
        (row.seconds, row.mib, row.dagsan) = ([1.0, 0.5, 8.0, 2.0], [1.0, 2.0, 3.0, 4.0], true);
        row.archer = vec![Found::Race, Found::Nothing, Found::Crash];
        row.alarms = vec![Found::Nothing; 3];
        let rows = [row];
        assert_eq!(costs(&rows)[1][7..], ["2.00", "0.25", "2/3/4"]);
        let found = races(&rows);
        assert_eq!(found[1], ["fib", "found", "found in 1 of 3, crashed in 1", "no false alarm"]);
        assert_eq!(runs("found", &[Found::Nothing]), "missed");
        let expected = [
            "geometric mean, dagsan/archer: 0.25, at most 0.5: met",
            "each, dagsan/plain on one thread (worst: fib): 2.00, at most 3: met",
        ];
        assert_eq!(targets(&rows, true), expected);
    }
}
