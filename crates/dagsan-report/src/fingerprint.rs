//! What a race is known by from one run to the next, and after lines have moved.
//!
//! Made of what the two accesses are (read, write, free), of their functions, of their files, named from the root of the
//! project, of the text of their lines, and of what they touch as far as it has a name: a variable, a static, the line that allocates a
//! block. Line numbers, task numbers, addresses and sizes are no part of it, nor is which access came first. So two races between lines with the
//! same text in the same functions have one fingerprint, and a race whose line is edited gets another.

use crate::model::{Race, Report, Side};
use crate::project::Project;
use crate::source::Place;
use crate::text::race::{array, verb};

/// The version of the recipe: fingerprints of different versions do not compare.
pub const VERSION: u32 = 1;

/// The fingerprint, as 32 hexadecimal digits.
pub fn fingerprint(report: &Report, race: &Race, project: &Project) -> String {
    let mut sides = [&race.first, &race.second].map(|side| access(report, side, project));
    sides.sort();
    let [one, other] = &sides;
    let touched = touched(report, race, project);
    format!("{:032x}", hash(&["dagsan", &VERSION.to_string(), one, other, &touched]))
}

/// The innermost function of the user's.
pub fn function(side: &Side) -> Option<&str> {
    let stack = &side.detail.stack;
    let own = stack.iter().find(|frame| frame.at.is_some() && !frame.library);
    own.or(stack.first()).map(|frame| frame.function.as_str())
}

/// The text of the line, with single spaces; empty if it is not known.
pub fn line_text(report: &Report, place: &Place) -> String {
    let Some(source) = report.sources.get(place.source) else { return String::new() };
    let line = place.line.checked_sub(1).and_then(|line| source.text().lines().nth(line));
    line.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The name of the file of a place, from the root of the project.
pub fn file(report: &Report, place: &Place, project: &Project) -> String {
    // What native programs have as their first source is the program itself, which is no file.
    match report.sources.get(place.source) {
        Some(source) if place.line > 0 => project.name(source.name()),
        _ => String::new(),
    }
}

fn access(report: &Report, side: &Side, project: &Project) -> String {
    let place = &side.place;
    let [function, file, text] = [
        function(side).unwrap_or_default().to_owned(),
        file(report, place, project),
        line_text(report, place),
    ];
    [verb(side), &function, &file, &text].join("\n")
}

/// What both touch, if that has a name or a place in the source.
fn touched(report: &Report, race: &Race, project: &Project) -> String {
    match (&race.object, &race.allocated) {
        (Some(object), _) if object.starts_with("static ") => object.clone(),
        (Some(_), Some(place)) => file(report, place, project) + "\n" + &line_text(report, place),
        (Some(_), None) => String::new(),
        (None, _) => race.locations.first().map_or(String::new(), |name| array(name).to_owned()),
    }
}

/// FNV-1a with 128 bits, which is the same everywhere and for ever. Each part is closed by a byte that no text has.
fn hash(parts: &[&str]) -> u128 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash: u128, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{MISSING_GET, missing_get};
    use crate::source::Source;

    fn print(report: &Report) -> String {
        fingerprint(report, &report.races[0], &Project::new("/p/sub", "/p"))
    }

    /// The same race after the source has changed, so that its lines have moved by so many.
    fn moved(text: &str, by: usize) -> Report {
        let mut report = missing_get();
        report.sources[0] = Source::new("x.task", text);
        let race = &mut report.races[0];
        race.first.place.line += by;
        race.second.place.line += by;
        report
    }

    #[test]
    fn moved_and_indented_lines_are_the_same() {
        let before = print(&missing_get());
        assert_eq!(before.len(), 32);
        let text = format!("// A comment.\n\n{}", MISSING_GET.replace("    a[2] =", "\ta[2]  ="));
        assert_eq!(print(&moved(&text, 2)), before);
        let mut turned = missing_get();
        let race = &mut turned.races[0];
        std::mem::swap(&mut race.first, &mut race.second);
        race.first.task = 77;
        assert_eq!(print(&turned), before, "neither the order nor the tasks matter");
    }

    #[test]
    fn other_lines_files_kinds_and_variables_are_others() {
        let before = print(&missing_get());
        assert_ne!(print(&moved(&MISSING_GET.replace("a[2] =", "a[3] ="), 0)), before);
        let mut other = missing_get();
        other.rename("y.task");
        assert_ne!(print(&other), before);
        let mut other = missing_get();
        other.races[0].second.kind = dagsan_core::AccessKind::Write;
        assert_ne!(print(&other), before);
        let mut other = missing_get();
        other.races[0].locations = vec!["b[1]".to_owned()];
        assert_ne!(print(&other), before);
        other.races[0].locations = vec!["a[7]".to_owned()];
        assert_eq!(print(&other), before, "an element of the same array");
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
        // The value that the authors of the function give.
        assert_eq!(hash(&[]), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    }
}
