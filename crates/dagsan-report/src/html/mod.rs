//! Reports as one page to look at, which needs nothing else: no network, no other file.
//!
//! The data is JSON in the page, and the script makes elements of it, by their text only: nothing in it is ever read as markup. A `<` in the data is
//! written as an escape, so that no name can end the element that it is in, and the page's policy allows no script but its own.
//!
//! A large program stays small here: so many races of a report, tasks of a way and lines of a file are shown, and the rest is counted. The
//! graph is the neighbourhood of a race: the ways from the latest strand before both accesses, and on to the earliest after both; or, where that was not
//! kept, how the two tasks descend from their common ancestor. Other tasks are not in it.

use dagsan_core::graph::{Neighbourhood, PathStep};
use serde_json::{Value, json};

use crate::clean::clean;
use crate::fingerprint::fingerprint;
use crate::graph::look;
use crate::model::{Acceptance, End, Frame, Race, Report, Side, Stats, Witness};
use crate::project::Project;
use crate::shell::word;
use crate::source::Place;
use crate::text::advice::next_step;
use crate::text::race::{RaceGroup, array, does, grouped, groups};
use crate::text::{headline, verdict};

/// So many races of a report are shown, and as many accepted ones.
const RACES: usize = 300;
/// So many names of a race are listed.
const NAMES: usize = 32;
/// So many tasks of a way are shown at each of its ends.
const TASKS: usize = 12;
/// So many steps of a way in the graph; those who write findings keep no more.
const STEPS: usize = 32;
/// So many frames of a call stack.
const FRAMES: usize = 64;
/// So many lines around an access.
const CONTEXT: usize = 3;
/// So many characters of a line, around what is marked.
const WIDTH: usize = 240;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// What one report gives to the page, on one line.
pub fn part(report: &Report, project: &Project) -> Result<String, serde_json::Error> {
    let fresh = groups(report);
    let mut races: Vec<Value> =
        fresh.iter().take(RACES).map(|group| race(report, group, project, None)).collect();
    for accepted in report.accepted.iter().take(RACES) {
        races.extend(
            grouped([&accepted.race]).iter().map(|group| race(report, group, project, Some(&accepted.by))),
        );
    }
    let left_out = fresh.len().saturating_sub(RACES) + report.accepted.len().saturating_sub(RACES);
    serde_json::to_string(&json!({
        "name": report.name(),
        "verdict": report.verdict().name(),
        "headline": headline(report),
        "message": verdict(report),
        "notes": report.notes.iter().filter(|note| !note.starts_with(AGAIN)).collect::<Vec<_>>(),
        "races": races,
        "leftOut": left_out,
        "findings": findings(report),
        "facts": facts(report),
        "again": again(report),
    }))
}

/// The page of these parts.
pub fn page(parts: &[String]) -> String {
    let data = format!("[{}]", parts.join(","));
    // Inside of texts these mean the same, and outside of texts JSON has none of them.
    let data = data.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'nonce-dagsan'; \
         script-src 'nonce-dagsan'; base-uri 'none'; form-action 'none'\">\n\
         <title>DagSan</title>\n<style nonce=\"dagsan\">\n{STYLE}</style>\n</head>\n<body>\n\
         <noscript>This page shows its data by a script, which is in it; allow it, or use another format.</noscript>\n\
         <main id=\"page\"></main>\n\
         <script type=\"application/json\" id=\"data\" nonce=\"dagsan\">{data}</script>\n\
         <script nonce=\"dagsan\">\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// Numbers for a table.
fn facts(report: &Report) -> Vec<Value> {
    let mut facts = vec![
        json!(["engine", report.engine]),
        json!(["tasks", report.task_count]),
        json!(["strands that touched memory", report.strand_count]),
        json!(["schedules run", report.schedules]),
        json!(["races kept", report.races.len() + report.accepted.len()]),
    ];
    if report.dropped_races > 0 {
        facts.push(json!(["races beyond those that are kept", report.dropped_races]));
    }
    if let Some(stats) = &report.stats {
        let Stats { accesses, checks, comparisons, queries, order_memory, access_memory, .. } = stats;
        facts.push(json!(["accesses", accesses]));
        facts.push(json!(["checks", checks]));
        facts.push(json!(["comparisons", comparisons]));
        facts.push(json!(["queries about order", queries]));
        facts.push(json!(["bytes for order", order_memory]));
        facts.push(json!(["bytes for accesses", access_memory]));
        facts.push(json!(["milliseconds", stats.run_time.as_millis() as u64]));
    }
    facts
}

/// How the note begins that has the command which shows a native program again.
const AGAIN: &str = "to see this again: ";

/// The command that shows a program again.
fn again(report: &Report) -> Option<String> {
    if report.native.is_some() {
        return report.notes.iter().find_map(|note| note.strip_prefix(AGAIN)).map(str::to_owned);
    }
    let replay = report.races.first().and_then(|race| race.schedule.as_ref()).or(report.schedule.as_ref());
    let replay = replay.map_or(String::new(), |schedule| format!(" --replay {schedule}"));
    Some(format!("dagsan check {} --engine {}{replay}", word(report.name()), report.engine))
}

fn race(report: &Report, group: &RaceGroup<'_>, project: &Project, by: Option<&Acceptance>) -> Value {
    let race = group.races[0];
    let names = group.parts();
    let notes: Vec<String> = [
        race.witness.as_ref().map(witness),
        race.schedule.as_ref().map(|schedule| format!("in schedule {schedule}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    json!({
        "kind": race.kind(),
        "touched": group.touched(),
        "names": names.iter().take(NAMES).collect::<Vec<_>>(),
        "moreNames": names.len().saturating_sub(NAMES),
        "location": location(race),
        "count": group.races.iter().map(|race| race.duplicates.saturating_add(1)).fold(0, u64::saturating_add),
        "fingerprint": fingerprint(report, race, project),
        "accepted": by.map(|by| match by {
            Acceptance::Suppressed { entry, reason } => format!("suppressed by {entry}: {reason}"),
            Acceptance::Known { baseline } => format!("known: it is in {baseline}"),
        }),
        "help": next_step(report, race),
        "notes": notes,
        "sides": [side(report, 1, &race.first), side(report, 2, &race.second)],
        "allocated": race.allocated.as_ref().map(|place| shown(report, place)),
        "ways": [way(report, &race.first, &race.second), way(report, &race.second, &race.first)],
        "around": race.around.as_ref().map(|around| self::around(report, around)),
        "ancestor": ancestor(report, race).and_then(|number| Some(task(report, number, report.tasks.get(&number)?))),
    })
}

/// What is around the race in the graph: ways, each a list of steps.
fn around(report: &Report, around: &Neighbourhood) -> Value {
    let named = |number: u32| match report.tasks.get(&number) {
        Some(info) => task(report, number, info),
        None => json!({ "task": number }),
    };
    let step = |step: &PathStep| {
        let (why, ..) = look(step.kind);
        json!({ "why": why, "task": named(step.task.0), "leftOut": step.left_out })
    };
    let way = |way: &Vec<PathStep>| way.iter().take(STEPS).map(step).collect::<Vec<_>>();
    json!({
        "start": named(around.start.0),
        "down": around.down.iter().map(way).collect::<Vec<_>>(),
        "up": around.up.as_ref().map(|up| up.iter().map(way).collect::<Vec<_>>()),
    })
}

/// What races are grouped by: the variable, the array, or what the bytes are part of.
fn location(race: &Race) -> String {
    match &race.object {
        Some(object) => object.clone(),
        None => race.locations.first().map_or(String::new(), |name| array(name).to_owned()),
    }
}

fn witness(witness: &Witness) -> String {
    match witness {
        Witness::None => "no witness: (2) could not be run before (1)".to_owned(),
        Witness::Differences(all) if all.is_empty() => {
            "both orders were run, and nothing differs: for this input the race is benign".to_owned()
        }
        Witness::Differences(all) => {
            let one = |(what, one, other): &(String, String, String)| {
                format!("{what} is {one} if (1) comes first, and {other} if (2) does")
            };
            format!(
                "both orders were run: {}",
                all.iter().take(NAMES).map(one).collect::<Vec<_>>().join("; ")
            )
        }
    }
}

fn side(report: &Report, number: u8, side: &Side) -> Value {
    let stack = &side.detail.stack;
    json!({
        "number": number,
        "does": does(side),
        "shown": shown(report, &side.place),
        "stack": stack.iter().take(FRAMES).map(frame).collect::<Vec<_>>(),
        "moreFrames": stack.len().saturating_sub(FRAMES),
        "complete": side.detail.complete,
    })
}

fn frame(frame: &Frame) -> Value {
    let at = frame.at.as_ref().map(|(file, line, column)| format!("{file}:{line}:{column}"));
    json!({ "function": frame.function, "at": at, "library": frame.library, "inlined": frame.inlined })
}

/// The task that both accesses descend from.
fn ancestor(report: &Report, race: &Race) -> Option<u32> {
    let (one, two) = (race.first.task, race.second.task);
    match report.ancestry(one, two).last() {
        Some(top) => report.tasks.get(top)?.parent,
        None => Some(one),
    }
}

/// The tasks from below the common ancestor down to the access. Of a long way the middle is counted only.
fn way(report: &Report, side: &Side, other: &Side) -> Value {
    let mut chain = report.ancestry(side.task, other.task);
    chain.reverse();
    let left_out = chain.len().saturating_sub(2 * TASKS);
    let shown = |number: &u32| report.tasks.get(number).map(|info| task(report, *number, info));
    let (top, bottom) = match left_out {
        0 => (&chain[..], &[][..]),
        _ => (&chain[..TASKS], &chain[chain.len() - TASKS..]),
    };
    json!({
        "top": top.iter().filter_map(shown).collect::<Vec<_>>(),
        "leftOut": left_out,
        "bottom": bottom.iter().filter_map(shown).collect::<Vec<_>>(),
    })
}

fn task(report: &Report, number: u32, task: &crate::model::Task) -> Value {
    json!({
        "task": number,
        "what": task.what,
        "at": task.created.as_ref().map(|place| position(report, place)),
    })
}

fn position(report: &Report, place: &Place) -> String {
    match report.sources.get(place.source) {
        Some(source) if place.line > 0 => format!("{}:{}:{}", source.name(), place.line, place.column),
        _ => "an unknown place".to_owned(),
    }
}

/// A place with the lines around it, the marked part apart.
fn shown(report: &Report, place: &Place) -> Value {
    let mut lines = Vec::new();
    if let Some(source) = report.sources.get(place.source)
        && place.line > 0
    {
        let first = place.line.saturating_sub(CONTEXT).max(1);
        let around = source.text().lines().enumerate().skip(first - 1).take(2 * CONTEXT + 1);
        for (index, text) in around {
            let number = index + 1;
            let marked = number == place.line;
            let parts = match marked {
                true => marked_line(source.text(), text, place),
                false => [cut(text, WIDTH), String::new(), String::new()],
            };
            lines.push(json!({ "number": number, "marked": marked, "parts": parts }));
        }
    }
    json!({ "at": position(report, place), "lines": lines })
}

/// A line in three parts: before, what is marked, after.
fn marked_line(all: &str, line: &str, place: &Place) -> [String; 3] {
    // Both are parts of the same text.
    let start = (line.as_ptr() as usize).saturating_sub(all.as_ptr() as usize);
    let from = place.span.start.saturating_sub(start).min(line.len());
    let to = place.span.end.saturating_sub(start).clamp(from, line.len());
    let (Some(before), Some(mark), Some(after)) = (line.get(..from), line.get(from..to), line.get(to..))
    else {
        return [String::new(), cut(line, WIDTH), String::new()];
    };
    let skipped = before.chars().count().saturating_sub(WIDTH);
    let before: String = before.chars().skip(skipped).collect();
    let ellipsis = if skipped > 0 { "…" } else { "" };
    [format!("{ellipsis}{}", cut(&before, WIDTH)), cut(mark, WIDTH), cut(after, WIDTH)]
}

/// The first characters of a line, made harmless. Tabs are spaces here.
fn cut(text: &str, width: usize) -> String {
    let text = text.replace('\t', "    ");
    let short: String = text.chars().take(width).collect();
    let ellipsis = if short.len() < text.len() { "…" } else { "" };
    format!("{}{ellipsis}", clean(&short))
}

/// What is no race: deadlocks and errors.
fn findings(report: &Report) -> Vec<Value> {
    let finding = |title: String, place: &Place| json!({ "title": title, "shown": shown(report, place) });
    match &report.end {
        End::Failed(failure) => {
            vec![finding(format!("{} (task {})", failure.message, failure.task), &failure.place)]
        }
        End::Deadlock(blocked) => {
            let title = |task: u32, what: &str| format!("task {task} waits for {what} for ever");
            let all = blocked.iter().take(RACES);
            all.map(|task| finding(title(task.task, &task.waits_for), &task.place)).collect()
        }
        End::Rejected(found) => {
            found.iter().map(|found| finding(found.message.clone(), &found.place)).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
