//! The formats of `cargo dagsan` and `dagsan report`: one document from many processes, valid by its schema.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::schema::{assert_report, assert_sarif};
use crate::support::{Directory, EXAMPLES, POINTS, cargo_dagsan, dagsan, run, run_point, workspace};

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn the_tests_of_a_package_give_one_document() {
    let _built = &*POINTS;
    let directory = Directory::new("reports");
    let [sarif, json, short] = ["x.sarif", "x.json", "x.txt"].map(|name| directory.file(name));
    let report = |format: &str, path: &Path| format!("{format}={}", path.display());
    let arguments = [
        "--report",
        &report("sarif", &sarif),
        "--report",
        &report("json", &json),
        "--report",
        &report("short", &short),
        "--format",
        "github",
        "test",
        "--lib",
    ];
    let ran = run(&mut cargo_dagsan(&workspace("tests/native"), &arguments));
    assert_eq!(ran.code, 66, "{}", ran.stderr);
    assert!(ran.stdout.contains("\n::error file=tests/native/src/lib.rs,line="), "{}", ran.stdout);
    assert!(ran.stderr.contains("test tests::racy ... RACE"), "{}", ran.stderr);

    let (sarif, json) = (read(&sarif), read(&json));
    assert_sarif(&sarif);
    assert_report(&json);
    let reports = json.as_array().unwrap();
    assert_eq!((reports.len(), sarif["runs"].as_array().unwrap().len()), (6, 6));
    let at = reports.iter().position(|report| report["file"] == "dagsan_native_tests::tests::racy").unwrap();
    let result = &sarif["runs"][at]["results"][0];
    let uri = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(uri, "tests/native/src/lib.rs");
    assert_eq!(result["stacks"].as_array().unwrap().len(), 2);
    let flows = result["codeFlows"][0]["threadFlows"].as_array().unwrap();
    assert!(flows.len() == 2 && flows.iter().all(|flow| flow["locations"].as_array().unwrap().len() == 2));
    let print = &result["partialFingerprints"]["dagsanRace/v1"];
    assert_eq!(*print, reports[at]["races"][0]["fingerprint"]);
    let lines = fs::read_to_string(&short).unwrap();
    assert!(
        lines.contains("src/lib.rs:") && lines.contains(": race[write-write]: parallel accesses to"),
        "{lines}"
    );
}

#[test]
fn sarif_on_standard_output_is_one_document() {
    let _built = &*POINTS;
    let ran =
        run(&mut cargo_dagsan(&workspace("tests/native"), &["--format", "sarif", "test", "--lib", "clean"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_sarif(&serde_json::from_str(&ran.stdout).unwrap());
}

#[test]
fn findings_are_shown_again_in_every_format() {
    let directory = Directory::new("formats-of-findings");
    let (_, found) = run_point(&POINTS, "race_below_three_functions", "sites=exact");
    let file = directory.file("found.json");
    found.unwrap().write(&file).unwrap();
    let shown = |format: &str| {
        let ran =
            run(dagsan(&["report", file.to_str().unwrap(), "--format", format]).current_dir(workspace("")));
        assert_eq!(ran.code, 66, "{}", ran.stderr);
        ran.stdout
    };
    assert_sarif(&serde_json::from_str(&shown("sarif")).unwrap());
    assert_report(&serde_json::from_str(&shown("json")).unwrap());
    assert!(shown("short").starts_with("tests/native/src/bin/points/behaviours.rs:"));
    assert!(shown("github").starts_with("::error file=tests/native/src/bin/points/behaviours.rs,line="));
}

#[test]
fn the_graph_around_a_race_is_drawn() {
    let _built = &*EXAMPLES;
    let (directory, package) = (Directory::new("graph"), workspace("examples/native"));
    let [svg, json, none] = ["g.svg", "g.json", "none.dot"].map(|name| directory.file(name));
    let run_with = |file: &Path, name: &str| {
        let graph = file.to_str().unwrap();
        run(&mut cargo_dagsan(&package, &["--graph", graph, "run", "--quiet", "--bin", name]))
    };
    let ran = run_with(&svg, "promise_pipeline_racy");
    assert_eq!(ran.code, 66, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("note: what is around the races in the computation graph is in "),
        "{}",
        ran.stderr
    );
    let text = fs::read_to_string(&svg).unwrap();
    assert!(
        text.contains("writes 8 bytes at offset") && text.contains("marker-end=\"url(#promise)\""),
        "{text}"
    );
    // The same from the findings that it has left.
    let again = ran.stderr.split_once("dagsan report ").unwrap().1.lines().next().unwrap();
    let ran = run(dagsan(&["report", again, "--graph", json.to_str().unwrap()]).current_dir(&package));
    assert_eq!(ran.code, 66, "{}", ran.stderr);
    let racing = |graph: &Value| {
        graph["nodes"].as_array().unwrap().iter().filter(|node| node["racing"] == true).count()
    };
    assert_eq!(racing(&read(&json)), 2);

    let ran = run_with(&none, "promise_pipeline");
    assert_eq!((ran.code, none.exists()), (0, false), "{}", ran.stderr);
    assert!(ran.stderr.contains("there is no race, and so no graph"), "{}", ran.stderr);
    let ran = run(&mut cargo_dagsan(&package, &["--graph", "g.svg", "test"]));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("--graph draws one program: use it with `run`"), "{}", ran.stderr);
}
