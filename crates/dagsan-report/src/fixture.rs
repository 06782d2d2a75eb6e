//! Reports made by hand, for the tests of the renderers.

use dagsan_core::AccessKind;
use dagsan_core::order::default_engine;

use crate::model::{Detail, End, Frame, Join, Native, Race, Report, Side, Task};
use crate::source::{Place, Source};

/// A program with a missing get.
pub const MISSING_GET: &str = "\
shared a[4];

proc main() {
    future f = { a[0] = 1; return 1; };
    future g = { a[1] = 2; return 2; };
    let u = get f;
    a[2] = a[0] + a[1];
}
";

/// A report about `text` that has run to its end with one task.
pub fn report(text: &str) -> Report {
    let mut report = Report::new(Source::new("x.task", text), default_engine(), End::Finished);
    report.schedules = 1;
    report.task_count = 1;
    report.strand_count = 1;
    task(&mut report, 0, None, "main", Join::Finish, None);
    report
}

/// The place of the first `what` after the first `after` in the program.
pub fn place(report: &Report, after: &str, what: &str) -> Place {
    let text = report.sources[0].text();
    let from = text.find(after).unwrap();
    let start = from + text[from..].find(what).unwrap();
    report.sources[0].place(0, start..start + what.len())
}

/// Adds a task.
pub fn task(
    report: &mut Report,
    number: u32,
    parent: Option<u32>,
    what: &str,
    join: Join,
    created: Option<Place>,
) {
    report.tasks.insert(number, Task { parent, what: what.to_owned(), created, join });
    report.task_count = report.tasks.len() as u64;
}

/// Adds a race of a write and another access.
pub fn race(report: &mut Report, names: &[&str], first: (u32, Place), second: (u32, AccessKind, Place)) {
    let side = |task, kind, place| Side { place, kind, task, isolated: false, detail: Detail::default() };
    report.races.push(Race {
        locations: names.iter().map(|&name| name.to_owned()).collect(),
        object: None,
        first: side(first.0, AccessKind::Write, first.1),
        second: side(second.0, second.1, second.2),
        allocated: None,
        duplicates: 0,
        schedule: None,
        witness: None,
        around: None,
    });
}

/// The race of [`MISSING_GET`].
pub fn missing_get() -> Report {
    let mut report = report(MISSING_GET);
    let created = place(&report, "future f", "future f");
    task(&mut report, 1, Some(0), "future", Join::Get, Some(created));
    let created = place(&report, "future g", "future g");
    task(&mut report, 2, Some(0), "future", Join::Get, Some(created));
    report.strand_count = 5;
    let (write, read) = (place(&report, "future g", "a[1]"), place(&report, "a[0] +", "a[1]"));
    race(&mut report, &["a[1]"], (2, write), (0, AccessKind::Read, read));
    report
}

/// A race whose names try to break out of every format.
pub fn hostile() -> Report {
    let name = "hostile \\\"'</script><img src=x onerror=alert(1)>\u{1b}[31m\u{202e}\r\n::error::%0A`${x}`--><!--]]>";
    let mut report = missing_get();
    let text = format!("{MISSING_GET}// {}\n", name.replace('\n', ""));
    report.sources[0] = Source::new(name, text);
    let frame = |function: &str| Frame {
        function: function.to_owned(),
        at: Some((name.to_owned(), 5, 18)),
        inlined: false,
        library: false,
    };
    report.native = Some(Native::default());
    report.races[0].object = Some(name.to_owned());
    report.races[0].first.detail.stack = vec![frame(name), frame("main")];
    report.races[0].allocated = Some(report.sources[0].place_at(0, 9, 4));
    report.tasks.values_mut().for_each(|task| task.what = name.to_owned());
    report.notes.push(name.to_owned());
    report.clean();
    report
}
