//! What a check took, as a table.

use std::fmt::Write as _;
use std::time::Duration;

use crate::model::Stats;

/// One line per figure, the figures under each other.
pub fn table(stats: &Stats) -> String {
    let mut rows = vec![
        ("accesses to shared memory".to_owned(), stats.accesses.to_string()),
        ("  checked".to_owned(), stats.checks.to_string()),
    ];
    for &(name, number) in &stats.eliminated {
        rows.push((format!("  eliminated: {name}"), number.to_string()));
    }
    rows.extend([
        ("strands checked".to_owned(), stats.strands.to_string()),
        ("strands while nothing was parallel".to_owned(), stats.quiescent_strands.to_string()),
        ("comparisons of accesses".to_owned(), stats.comparisons.to_string()),
        ("questions about order".to_owned(), stats.queries.to_string()),
    ]);
    if let Some(visits) = stats.visits {
        rows.push(("  that had to search".to_owned(), visits.searches.to_string()));
        rows.push(("  visited per search, mean".to_owned(), format!("{:.1}", visits.mean())));
    }
    rows.extend([
        ("memory for the order".to_owned(), bytes(stats.order_memory)),
        ("memory for the accesses".to_owned(), bytes(stats.access_memory)),
        ("time to compile".to_owned(), time(stats.compile_time)),
        ("time to run and check".to_owned(), time(stats.run_time)),
    ]);
    let mut out = String::new();
    for (name, figure) in rows {
        let _ = writeln!(out, "{name:<36}{figure:>16}");
    }
    out
}

fn bytes(bytes: usize) -> String {
    format!("{:.1} KiB", bytes as f64 / 1024.0)
}

fn time(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}
