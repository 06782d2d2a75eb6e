//! Findings that nobody wrote: whatever a file holds, it is refused or shown, in every format, without a panic and without control characters.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::graph::{Picture, dot, json, svg};
use crate::{Format, Project};

/// What is put in the place of something else.
#[derive(Debug, Clone)]
struct Change {
    number: u64,
    text: String,
    /// Something of another kind.
    other: Option<Value>,
}

impl Change {
    /// Mostly of the same kind, so that the file is still one of findings.
    fn of(&self, old: &Value) -> Value {
        match (&self.other, old) {
            (Some(other), _) => other.clone(),
            (None, Value::Number(_)) => self.number.into(),
            (None, Value::String(_)) => self.text.clone().into(),
            (None, Value::Bool(old)) => (!old).into(),
            (None, old) => old.clone(),
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    let number = prop_oneof![
        0..5_u64,
        Just(u64::from(u32::MAX)),
        Just(u64::MAX),
        any::<u64>(),
        any::<u32>().prop_map(u64::from)
    ];
    let text = prop_oneof![
        any::<String>(),
        Just("</script><img src=x>\u{1b}]0;x\u{7}\u{202e}\r\n::error::x".to_owned()),
        Just("../".repeat(40)),
        prop_oneof![Just("Main"), Just("Thread"), Just("Join"), Just("Free"), Just("Read"), Just("Aborted")]
            .prop_map(str::to_owned),
    ];
    let other =
        prop_oneof![Just(Value::Null), Just(Value::Array(Vec::new())), any::<u64>().prop_map(Value::from)];
    (number, text, proptest::option::weighted(0.1, other)).prop_map(|(number, text, other)| Change {
        number,
        text,
        other,
    })
}

/// All places of a value where another could be put.
fn places(value: &Value, path: String, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, format!("{path}/{index}"), found);
            }
        }
        Value::Object(keys) => {
            for (key, item) in keys {
                places(item, format!("{path}/{key}"), found);
            }
        }
        _ => {}
    }
    found.push(path);
}

fn base() -> Value {
    let mut findings = findings();
    findings.tasks[2].parent = Some(1);
    findings.races.push(findings.races[0].clone());
    findings.races[1].memory = Memory::Static { at: 7 };
    findings.races[1].first.kind = Kind::Free;
    findings.threads.push(findings::Threads { count: 1, name: Some("worker".to_owned()), stack: 0 });
    let step = |why, task| findings::PathStep { why, task, left_out: 1 };
    let way = || vec![step(findings::Order::Spawn, 1), step(findings::Order::Promise, 2)];
    findings.graphs.push(findings::Neighbourhood {
        start: 0,
        down: [way(), way()],
        up: Some([way(), way()]),
    });
    findings.races[0].graph = Some(0);
    serde_json::to_value(&findings).unwrap()
}

/// Shows the findings in every format.
fn show(found: &Findings) {
    let files = Files { current: "/nowhere".into(), roots: Vec::new(), vendored: RefCell::default() };
    let Ok(report) = report(found, &mut symbols(), &files) else { return };
    let project = Project::new("/nowhere", "/nowhere");
    if let Some(picture) = Picture::around(&report) {
        let texts = [dot(&picture), json(&picture).unwrap()].into_iter().chain(svg(&picture));
        texts.for_each(|text| assert!(!text.contains(|c: char| c != '\n' && c.is_control()), "{text:?}"));
    }
    for format in Format::ALL {
        let text = format.whole(&[format.part(&report, &project).unwrap()]);
        let plain = anstream::adapter::strip_str(&text).to_string();
        let harmful = |c: char| c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c));
        assert!(!plain.contains(harmful), "{format:?}: {plain:?}");
        match format {
            Format::Json | Format::Sarif => _ = serde_json::from_str::<Value>(&text).unwrap(),
            Format::Short => assert_eq!(text.lines().count(), lines_wanted(&report)),
            Format::Github => assert!(
                text.lines().all(|line| ["::error ", "::notice ", "::warning ", "dagsan: "]
                    .iter()
                    .any(|start| line.starts_with(start))),
                "{text}"
            ),
            Format::Text | Format::Html => {}
        }
    }
}

/// One per finding, or one with the verdict.
fn lines_wanted(report: &Report) -> usize {
    let waits = match &report.end {
        End::Deadlock(blocked) => blocked.len(),
        _ => 0,
    };
    (text::race::groups(report).len() + waits).max(1)
}

/// Enough for every day; PROPTEST_CASES asks for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn damaged_findings_are_refused_or_shown(changes in proptest::collection::vec((any::<prop::sample::Index>(), change()), 1..6)) {
        let mut found = base();
        for (at, change) in changes {
            let mut all = Vec::new();
            places(&found, String::new(), &mut all);
            if let Some(place) = found.pointer_mut(&all[at.index(all.len())]) {
                *place = change.of(place);
            }
        }
        if let Ok(found) = serde_json::from_value::<Findings>(found) {
            show(&found);
        }
    }
}

#[test]
fn undamaged_findings_are_shown() {
    show(&serde_json::from_value(base()).unwrap());
}

/// A path of half a million directories took half a minute: each of them was asked for each file.
#[test]
fn paths_that_no_system_has_are_not_looked_into() {
    let mut process = serde_json::from_value::<Findings>(base()).unwrap().process;
    let here = Files::new(Path::new("/nowhere"), &process).roots.len();
    process.directory = PathBuf::from("/a".repeat(10_000));
    let files = Files::new(Path::new("/nowhere"), &process);
    assert!(files.roots.len() <= here, "{}", files.roots.len());
    assert_eq!(files.find(&"a/".repeat(10_000)).1, None);
}
