//! Races as annotated snippets: both accesses, marked (1) and (2), and where their tasks were created.
//!
//! The same two places on several elements of one array are one block, which shows the tasks of the first
//! race found and lists the elements. In a native program, where arrays have no names, the same two places are one
//! block whatever they touch.

use std::collections::HashMap;

use annotate_snippets::{Element, Level};
use dagsan_core::AccessKind;

use crate::model::{Detail, Join, OUTPUT, Race, Report, Side, StandIn, Witness, distinct};
use crate::shell::word;
use crate::source::Place;
use crate::text::verdict::{SHOWN_LOCATIONS, count, list};
use crate::text::{Mark, advice, at, block, stack, title};

/// So many blocks are shown.
const SHOWN_RACES: usize = 20;
/// So many creations of tasks are shown for each access.
const SHOWN_CREATIONS: usize = 3;

/// Races between the same two places, on one variable or on elements of one array.
pub(crate) struct RaceGroup<'a> {
    pub(crate) races: Vec<&'a Race>,
}

/// The races of a report, put together. In the order in which they were found.
pub(crate) fn groups(report: &Report) -> Vec<RaceGroup<'_>> {
    grouped(&report.races)
}

/// Races, put together.
pub(crate) fn grouped<'a>(races: impl IntoIterator<Item = &'a Race>) -> Vec<RaceGroup<'a>> {
    let mut groups: Vec<RaceGroup<'_>> = Vec::new();
    let mut index = HashMap::new();
    for race in races {
        // A race covers elements of one array only, or one variable.
        let name = race.locations.first().filter(|_| race.object.is_none());
        let object = name.map_or("", |name| array(name));
        let key = (object, &race.first.place, &race.second.place, race.kind());
        let at = *index.entry(key).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.races.push(race),
            None => groups.push(RaceGroup { races: vec![race] }),
        }
    }
    groups
}

/// The array of an element: `a` of `a[3]`; a variable is its own.
pub(crate) fn array(location: &str) -> &str {
    location.rsplit_once('[').map_or(location, |(array, _)| array)
}

/// A block for each group, and what to do about those left out.
pub(super) fn blocks(report: &Report) -> Vec<String> {
    let groups = groups(report);
    let mut blocks: Vec<String> = groups.iter().take(SHOWN_RACES).map(|group| show(report, group)).collect();
    if groups.len() > SHOWN_RACES {
        let more = groups.len() - SHOWN_RACES;
        blocks.push(format!("note: {more} more of this kind; `--format json` lists all"));
    }
    blocks
}

impl RaceGroup<'_> {
    /// The names of what is touched, each once.
    pub(crate) fn names(&self) -> Vec<String> {
        let names: Vec<String> = self.races.iter().flat_map(|race| race.location_names()).collect();
        distinct(names.iter().map(String::as_str)).into_iter().map(str::to_owned).collect()
    }

    /// The same, without what they are parts of, if that is one thing.
    pub(crate) fn parts(&self) -> Vec<String> {
        let object = &self.races[0].object;
        if object.is_none() || self.races.iter().any(|race| race.object != *object) {
            return self.names();
        }
        let parts = self.races.iter().flat_map(|race| race.locations.iter().map(String::as_str));
        distinct(parts).into_iter().map(str::to_owned).collect()
    }

    /// What is touched, in words.
    pub(crate) fn touched(&self) -> String {
        let names = self.names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match (&self.races[0].object, &names[..]) {
            (Some(_), [one, _, ..]) => {
                format!("{one}, and to {}", count(names.len() as u64 - 1, "other place"))
            }
            (Some(_), one) => one.concat(),
            (None, _) => list(&names, |name| format!("`{name}`")),
        }
    }
}

/// What an access does, in words: `task 2 writes, under a lock`.
pub(crate) fn does(side: &Side) -> String {
    let nearby = if side.detail.nearby { " here or nearby" } else { "" };
    let stand_in = match side.detail.stand_in {
        Some(_) => " at a line that is not known; its task or one that is parallel to it comes from here",
        None => "",
    };
    format!("task {} {}{}{nearby}{stand_in}", side.task, verb(side), manner(side))
}

fn show(report: &Report, group: &RaceGroup<'_>) -> String {
    let race = group.races[0];
    let names = group.names();
    let text = format!("parallel accesses to {}", group.touched());

    let name = race.locations.first().map_or("", String::as_str);
    let (first, second) = (&race.first, &race.second);
    let mut marks = accesses(race, name);
    let mut notes = Vec::new();
    let mut created: Vec<u32> = Vec::new();
    for (side, other) in [(first, second), (second, first)] {
        let chain = without_pieces(report, report.ancestry(side.task, other.task));
        let (shown, between) = shorten(&chain);
        created.extend(shown);
        if let [from, .., to] = chain[..]
            && !between.is_empty()
        {
            notes.push(way_up(report, from, to, between));
        }
    }
    creations(report, &created, &mut marks);
    if let Some(allocated) = &race.allocated {
        let what = match race.object {
            Some(_) => "the block is allocated".to_owned(),
            None => format!("`{}` is made", array(name)),
        };
        say(&mut marks, allocated, format!("{what} here"));
    }
    notes.extend(stack::note(1, first));
    notes.extend(stack::note(2, second));
    notes.extend(again(group, names.len()));
    notes.extend(race.witness.as_ref().map(witness));
    if let Some(schedule) = &race.schedule {
        notes.push(format!(
            "in schedule {schedule}; to see it again: dagsan check {} --replay {schedule}",
            word(report.name())
        ));
    }
    let help = advice::next_step(report, race);

    let mut footer: Vec<Element<'_>> =
        notes.into_iter().map(|note| Level::NOTE.message(note).into()).collect();
    footer.push(Level::HELP.message(help).into());
    block(&title("race", &text, Some(race.kind())), report, &marks, footer)
}

/// What both orders lead to.
fn witness(witness: &Witness) -> String {
    let differences = match witness {
        Witness::None => {
            return "no witness: (2) could not be run before (1); it may depend on another race".to_owned();
        }
        Witness::Differences(differences) if differences.is_empty() => {
            return "both orders were run, and nothing differs, neither shared memory nor output: \
                    for this input the race is benign"
                .to_owned();
        }
        Witness::Differences(differences) => differences,
    };
    let value = |what: &str, value: &str| match what {
        OUTPUT => format!("{what} = {:?}", value.trim_end()),
        _ => format!("{what} = {value}"),
    };
    let shown = differences.iter().take(SHOWN_LOCATIONS);
    let (one, other): (Vec<String>, Vec<String>) =
        shown.map(|(what, one, other)| (value(what, one), value(what, other))).unzip();
    let more = match differences.len().saturating_sub(SHOWN_LOCATIONS) {
        0 => String::new(),
        more => format!("; {more} more differences"),
    };
    let (one, other) = (one.join(", "), other.join(", "));
    format!("both orders were run: (1) before (2): {one}; (2) before (1): {other}{more}")
}

fn accesses<'a>(race: &'a Race, name: &str) -> Vec<Mark<'a>> {
    let (first, second) = (&race.first, &race.second);
    let [one, two] = [(1, first), (2, second)].map(|(number, side)| {
        let what = match race.object {
            _ if side.detail.free => "the block".to_owned(),
            // The title says where they are.
            Some(_) => {
                name.split(" at ").next().filter(|part| !part.is_empty()).unwrap_or("all of it").to_owned()
            }
            None => format!("`{name}`"),
        };
        let near = match side.detail.stand_in {
            Some(StandIn::Creation) => "; its line is not known, but its task comes from here".to_owned(),
            Some(StandIn::Parallel(task)) => {
                format!("; its line is not known, but it is parallel to task {task}, which comes from here")
            }
            None if side.detail.nearby => " here or nearby".to_owned(),
            None => String::new(),
        };
        format!("({number}) task {} {} {what}{}{near}", side.task, verb(side), manner(side))
    });
    if first.place == second.place {
        vec![Mark::primary(&first.place, format!("{one}; {two}"))]
    } else {
        vec![Mark::primary(&first.place, one), Mark::primary(&second.place, two)]
    }
}

pub(crate) fn verb(side: &Side) -> &'static str {
    match side.kind {
        _ if side.detail.free => "frees",
        AccessKind::Read => "reads",
        AccessKind::Write => "writes",
    }
}

pub(crate) fn manner(side: &Side) -> &'static str {
    match side.detail {
        _ if side.isolated => ", isolated",
        Detail { atomic: true, .. } => ", atomically",
        Detail { locked: true, .. } => ", under a lock",
        _ => "",
    }
}

/// Says where the tasks were created, at these places.
pub(super) fn creations<'a>(report: &'a Report, tasks: &[u32], marks: &mut Vec<Mark<'a>>) {
    // Tasks of one kind from one place are told in one go.
    let mut told: Vec<(&Place, &str, Vec<u32>)> = Vec::new();
    for &task in tasks {
        if let Some(info) = report.tasks.get(&task)
            && let Some(place) = &info.created
        {
            match told.iter_mut().find(|(at, what, _)| *at == place && *what == info.what) {
                Some((_, _, same)) => same.push(task),
                None => told.push((place, &info.what, vec![task])),
            }
        }
    }
    for (place, what, tasks) in told {
        let (tasks, are) = (numbers(&tasks), if tasks.len() == 1 { "is" } else { "are" });
        say(marks, place, format!("{tasks} ({what}) {are} created here"));
    }
}

/// `task 1`, `tasks 1, 2 and 3`.
pub(super) fn numbers(tasks: &[u32]) -> String {
    let text: Vec<String> = tasks.iter().map(ToString::to_string).collect();
    match text.split_last() {
        Some((last, [])) => format!("task {last}"),
        Some((last, others)) => format!("tasks {} and {last}", others.join(", ")),
        None => "no task".to_owned(),
    }
}

/// Adds to what is said about a place.
fn say<'a>(marks: &mut Vec<Mark<'a>>, place: &'a Place, text: String) {
    match marks.iter_mut().find(|mark| mark.place == place) {
        Some(mark) => mark.label = format!("{}; {text}", mark.label),
        None => marks.push(Mark::context(place, text)),
    }
}

/// A way up without the pieces of a parallel iterator that were cut once more: of these the innermost is left.
fn without_pieces(report: &Report, chain: Vec<u32>) -> Vec<u32> {
    let piece = |task: &u32| report.tasks.get(task).filter(|task| task.join == Join::Iterator);
    let mut left: Vec<u32> = Vec::new();
    for task in chain {
        let cut_from = piece(&task).zip(left.last().and_then(piece));
        if !cut_from.is_some_and(|(one, other)| one.created == other.created) {
            left.push(task);
        }
    }
    left
}

/// The tasks of a way up whose creations are shown, and those between them. The last one is always shown: it
/// is the one to wait for.
fn shorten(chain: &[u32]) -> (Vec<u32>, &[u32]) {
    match chain {
        [start @ .., top] if start.len() >= SHOWN_CREATIONS => {
            let (shown, between) = start.split_at(SHOWN_CREATIONS - 1);
            ([shown, &[*top]].concat(), between)
        }
        _ => (chain.to_vec(), &[]),
    }
}

/// The creations that are not shown at their places.
fn way_up(report: &Report, from: u32, to: u32, between: &[u32]) -> String {
    let line = |task: &u32| {
        let place = report.tasks.get(task)?.created.as_ref()?;
        Some(format!("task {task} ({})", at(report, place)))
    };
    let lines: Vec<String> = between.iter().take(SHOWN_LOCATIONS).filter_map(line).collect();
    let more = between.len() - lines.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("task {from} comes from task {to} through {}{more}", lines.join(", "))
}

/// How often the two places raced again.
fn again(group: &RaceGroup<'_>, locations: usize) -> Option<String> {
    let cells: usize = group.races.iter().map(|race| race.locations.len()).sum();
    let duplicates = group.races.iter().map(|race| race.duplicates).fold(0, u64::saturating_add);
    match duplicates.saturating_add((cells - locations) as u64) {
        0 => None,
        times => Some(format!("{} between these two places", count(times, "more race"))),
    }
}
