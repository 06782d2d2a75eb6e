//! What is in the page. How it behaves is tested in a browser, by the command's tests.

use super::*;
use crate::fixture::{hostile, missing_get};
use crate::model::{Join, Task};

fn parsed(report: &Report) -> Value {
    serde_json::from_str(&part(report, &Project::new("/p", "/p")).unwrap()).unwrap()
}

#[test]
fn a_race_has_snippets_with_the_access_apart() {
    let race = &parsed(&missing_get())["races"][0];
    let lines = race["sides"][0]["shown"]["lines"].as_array().unwrap();
    assert_eq!(
        lines.iter().map(|line| line["number"].as_u64().unwrap()).collect::<Vec<_>>(),
        [2, 3, 4, 5, 6, 7, 8]
    );
    assert_eq!(lines[3]["parts"], json!(["    future g = { ", "a[1]", " = 2; return 2; };"]));
    assert_eq!(race["ways"][0]["top"][0]["at"], "x.task:5:5");
    assert_eq!((&race["ways"][1]["top"], &race["ancestor"]["task"]), (&json!([]), &json!(0)));
    assert_eq!(race["location"], "a");
}

#[test]
fn no_name_ends_the_element_that_it_is_in() {
    let page = page(&[part(&hostile(), &Project::new("/p", "/p")).unwrap()]);
    let (_, data) = page.split_once("id=\"data\" nonce=\"dagsan\">").unwrap();
    let (data, rest) = data.split_once("</script>").unwrap();
    assert!(!data.contains(['<', '>', '&']) && rest.starts_with("\n<script nonce=\"dagsan\">"));
    let read: Value = serde_json::from_str(data).unwrap();
    assert!(read[0]["name"].as_str().unwrap().contains("</script><img src=x onerror=alert(1)>"));
    assert!(
        !page.contains("http://") || page.matches("http://").count() == 1,
        "the name of SVG's elements only"
    );
}

#[test]
fn long_ways_lines_and_lists_are_cut() {
    let mut report = missing_get();
    for number in 3..10_000 {
        let created = report.tasks[&1].created.clone();
        let task = Task { parent: Some(number - 1), what: "async".to_owned(), created, join: Join::Finish };
        report.tasks.insert(number, task);
    }
    report.races[0].first.task = 9_999;
    report.races[0].locations = (0..100).map(|at| format!("a[{at}]")).collect();
    let race = report.races[0].clone();
    report.races = (0..1_000)
        .map(|line| {
            let mut race = race.clone();
            race.first.place.line = 5 + line;
            race
        })
        .collect();
    let part = parsed(&report);
    assert_eq!(part["races"].as_array().unwrap().len(), RACES);
    assert_eq!(part["leftOut"], 1_000 - RACES);
    let race = &part["races"][0];
    assert_eq!(race["names"].as_array().unwrap().len(), NAMES);
    assert_eq!(race["moreNames"], 100 - NAMES);
    let way = &race["ways"][0];
    assert_eq!(way["top"].as_array().unwrap().len() + way["bottom"].as_array().unwrap().len(), 2 * TASKS);
    assert_eq!(way["leftOut"], 9_998 - 2 * TASKS);
    assert!(part.to_string().len() < 4_000_000);
    let long = format!("{}x{}", "é".repeat(1_000), "y".repeat(1_000));
    let place = crate::source::Source::new("a", long.clone()).place(0, 2_000..2_001);
    let [before, mark, after] = marked_line(&long, &long, &place);
    assert_eq!((before.chars().count(), &*mark, after.chars().count()), (WIDTH + 1, "x", WIDTH + 1));
}
