//! A report as text for people, in the style of rustc.
//!
//! Strings carry ANSI styles; whoever prints them takes the styles out where they are not wanted (anstream
//! does, and knows `NO_COLOR` and `CLICOLOR_FORCE`). The last line is always the verdict.

pub(crate) mod advice;
pub(crate) mod race;
mod stack;
mod stats;
mod verdict;

pub use stats::table;
pub use verdict::{headline, verdict};

use std::fmt::Write as _;

use annotate_snippets::{Annotation, AnnotationKind, Element, Group, Level, Renderer, Snippet};
use anstyle::{AnsiColor, Style};

use crate::clean::masked;
use crate::model::{Blocked, Diagnostic, End, Report, Verdict};
use crate::shell::word;
use crate::source::{Place, Source};

/// So many tasks of a deadlock are shown.
const SHOWN_BLOCKED: usize = 8;

/// The whole report, with the program's own output in front, and the verdict as its last line.
pub fn render(report: &Report) -> String {
    let mut out = report.output.clone();
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    let mut blocks = race::blocks(report);
    match &report.end {
        End::Finished
        | End::Unreadable(_)
        | End::Refused(_)
        | End::Aborted
        | End::CutShort(_)
        | End::Broken(_) => {}
        End::Failed(failure) => {
            let mut marks = vec![Mark::primary(&failure.place, format!("task {}", failure.task))];
            race::creations(report, &[failure.task], &mut marks);
            blocks.push(block(&title("error", &failure.message, None), report, &marks, Vec::new()));
        }
        End::Deadlock(blocked) => blocks.push(deadlock(report, blocked)),
        End::Rejected(diagnostics) => {
            blocks.extend(diagnostics.iter().map(|diagnostic| show_diagnostic(report, diagnostic)));
        }
    }
    for block in blocks {
        out.push_str(&block);
        out.push_str("\n\n");
    }
    if let Some(stats) = &report.stats {
        out.push_str(&table(stats));
        out.push('\n');
    }
    if let (Some(schedule), End::Failed(_) | End::Deadlock(_)) = (&report.schedule, &report.end) {
        let _ = writeln!(out, "{}", again(report, schedule));
    }
    for note in &report.notes {
        let _ = writeln!(out, "note: {note}");
    }
    let style = verdict_style(report.verdict());
    let _ = writeln!(out, "{style}{}{style:#}", headline(report));
    out
}

/// How to run a schedule again.
fn again(report: &Report, schedule: &str) -> String {
    format!(
        "note: in schedule {schedule}; to see it again: dagsan check {} --replay {schedule}",
        word(report.name())
    )
}

/// The style of the word for a verdict.
pub fn verdict_style(verdict: Verdict) -> Style {
    let colour = match verdict {
        Verdict::RaceFree => AnsiColor::Green,
        Verdict::NotExhausted | Verdict::NotChecked | Verdict::Accepted => AnsiColor::Yellow,
        Verdict::Race | Verdict::Deadlock | Verdict::Error => AnsiColor::Red,
    };
    Style::new().bold().fg_color(Some(colour.into()))
}

/// A place with something to say about it.
struct Mark<'a> {
    place: &'a Place,
    kind: AnnotationKind,
    label: String,
}

impl<'a> Mark<'a> {
    fn primary(place: &'a Place, label: impl Into<String>) -> Mark<'a> {
        Mark { place, kind: AnnotationKind::Primary, label: label.into() }
    }

    fn context(place: &'a Place, label: impl Into<String>) -> Mark<'a> {
        Mark { place, kind: AnnotationKind::Context, label: label.into() }
    }
}

/// The first line of a block: `name[id]: text`.
struct Title<'a> {
    name: &'static str,
    text: &'a str,
    id: Option<&'static str>,
}

fn title<'a>(name: &'static str, text: &'a str, id: Option<&'static str>) -> Title<'a> {
    Title { name, text, id }
}

/// A place in words: `line 5` in the program, `src/main.rs:5` in any other file.
fn at(report: &Report, place: &Place) -> String {
    match report.sources.get(place.source) {
        Some(source) if place.source > 0 => format!("{}:{}", source.name(), place.line),
        _ if place.line == 0 => "an unknown place".to_owned(),
        _ => format!("line {}", place.line),
    }
}

/// A title, a snippet for each source with marks, and what follows. No newline at its end.
///
/// Sources come in the order of their first marks: the first one gives the block its place. What is said about a source
/// whose text is not there becomes a note.
fn block(title: &Title<'_>, report: &Report, marks: &[Mark<'_>], footer: Vec<Element<'_>>) -> String {
    let level = Level::ERROR.with_name(title.name);
    let mut heading = level.primary_title(title.text);
    if let Some(id) = title.id {
        heading = heading.id(id);
    }
    let mut group = Group::with_title(heading);
    let mut sources: Vec<(usize, &Source)> = report.sources.iter().enumerate().collect();
    sources.sort_by_key(|&(number, _)| marks.iter().position(|mark| mark.place.source == number));
    let (shown, hidden): (Vec<_>, Vec<_>) = sources.into_iter().partition(|(_, source)| !source.is_absent());
    for (number, source) in shown {
        let annotations: Vec<Annotation<'_>> = marks
            .iter()
            .filter(|mark| mark.place.source == number)
            .map(|mark| annotation(source, mark))
            .collect();
        if !annotations.is_empty() {
            let snippet = Snippet::source(masked(source.text())).path(source.name()).annotations(annotations);
            group = group.element(snippet);
        }
    }
    let hidden =
        hidden.iter().flat_map(|&(number, _)| marks.iter().filter(move |mark| mark.place.source == number));
    let hidden = hidden
        .map(|mark| Level::NOTE.message(format!("at {}: {}", at(report, mark.place), mark.label)).into());
    Renderer::styled().render(&[group.elements(hidden.chain(footer))])
}

fn annotation<'a>(source: &Source, mark: &'a Mark<'_>) -> Annotation<'a> {
    let label = Some(mark.label.as_str()).filter(|label| !label.is_empty());
    // The first line of a block says which one is meant; brackets around all of it would hide what is inside.
    let span = mark.place.span.clone();
    let text = source.text().get(span.clone()).unwrap_or_default();
    let first_line = text.lines().next().unwrap_or_default().trim_end().len();
    mark.kind.span(span.start..span.start + first_line).label(label)
}

fn show_diagnostic(report: &Report, diagnostic: &Diagnostic) -> String {
    let mut marks = vec![Mark::primary(&diagnostic.place, diagnostic.label.as_str())];
    marks.extend(diagnostic.others.iter().map(|(place, label)| Mark::context(place, label.as_str())));
    let help = diagnostic.help.iter().map(|help| Level::HELP.message(help).into()).collect();
    block(&title("error", &diagnostic.message, None), report, &marks, help)
}

fn deadlock(report: &Report, blocked: &[Blocked]) -> String {
    let mut waits: Vec<(&Place, &str, Vec<u32>)> = Vec::new();
    for waiting in blocked.iter().take(SHOWN_BLOCKED) {
        let (place, what) = (&waiting.place, waiting.waits_for.as_str());
        match waits.iter_mut().find(|(at, other, _)| *at == place && *other == what) {
            Some((_, _, tasks)) => tasks.push(waiting.task),
            None => waits.push((place, what, vec![waiting.task])),
        }
    }
    let marks: Vec<Mark<'_>> = waits
        .iter()
        .map(|(place, what, tasks)| {
            let verb = if tasks.len() == 1 { "waits" } else { "wait" };
            Mark::primary(place, format!("{} {verb} for {what}", race::numbers(tasks)))
        })
        .collect();
    let mut footer = Vec::new();
    if blocked.len() > SHOWN_BLOCKED {
        let more = format!("and {} more", verdict::count((blocked.len() - SHOWN_BLOCKED) as u64, "task"));
        footer.push(Level::NOTE.message(more).into());
    }
    let help = "find who should `set` or end what they wait for, and why it does not come to that";
    footer.push(Level::HELP.message(help).into());
    block(&title("deadlock", "no task can go on", None), report, &marks, footer)
}

#[cfg(test)]
mod tests;
