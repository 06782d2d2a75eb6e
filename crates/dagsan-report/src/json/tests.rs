//! The keys, and when they are there.

use dagsan_core::AccessKind;
use serde_json::{Value, json};

use super::*;
use crate::fixture::{missing_get, place, race};
use crate::model::Exploration;

fn parsed(report: &Report) -> Value {
    serde_json::from_str(&object(report, &Project::new("/p", "/p")).unwrap()).unwrap()
}

#[test]
fn there_is_one_race_per_location_and_pair_of_places() {
    let mut report = missing_get();
    let (write, read) = (place(&report, "future g", "a[1]"), place(&report, "a[0] +", "a[1]"));
    race(&mut report, &["a[1]", "a[2]"], (2, write.clone()), (0, AccessKind::Read, read.clone()));
    race(&mut report, &["a[1]"], (2, read), (0, AccessKind::Read, write));
    let races = parsed(&report)["races"].clone();
    let locations: Vec<&Value> = races.as_array().unwrap().iter().map(|race| &race["location"]).collect();
    assert_eq!(locations, ["a[1]", "a[2]", "a[1]"]);
}

#[test]
fn sides_in_other_files_name_them() {
    let mut report = missing_get();
    report.sources.push(Source::new("other.rs", "one\ntwo\n"));
    report.races[0].second.place = report.sources[1].place(1, 4..7);
    let race = &parsed(&report)["races"][0];
    assert_eq!(race["first"], json!({ "line": 5, "column": 18, "task": 2 }));
    assert_eq!(race["second"], json!({ "line": 2, "column": 1, "task": 0, "file": "other.rs" }));
}

#[test]
fn explorations_have_keys_of_their_own() {
    let mut report = missing_get();
    let keys = ["schedule", "states", "stopped"];
    let plain = parsed(&report);
    assert!(keys.iter().all(|key| plain.get(key).is_none()));
    assert_eq!(plain["races"][0].get("schedule"), None);

    report.schedules = 7;
    report.schedule = Some("0.1".to_owned());
    report.races[0].schedule = Some("0.2".to_owned());
    report.exploration = Some(Exploration { states: 12, ..Exploration::default() });
    let all = parsed(&report);
    assert_eq!(keys.map(|key| all[key].clone()), [json!("0.1"), json!(12), Value::Null]);
    assert_eq!((&all["schedules"], &all["races"][0]["schedule"]), (&json!(7), &json!("0.2")));

    report.races.clear();
    report.exploration = Some(Exploration { stopped: Some("why".to_owned()), ..Exploration::default() });
    let cut = parsed(&report);
    assert_eq!((&cut["verdict"], &cut["stopped"]), (&json!("not-exhausted"), &json!("why")));
    assert!(cut["message"].as_str().unwrap().ends_with("why"));
}

#[test]
fn witnesses_tell_impossible_from_benign() {
    let witness = |witness: Option<Witness>| {
        let mut report = missing_get();
        report.races[0].witness = witness;
        parsed(&report)["races"][0].get("witness").cloned()
    };
    let difference = ("x".to_owned(), "1".to_owned(), "2".to_owned());
    assert_eq!(witness(None), None);
    assert_eq!(witness(Some(Witness::None)), Some(json!({ "found": false, "differences": [] })));
    assert_eq!(
        witness(Some(Witness::Differences(Vec::new()))),
        Some(json!({ "found": true, "differences": [] }))
    );
    let shown = json!({ "what": "x", "first_before_second": "1", "second_before_first": "2" });
    assert_eq!(
        witness(Some(Witness::Differences(vec![difference]))),
        Some(json!({ "found": true, "differences": [shown] }))
    );
}
