//! The verdict in one line, no stronger than what was found out.

use dagsan_core::order::Isolation;

use crate::model::{
    Acceptance, Accepted, Diagnostic, End, Report, ScheduleDependence, Unseen, Verdict, locations,
};
use crate::text::race;

/// So many locations are named in a line.
pub(super) const SHOWN_LOCATIONS: usize = 8;

/// The last line of a report.
pub fn headline(report: &Report) -> String {
    let (name, text) = (report.name(), verdict(report));
    match &report.end {
        _ if report.verdict() != Verdict::Error => match report.verdict() {
            Verdict::Race => text,
            Verdict::NotChecked => format!("not checked: {text}"),
            verdict => format!("{}: {text}", verdict.name()),
        },
        End::Rejected(found) => {
            format!("error: could not check {name}: {}", count(found.len() as u64, "error"))
        }
        End::Unreadable(_) | End::Refused(_) | End::Broken(_) => {
            format!("error: could not check {name}: {text}")
        }
        End::Finished | End::Failed(_) | End::Deadlock(_) | End::Aborted | End::CutShort(_) => {
            format!("error: {text}")
        }
    }
}

/// What was found, in one line, without the name of the program and the word for the verdict.
pub fn verdict(report: &Report) -> String {
    let found = if report.verdict() == Verdict::Race { Some(races(report)) } else { None };
    // With several schedules, the race and the other end may be in different ones.
    let then = if report.schedules > 1 { "in some schedule" } else { "then" };
    let after_races = |alone: String, other: String| {
        let text = match &found {
            None => alone,
            Some(races) => format!("{races}; {then} {other}"),
        };
        match report.exploration.as_ref().and_then(|exploration| exploration.stopped.as_ref()) {
            Some(stopped) if found.is_none() => format!("{text}; {}", not_exhausted(report, stopped)),
            _ => text,
        }
    };
    let text = match &report.end {
        End::Finished if report.verdict() == Verdict::NotChecked => {
            "no tasks were started; DagSan sees threads, and the tasks of rayon, dagsan-task and OpenMP"
                .to_owned()
        }
        End::Finished => found.unwrap_or_else(|| {
            let tasks = count(report.task_count, "task");
            let strands = count(report.strand_count, "strand");
            let clean = format!("{tasks}, {strands}, {}", scope(report));
            match accepted(report) {
                Some(accepted) if report.verdict() == Verdict::Accepted => {
                    format!("{accepted}; no other race: {clean}")
                }
                _ => clean,
            }
        }),
        End::Failed(failure) => {
            let what = format!("{} (task {}, line {})", failure.message, failure.task, failure.place.line);
            after_races(format!("{what}; {} before it", no_race(report)), format!("error: {what}"))
        }
        End::Deadlock(blocked) => {
            let verb = if blocked.len() == 1 { "waits" } else { "wait" };
            let tasks = count(report.task_count, "task");
            let tasks = format!("{} of {tasks} {verb} for ever", blocked.len());
            let separator = if report.native.is_some() { ", in every schedule of this input " } else { ", " };
            let tasks = with_conditions(tasks, separator, &conditions(report));
            after_races(tasks.clone(), format!("a deadlock: {tasks}"))
        }
        End::Rejected(diagnostics) => rejected(diagnostics),
        End::Refused(why) if report.native.is_some() => {
            after_races(why.clone(), format!("not checked on: {why}"))
        }
        End::Unreadable(why) | End::Refused(why) => why.clone(),
        End::Aborted => {
            let alone = format!("the program aborted; {} before it", no_race(report));
            after_races(alone, "the program aborted".to_owned())
        }
        End::CutShort(why) => after_races(
            format!("{} in what was checked, which is not all: {why}", no_race(report)),
            format!("not checked on: {why}"),
        ),
        End::Broken(why) => {
            let fault = format!("a fault of dagsan itself: {why}; please report it, with the file");
            after_races(fault.clone(), fault)
        }
    };
    let accepted = match accepted(report) {
        Some(accepted) if report.verdict() != Verdict::Accepted => format!("; accepted: {accepted}"),
        _ => String::new(),
    };
    text + &accepted + &unchecked(report) + &unseen(report) + &depends(report)
}

/// Which races were accepted, and why: `1 race on a[1] is suppressed (reason)`.
fn accepted(report: &Report) -> Option<String> {
    let mut reasons: Vec<(&Acceptance, Vec<&Accepted>)> = Vec::new();
    for accepted in &report.accepted {
        match reasons.iter_mut().find(|(by, _)| **by == accepted.by) {
            Some((_, same)) => same.push(accepted),
            None => reasons.push((&accepted.by, vec![accepted])),
        }
    }
    let words = |(by, all): &(&Acceptance, Vec<&Accepted>)| {
        let groups = race::grouped(all.iter().map(|accepted| &accepted.race));
        let races = count(groups.len() as u64, "race");
        let names = locations(all.iter().map(|accepted| &accepted.race));
        let are = if groups.len() == 1 { "is" } else { "are" };
        let why = match by {
            Acceptance::Suppressed { entry, reason } => format!("suppressed by {entry} ({reason})"),
            Acceptance::Known { baseline } => format!("in {baseline}"),
        };
        format!("{races} on {} {are} {why}", list(&names, str::to_owned))
    };
    let mut all: Vec<String> = reasons.iter().take(SHOWN_LOCATIONS).map(words).collect();
    let more = reasons.len() - all.len();
    all.extend((more > 0).then(|| format!("and others, for {}", count(more as u64, "other reason"))));
    (!all.is_empty()).then(|| all.join(", "))
}

/// How races that were not found are spoken of.
fn no_race(report: &Report) -> &'static str {
    if report.accepted.is_empty() { "no race" } else { "no other race" }
}

/// What of a native program nobody looked at.
fn unchecked(report: &Report) -> String {
    let Some(native) = &report.native else { return String::new() };
    let threads = native.threads.iter().take(SHOWN_LOCATIONS).map(|threads| {
        let mut text = count(threads.count.into(), "thread");
        if let Some(name) = &threads.name {
            text += &format!(" ({name})");
        }
        if let Some((file, line, _)) = &threads.at {
            text += &format!(" started at {file}:{line}");
        }
        text
    });
    let mut all: Vec<String> = threads.collect();
    let more: u64 = native.threads.iter().skip(SHOWN_LOCATIONS).map(|threads| u64::from(threads.count)).sum();
    all.extend((more > 0).then(|| count(more, "more thread")));
    all.extend((native.forks > 0).then(|| match native.forks {
        1 => "1 forked process".to_owned(),
        forks => format!("{forks} forked processes"),
    }));
    if all.is_empty() { String::new() } else { format!("; not checked: {}", all.join(", ")) }
}

/// What of a native program nobody can see.
fn unseen(report: &Report) -> String {
    let Some(native) = &report.native else { return String::new() };
    let mut all: Vec<String> = Vec::new();
    all.extend(
        native
            .odd_sizes_unseen
            .then(|| "accesses of other sizes than 1, 2, 4, 8 and 16 bytes are not seen".to_owned()),
    );
    let place = |unseen: &Unseen| match &unseen.at {
        Some((file, line, _)) => format!("{} at {file}:{line}", unseen.what),
        None => unseen.what.clone(),
    };
    let mut places: Vec<String> = native.unseen.iter().take(SHOWN_LOCATIONS).map(place).collect();
    let more = native.unseen.len() - places.len();
    places.extend((more > 0).then(|| count(more as u64, "more place")));
    all.extend((!places.is_empty()).then(|| format!("not seen: what is accessed by {}", places.join(", "))));
    all.extend((native.turns_lost > 0).then(|| {
        let times = count(u64::from(native.turns_lost), "time");
        format!("not seen: what threads did right after a call that took long and is not known ({times})")
    }));
    all.iter().map(|text| format!("; {text}")).collect()
}

/// What is no race, and may make schedules differ all the same.
fn depends(report: &Report) -> String {
    let Some(native) = &report.native else { return String::new() };
    // A line is named once, in whatever columns of it the same is called.
    let line = |dependence: &ScheduleDependence| {
        dependence.at.as_ref().map_or(String::new(), |(file, line, _)| format!(" at {file}:{line}"))
    };
    let mut places: Vec<(&ScheduleDependence, String, bool)> = Vec::new();
    for dependence in &native.schedule {
        let at = line(dependence);
        let same = |(known, known_at, _): &&mut (&ScheduleDependence, String, bool)| {
            (known.on, &known.call, known_at) == (dependence.on, &dependence.call, &at)
        };
        match places.iter_mut().find(same) {
            Some((_, _, if_used)) => *if_used &= dependence.if_used,
            None => places.push((dependence, at, dependence.if_used)),
        }
    }
    let place = |(ScheduleDependence { on, call, .. }, at, if_used): &(&ScheduleDependence, String, bool)| {
        let if_used = if *if_used { ", if its value is used" } else { "" };
        format!("on {on} ({call}{at}{if_used})")
    };
    let mut all: Vec<String> = places.iter().take(SHOWN_LOCATIONS).map(place).collect();
    let more = places.len() - all.len();
    all.extend((more > 0).then(|| count(more as u64, "more place")));
    if all.is_empty() {
        return String::new();
    }
    format!("; the result may depend on the schedule: {}", all.join(", "))
}

fn rejected(diagnostics: &[Diagnostic]) -> String {
    let Some(first) = diagnostics.first() else {
        return "no errors".to_owned();
    };
    let text = format!("line {}: {}", first.place.line, first.message);
    match diagnostics.len() as u64 - 1 {
        0 => text,
        more => format!("{text}, and {}", count(more, "more error")),
    }
}

fn races(report: &Report) -> String {
    let reports = count(race::groups(report).len() as u64, "race");
    let mut text = match &report.locations()[..] {
        // All that were kept are accepted, and there are others.
        [] => "no race".to_owned(),
        names => format!("{reports} on {}", list(names, str::to_owned)),
    };
    if report.dropped_races > 0 {
        text += &format!(", and {} beyond those that are kept", report.dropped_races);
    }
    // An order of the sections that was seen is no assumption about the others: the race is real.
    if report.exploration.is_none() && report.has_isolated && report.isolation == Isolation::MutualExclusion {
        text += ", if isolated sections commute";
    }
    if report.native.as_ref().is_some_and(|native| native.locks) {
        text += ", if the sections under locks commute";
    }
    if let Some(stopped) = report.exploration.as_ref().and_then(|exploration| exploration.stopped.as_ref()) {
        text += &format!("; {}", not_exhausted(report, stopped));
    }
    text
}

fn not_exhausted(report: &Report, stopped: &str) -> String {
    format!("{} run, not all: {stopped}", count(report.schedules, "schedule"))
}

/// What a race-free run speaks for.
fn scope(report: &Report) -> String {
    if let Some(exploration) = &report.exploration {
        let scope = match &exploration.stopped {
            Some(stopped) => {
                format!("{} in what was seen; {}", no_race(report), not_exhausted(report, stopped))
            }
            None if exploration.commute => {
                "every schedule of this input: the isolated sections commute, one run is enough".to_owned()
            }
            None if report.schedules == 1 => {
                "every schedule of this input: one of them stands for all".to_owned()
            }
            None => format!("every schedule of this input; {} of them stand for all", report.schedules),
        };
        return with_conditions(scope, ", ", &conditions(report));
    }
    with_conditions("every schedule of this input".to_owned(), " ", &conditions(report))
}

fn with_conditions(text: String, separator: &str, conditions: &[String]) -> String {
    if conditions.is_empty() { text } else { text + separator + &conditions.join(" and ") }
}

fn conditions(report: &Report) -> Vec<String> {
    let isolated = match report.isolation {
        Isolation::Ordered => "in this order of the isolated sections",
        Isolation::MutualExclusion => "if isolated sections commute",
    };
    let mut conditions: Vec<String> = Vec::new();
    let explored = report.exploration.is_some();
    if report.has_isolated && !explored {
        conditions.push(isolated.into());
    }
    if report.has_ewait && !explored {
        conditions.push("for this choice at ewait".into());
    }
    if let Some(native) = &report.native {
        if native.atomics {
            conditions.push("that keeps the order of atomic operations".into());
        }
        if native.lock_order {
            conditions.push("that keeps the order of sections under locks that depend on each other".into());
        }
        if native.locks {
            conditions.push("if the sections under locks commute".into());
        }
        if native.unlocked_early {
            conditions.push(
                "if tasks under a lock that was given back before they were joined had no need of it".into(),
            );
        }
        conditions.extend(native.split.map(|pieces| match pieces {
            0 => "with parallel iterators cut into single items".into(),
            pieces => format!("with parallel iterators cut into about {pieces} pieces"),
        }));
    }
    if report.has_shared_region {
        conditions.push("for this order of posts to and awaits of the region that several tasks use".into());
    }
    conditions
}

/// The first few names, and how many more there are.
pub(super) fn list(names: &[&str], show: impl Fn(&str) -> String) -> String {
    let shown: Vec<String> = names.iter().take(SHOWN_LOCATIONS).map(|name| show(name)).collect();
    let text = shown.join(", ");
    match names.len() - shown.len() {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// `1 task`, `2 tasks`.
pub(super) fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
