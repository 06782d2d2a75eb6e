//! Reports of one line per finding: for editors (`short`), and as annotations of GitHub (`github`).
//!
//! `short` is `file:line:column: what`, with names from the current directory, as compilers have it. A program about which there is
//! nothing to say has a line with its verdict.
//!
//! `github` is what GitHub makes annotations of, with names from the root of the repository. Its rules for escaping: a message has no
//! bare `%`, carriage return or newline, a property no `:` and `,` besides. GitHub shows ten errors and ten notices of a step.

use std::fmt::Write as _;

use crate::model::{Acceptance, End, Report, Verdict};
use crate::project::Project;
use crate::source::Place;
use crate::text::advice::next_step;
use crate::text::race::{RaceGroup, does, grouped, groups};
use crate::text::{headline, verdict};

/// What there is to say about a place.
struct Finding<'a> {
    level: Level,
    place: &'a Place,
    /// `race[write-write]`, `deadlock`, `error`.
    title: String,
    text: String,
    /// The other access of a race.
    other: Option<(&'a Place, String)>,
    help: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Error,
    Notice,
}

/// The lines for editors.
pub fn short(report: &Report) -> String {
    let mut out = String::new();
    for finding in findings(report) {
        let at = position(report, finding.place);
        let other = finding.other.map(|(place, what)| format!("; {what} at {}", position(report, place)));
        let help = finding.help.map(|help| format!("; help: {help}"));
        let rest = [other, help].into_iter().flatten().collect::<String>();
        let line = format!("{at}: {}: {}{rest}", finding.title, finding.text);
        out.extend([&*line.replace('\n', " "), "\n"]);
    }
    if out.is_empty() {
        let _ = writeln!(out, "{}: {}", report.name(), headline(report).replace('\n', " "));
    }
    out
}

/// The commands for GitHub.
pub fn github(report: &Report, project: &Project) -> String {
    let mut out = String::new();
    for finding in findings(report) {
        let mut text = finding.text;
        if let Some((place, what)) = &finding.other {
            text += &format!("\n(2) {what} at {}", position(report, place));
        }
        if let Some(help) = &finding.help {
            text += &format!("\nhelp: {help}");
        }
        text += &format!("\nin {}", report.name());
        out += &command(report, project, finding.level, finding.place, &finding.title, &text);
        if let Some((place, what)) = finding.other
            && place != finding.place
        {
            let title = format!("{}, the other access", finding.title);
            let text = format!("(2) {what}\n(1) is at {}", position(report, finding.place));
            out += &command(report, project, Level::Notice, place, &title, &text);
        }
    }
    let text = format!("{}: {}", report.name(), verdict(report));
    match report.verdict() {
        Verdict::Race | Verdict::Deadlock => {}
        Verdict::Error if !out.is_empty() => {}
        Verdict::Error => _ = writeln!(out, "::error title=DagSan::{}", message(&text)),
        Verdict::NotExhausted => {
            _ = writeln!(out, "::warning title=DagSan: not exhausted::{}", message(&text));
        }
        // A line of the log, and no command, whatever the name begins with.
        Verdict::RaceFree | Verdict::NotChecked | Verdict::Accepted => {
            let line = format!("{}: {}", report.name(), headline(report));
            _ = writeln!(out, "dagsan: {}", line.replace('\n', " "));
        }
    }
    out
}

fn findings(report: &Report) -> Vec<Finding<'_>> {
    let mut all: Vec<Finding<'_>> = groups(report).iter().map(|group| race(report, group)).collect();
    match &report.end {
        End::Failed(failure) => all.push(Finding {
            level: Level::Error,
            place: &failure.place,
            title: "error".to_owned(),
            text: format!("{} (task {})", failure.message, failure.task),
            other: None,
            help: None,
        }),
        End::Deadlock(blocked) => all.extend(blocked.iter().map(|blocked| Finding {
            level: Level::Error,
            place: &blocked.place,
            title: "deadlock".to_owned(),
            text: format!("task {} waits for {} for ever", blocked.task, blocked.waits_for),
            other: None,
            help: None,
        })),
        End::Rejected(found) => all.extend(found.iter().map(|found| Finding {
            level: Level::Error,
            place: &found.place,
            title: "error".to_owned(),
            text: found.message.clone(),
            other: None,
            help: found.help.clone(),
        })),
        _ => {}
    }
    for accepted in &report.accepted {
        for group in grouped([&accepted.race]) {
            let mut finding = race(report, &group);
            finding.level = Level::Notice;
            finding.help = None;
            finding.title += match &accepted.by {
                Acceptance::Suppressed { .. } => ", suppressed",
                Acceptance::Known { .. } => ", known",
            };
            finding.text += &match &accepted.by {
                Acceptance::Suppressed { entry, reason } => format!(", suppressed by {entry} ({reason})"),
                Acceptance::Known { baseline } => format!(", in {baseline}"),
            };
            all.push(finding);
        }
    }
    all
}

fn race<'a>(report: &'a Report, group: &RaceGroup<'a>) -> Finding<'a> {
    let race = group.races[0];
    Finding {
        level: Level::Error,
        place: &race.first.place,
        title: format!("race[{}]", race.kind()),
        text: format!("parallel accesses to {}: (1) {}", group.touched(), does(&race.first)),
        other: Some((&race.second.place, does(&race.second))),
        help: Some(next_step(report, race)),
    }
}

/// `file:line:column`; a place that is not known has the name of the program alone.
fn position(report: &Report, place: &Place) -> String {
    match report.sources.get(place.source) {
        Some(source) if place.line > 0 => format!("{}:{}:{}", source.name(), place.line, place.column),
        _ => report.name().to_owned(),
    }
}

fn command(
    report: &Report,
    project: &Project,
    level: Level,
    place: &Place,
    title: &str,
    text: &str,
) -> String {
    let word = match level {
        Level::Error => "error",
        Level::Notice => "notice",
    };
    let mut properties = Vec::new();
    if let Some(source) = report.sources.get(place.source).filter(|_| place.line > 0) {
        properties.push(format!("file={}", property(&project.name(source.name()))));
        properties.push(format!("line={}", place.line));
        properties.extend((place.column > 0).then(|| format!("col={}", place.column)));
    }
    properties.push(format!("title={}", property(&format!("DagSan: {title}"))));
    format!("::{word} {}::{}\n", properties.join(","), message(text))
}

fn message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::fixture::missing_get;
    use crate::model::Accepted;

    #[test]
    fn a_race_is_a_line() {
        let mut report = missing_get();
        expect![[r#"
            x.task:5:18: race[write-read]: parallel accesses to `a[1]`: (1) task 2 writes; task 0 reads at x.task:7:19; help: `get` the future of line 5 before (2)
        "#]]
        .assert_eq(&short(&report));
        expect![[r#"
            ::error file=sub/x.task,line=5,col=18,title=DagSan%3A race[write-read]::parallel accesses to `a[1]`: (1) task 2 writes%0A(2) task 0 reads at x.task:7:19%0Ahelp: `get` the future of line 5 before (2)%0Ain x.task
            ::notice file=sub/x.task,line=7,col=19,title=DagSan%3A race[write-read]%2C the other access::(2) task 0 reads%0A(1) is at x.task:5:18
        "#]]
        .assert_eq(&github(&report, &Project::new("/p/sub", "/p")));

        let race = report.races.remove(0);
        let by = Acceptance::Suppressed { entry: "dagsan.toml:1".to_owned(), reason: "50% done".to_owned() };
        report.accepted.push(Accepted { race, by });
        expect![[r#"
            x.task:5:18: race[write-read], suppressed: parallel accesses to `a[1]`: (1) task 2 writes, suppressed by dagsan.toml:1 (50% done); task 0 reads at x.task:7:19
        "#]]
        .assert_eq(&short(&report));
        expect![[r#"
            ::notice file=sub/x.task,line=5,col=18,title=DagSan%3A race[write-read]%2C suppressed::parallel accesses to `a[1]`: (1) task 2 writes, suppressed by dagsan.toml:1 (50%25 done)%0A(2) task 0 reads at x.task:7:19%0Ain x.task
            ::notice file=sub/x.task,line=7,col=19,title=DagSan%3A race[write-read]%2C suppressed%2C the other access::(2) task 0 reads%0A(1) is at x.task:5:18
            dagsan: x.task: accepted: 1 race on a[1] is suppressed by dagsan.toml:1 (50% done); no other race: 3 tasks, 5 strands, every schedule of this input
        "#]]
        .assert_eq(&github(&report, &Project::new("/p/sub", "/p")));
    }

    #[test]
    fn a_clean_program_has_its_verdict_and_no_command() {
        let mut report = missing_get();
        report.races.clear();
        report.rename("::error::x");
        assert!(short(&report).starts_with("::error::x: race-free: 3 tasks"));
        assert!(github(&report, &Project::new("/p", "/p")).starts_with("dagsan: ::error::x: race-free"));
        report.end = End::CutShort("100% of\nmemory".to_owned());
        expect![[r#"
            ::warning title=DagSan: not exhausted::::error::x: no race in what was checked, which is not all: 100%25 of%0Amemory
        "#]]
        .assert_eq(&github(&report, &Project::new("/p", "/p")));
    }

    #[test]
    fn names_stay_in_their_fields() {
        let mut report = missing_get();
        report.rename("a,b:c%0A\n::error::x");
        for line in github(&report, &Project::new("/p", "/p")).lines() {
            assert!(
                line.starts_with("::error file=a%2Cb%3Ac%250A%0A%3A%3Aerror%3A%3Ax,line=")
                    || line.starts_with("::notice file=a%2Cb"),
                "{line}"
            );
        }
        assert_eq!(short(&report).lines().count(), 1);
    }
}
