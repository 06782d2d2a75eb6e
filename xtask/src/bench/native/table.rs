//! What was measured, as a table, and what was aimed at.

use super::builds::Build;

/// Memory that a checked program may have besides twice that of the plain one.
const EXTRA_MIB: f64 = 64.0;

/// A kernel that was measured.
pub struct Row {
    pub kernel: String,
    pub size: u64,
    pub tasks: u64,
    /// The best times, in seconds, of [`Build::ALL`].
    pub seconds: [f64; 3],
    /// The least peaks of memory, in MiB.
    pub mib: [f64; 3],
}

impl Row {
    fn of(&self, build: Build) -> f64 {
        self.seconds[build as usize]
    }

    fn slowdown(&self) -> f64 {
        self.of(Build::Dagsan) / self.of(Build::Plain)
    }

    fn against_tsan(&self) -> f64 {
        self.of(Build::Dagsan) / self.of(Build::Tsan)
    }

    fn ns_per_task(&self) -> f64 {
        self.of(Build::Dagsan) * 1e9 / self.tasks as f64
    }

    /// How far beyond twice the plain program's memory, in MiB.
    fn extra_mib(&self) -> f64 {
        self.mib[Build::Dagsan as usize] - 2.0 * self.mib[Build::Plain as usize]
    }
}

const HEAD: [&str; 9] = [
    "kernel",
    "size",
    "tasks",
    "plain, s",
    "tsan, s",
    "dagsan, s",
    "dagsan/plain",
    "dagsan/tsan",
    "MiB plain/tsan/dagsan",
];

/// The table, and the means in its last line.
pub fn table(rows: &[Row]) -> Vec<[String; 9]> {
    let mut lines = vec![HEAD.map(String::from)];
    for row in rows {
        let seconds = row.seconds.map(|seconds| format!("{seconds:.3}"));
        let [plain, tsan, dagsan] = seconds;
        let mib = row.mib.map(|mib| format!("{mib:.0}")).join("/");
        let (slowdown, against) = (format!("{:.2}", row.slowdown()), format!("{:.2}", row.against_tsan()));
        let (size, tasks) = (row.size.to_string(), row.tasks.to_string());
        lines.push([row.kernel.clone(), size, tasks, plain, tsan, dagsan, slowdown, against, mib]);
    }
    if rows.len() > 1 {
        let mut mean = [""; 9].map(String::from);
        mean[0] = "geometric mean".into();
        mean[6] = format!("{:.2}", geometric_mean(rows.iter().map(Row::slowdown)));
        mean[7] = format!("{:.2}", geometric_mean(rows.iter().map(Row::against_tsan)));
        lines.push(mean);
    }
    lines
}

/// For terminals.
pub fn text<const N: usize>(lines: &[[String; N]]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let mut text = String::new();
    for line in lines {
        let cells: Vec<String> = (0..N)
            .map(|column| match column {
                0 => format!("{:<1$}", line[column], width(column)),
                _ => format!("{:>1$}", line[column], width(column)),
            })
            .collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// For Markdown.
pub fn markdown<const N: usize>(lines: &[[String; N]]) -> String {
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        text += &format!("| {} |\n", line.join(" | "));
        if number == 0 {
            text += &format!("{}|\n", "|---".repeat(N));
        }
    }
    text
}

/// What can be held against an aim.
#[derive(Debug, Clone, Copy)]
pub enum Measure {
    /// DagSan's time beside the plain one.
    Slowdown,
    /// DagSan's time beside ThreadSanitizer's.
    AgainstTsan,
    /// DagSan's time per task.
    NsPerTask,
}

impl Measure {
    fn of(self, row: &Row) -> f64 {
        match self {
            Measure::Slowdown => row.slowdown(),
            Measure::AgainstTsan => row.against_tsan(),
            Measure::NsPerTask => row.ns_per_task(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Measure::Slowdown => "dagsan/plain",
            Measure::AgainstTsan => "dagsan/tsan",
            Measure::NsPerTask => "nanoseconds a task, all included",
        }
    }
}

/// What an aim is about.
#[derive(Debug, Clone, Copy)]
pub enum Of {
    /// A kernel.
    Kernel(&'static str),
    /// The geometric mean of all.
    Mean,
    /// Each of them.
    Each,
}

/// An aim: what should be at most so much.
#[derive(Debug, Clone, Copy)]
pub struct Aim {
    pub of: Of,
    pub measure: Measure,
    pub most: f64,
}

/// The aims that what was measured can be held against, and that of memory: one line each. The mean is that of `all`
/// kernels.
pub fn targets(aims: &[Aim], rows: &[Row], all: bool) -> Vec<String> {
    let mut targets = Vec::new();
    let mut target = |what: &str, measured: f64, limit: f64| {
        let verdict = if measured <= limit { "met" } else { "missed" };
        targets.push(format!("{what}: {measured:.2}, at most {limit}: {verdict}"));
    };
    for Aim { of, measure, most } in aims {
        let name = measure.name();
        match of {
            Of::Kernel(kernel) => {
                if let Some(row) = rows.iter().find(|row| row.kernel == *kernel) {
                    target(&format!("{kernel}, {name}"), measure.of(row), *most);
                }
            }
            Of::Mean if all => {
                let mean = geometric_mean(rows.iter().map(|row| measure.of(row)));
                target(&format!("geometric mean, {name}"), mean, *most);
            }
            Of::Mean => {}
            Of::Each => {
                if let Some(worst) = rows.iter().max_by(|a, b| measure.of(a).total_cmp(&measure.of(b))) {
                    target(&format!("each, {name} (worst: {})", worst.kernel), measure.of(worst), *most);
                }
            }
        }
    }
    if let Some(worst) = rows.iter().max_by(|a, b| a.extra_mib().total_cmp(&b.extra_mib())) {
        let what = format!("peak memory beyond twice the plain one, MiB (worst: {})", worst.kernel);
        target(&what, worst.extra_mib(), EXTRA_MIB);
    }
    targets
}

/// The mean of ratios.
pub fn geometric_mean(numbers: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = numbers.len() as f64;
    (numbers.map(f64::ln).sum::<f64>() / count).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kernel: &str, seconds: [f64; 3], mib: [f64; 3]) -> Row {
        Row { kernel: kernel.into(), size: 1, tasks: 1_000_000, seconds, mib }
    }

    #[test]
    fn means_and_targets() {
        let rows = [
            row("matmul", [1.0, 8.0, 2.0], [10.0, 50.0, 20.0]),
            row("fib", [0.01, 0.5, 0.08], [1.0, 1.0, 70.0]),
        ];
        let lines = table(&rows);
        assert_eq!(lines[1][6..], ["2.00", "0.25", "10/50/20"]);
        assert_eq!(lines[3][6..8], ["4.00", "0.20"]);
        let expected = [
            "matmul, dagsan/plain: 2.00, at most 6: met",
            "matmul, dagsan/tsan: 0.25, at most 0.35: met",
            "fib, nanoseconds a task, all included: 80.00, at most 80: met",
            "geometric mean, dagsan/plain: 4.00, at most 3: missed",
            "geometric mean, dagsan/tsan: 0.20, at most 0.5: met",
            "each, dagsan/plain (worst: fib): 8.00, at most 7: missed",
            "peak memory beyond twice the plain one, MiB (worst: fib): 68.00, at most 64: missed",
        ];
        let aim = |of, measure, most| Aim { of, measure, most };
        let aims = [
            aim(Of::Kernel("matmul"), Measure::Slowdown, 6.0),
            aim(Of::Kernel("matmul"), Measure::AgainstTsan, 0.35),
            aim(Of::Kernel("fib"), Measure::NsPerTask, 80.0),
            aim(Of::Mean, Measure::Slowdown, 3.0),
            aim(Of::Mean, Measure::AgainstTsan, 0.5),
            aim(Of::Each, Measure::Slowdown, 7.0),
        ];
        assert_eq!(targets(&aims, &rows, true), expected);
        assert_eq!(targets(&aims, &rows[..1], false).len(), 4);
    }

    #[test]
    fn tables_are_aligned() {
        let lines = table(&[row("a", [1.0; 3], [1.0; 3])]);
        let text = text(&lines);
        let lengths: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(lengths[0], lengths[1], "{text}");
        assert!(markdown(&lines).starts_with("| kernel | size |"));
    }
}
