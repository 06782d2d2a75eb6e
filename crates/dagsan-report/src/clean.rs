//! Names from outside, made harmless: nothing of them moves a cursor, changes a colour or turns a line round.
//!
//! Executables, findings and file names may hold anything. Control characters, those that change the direction of text, and those
//! that cannot be seen are shown as `\u{202e}`. A report is cleaned once, when it is complete. Texts of sources are left as they
//! are, since places are counted in them; who shows a line of one cleans the line.

use std::borrow::Cow;

use crate::model::{End, Native, Race, Report, Side, Witness};

/// The text, without characters that do something instead of being seen.
pub fn clean(text: &str) -> Cow<'_, str> {
    cleaned(text, is_harmful)
}

/// The same for a message, which may have several lines; none of them is a command to whoever runs the command (`::error::` is one to GitHub).
pub fn clean_message(text: &str) -> Cow<'_, str> {
    let is_command = |line: &str| ["::", "##["].iter().any(|start| line.trim_start().starts_with(start));
    match text.split('\n').skip(1).any(is_command) {
        true => cleaned(text, is_harmful),
        false => cleaned(text, |c| c != '\n' && is_harmful(c)),
    }
}

/// A source to be shown, in which places are counted: each character that does something has become another one of as many bytes. Tabs and other controls of
/// one byte are left to who shows it.
pub(crate) fn masked(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| c.len_utf8() > 1 && is_harmful(c);
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mask = |c: char| match (harmful(c), c.len_utf8()) {
        (false, _) => c,
        (true, 2) => '\u{b7}',
        (true, 3) => '\u{fffd}',
        (true, _) => '\u{1f78c}',
    };
    Cow::Owned(text.chars().map(mask).collect())
}

fn cleaned(text: &str, harmful: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&harmful) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match harmful(c) {
            true => clean.extend(c.escape_unicode()),
            false => clean.push(c),
        }
    }
    Cow::Owned(clean)
}

/// Control characters, separators of lines, annotations, and what Unicode says is to be ignored if it cannot be shown (`Default_Ignorable_Code_Point`): marks
/// of direction are among these, joiners, fillers and tags. But for the variation selectors of emoji, of which sources are full,
/// and which hide nothing.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}'..='\u{2029}' | '\u{fff9}'..='\u{fffb}')
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Cleans a name.
fn name(text: &mut String) {
    if let Cow::Owned(clean) = clean(text) {
        *text = clean;
    }
}

/// Cleans a message, which may have several lines.
fn message(text: &mut String) {
    if let Cow::Owned(clean) = clean_message(text) {
        *text = clean;
    }
}

fn position(at: &mut Option<(String, u32, u32)>) {
    if let Some((file, ..)) = at {
        name(file);
    }
}

impl Report {
    /// Cleans every name and message in it. What the program printed is its own.
    pub fn clean(&mut self) {
        for source in &mut self.sources {
            let name = clean(source.name()).into_owned();
            source.rename(&name);
        }
        self.races
            .iter_mut()
            .chain(self.accepted.iter_mut().map(|accepted| &mut accepted.race))
            .for_each(race);
        self.tasks.values_mut().for_each(|task| name(&mut task.what));
        self.notes.iter_mut().for_each(message);
        self.native.iter_mut().for_each(native);
        match &mut self.end {
            End::Finished | End::Aborted => {}
            End::Failed(failure) => message(&mut failure.message),
            End::Deadlock(blocked) => blocked.iter_mut().for_each(|task| name(&mut task.waits_for)),
            End::Rejected(found) => {
                for diagnostic in found {
                    message(&mut diagnostic.message);
                    message(&mut diagnostic.label);
                    diagnostic.others.iter_mut().for_each(|(_, label)| message(label));
                    diagnostic.help.iter_mut().for_each(message);
                }
            }
            End::Unreadable(why) | End::Refused(why) | End::CutShort(why) | End::Broken(why) => message(why),
        }
    }
}

fn race(race: &mut Race) {
    race.locations.iter_mut().for_each(name);
    race.object.iter_mut().for_each(name);
    [&mut race.first, &mut race.second].into_iter().for_each(side);
    if let Some(Witness::Differences(differences)) = &mut race.witness {
        for (what, one, other) in differences {
            name(what);
            message(one);
            message(other);
        }
    }
}

fn side(side: &mut Side) {
    for frame in &mut side.detail.stack {
        name(&mut frame.function);
        position(&mut frame.at);
    }
}

fn native(native: &mut Native) {
    for threads in &mut native.threads {
        threads.name.iter_mut().for_each(name);
        position(&mut threads.at);
    }
    for dependence in &mut native.schedule {
        name(&mut dependence.call);
        position(&mut dependence.at);
        position(&mut dependence.other);
    }
    for unseen in &mut native.unseen {
        name(&mut unseen.what);
        position(&mut unseen.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_message_is_a_command() {
        assert_eq!(clean_message("one\ntwo :: three"), "one\ntwo :: three");
        assert_eq!(clean_message("one\n ::error::two"), "one\\u{a} ::error::two");
        assert_eq!(clean_message("one\n##[error]two"), "one\\u{a}##[error]two");
    }

    #[test]
    fn what_does_something_is_spelled_out() {
        assert_eq!(clean("fill::<é, 日本>"), "fill::<é, 日本>");
        assert_eq!(clean("\u{1b}[31mx\r\n"), "\\u{1b}[31mx\\u{d}\\u{a}");
        assert_eq!(clean("a\u{202e}b\u{2066}c\u{200b}\u{9b}"), "a\\u{202e}b\\u{2066}c\\u{200b}\\u{9b}");
        assert_eq!(clean("s\u{ad}um\u{3164}\u{fe0f}\u{e0101}"), "s\\u{ad}um\\u{3164}\u{fe0f}\\u{e0101}");
        let mut text = "one\ntwo\u{7}".to_owned();
        message(&mut text);
        assert_eq!(text, "one\ntwo\\u{7}");
    }

    #[test]
    fn a_source_keeps_its_places() {
        let text = "a\u{9b}\u{61c}b\u{202e}c\u{e0041}\té\u{1b}";
        assert_eq!(masked(text), "a\u{b7}\u{b7}b\u{fffd}c\u{1f78c}\té\u{1b}");
        assert_eq!(masked(text).len(), text.len());
        assert!(matches!(masked("plain é\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn nothing_reaches_a_terminal() {
        let report = crate::fixture::hostile();
        let project = crate::Project::new("/p", "/p");
        for format in crate::Format::ALL {
            let text = format.whole(&[format.part(&report, &project).unwrap()]);
            // Without the styles of our own.
            let text = anstream::adapter::strip_str(&text).to_string();
            let harmful = |c: char| c != '\n' && is_harmful(c);
            assert!(!text.contains(harmful), "{format:?}: {text:?}");
            // A colour of theirs would have been taken for ours.
            assert!(text.contains("[31m"), "{format:?}: {text:?}");
        }
    }
}
