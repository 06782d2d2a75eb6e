//! Hostile inputs: names, sources, findings, suppressions, baselines and arguments that try to break the commands, or to break out of the field that they are
//! shown in.
//!
//! Each input goes through every format, for a pipe and with the colours of a terminal, and into a file of every format at once. The command must end in
//! time, with little memory and with one of its own codes. A text has no control characters but the colours that are ours; JSON and SARIF are JSON; a line for
//! GitHub is a command of ours or none; a page is the page, with other data.

mod findings;
mod texts;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FORMATS: [&str; 6] = ["text", "short", "json", "sarif", "github", "html"];

/// Names try all of this at once.
const NAME: &str = "x\"'</script><img src=x onerror=alert(1)>\u{1b}[31m\u{1b}]0;t\u{7}\u{9b}2J\u{202e}\u{200b}\r\n::error::%0A`${x}`-->]]>\u{2028}";

/// An input: what `dagsan` is called with, besides formats and files of reports.
struct Case {
    name: String,
    arguments: Vec<OsString>,
}

/// A directory of its own for a test, removed at its end.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Directory {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{test}"));
        // Left by a run that failed.
        _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    /// A file, in a directory that is made if it is not there.
    fn file(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Runs the command with 2 GiB, and 20 seconds of a processor at most; one that waits for something is ended, too.
    fn run(&self, arguments: &[OsString], more: &[&str]) -> Output {
        let limited = "ulimit -v 2097152; ulimit -t 20; exec timeout 300 \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", limited, "sh", env!("CARGO_BIN_EXE_dagsan")]).args(arguments).args(more);
        command.current_dir(&self.0).env_remove("NO_COLOR").output().unwrap()
    }

    /// Tries all of them in every format, and says what is wrong with which.
    fn attack(&self, cases: &[Case]) {
        let mut wrong: Vec<String> = Vec::new();
        for case in cases {
            for format in FORMATS {
                for color in ["never", "always"] {
                    let output = self.run(&case.arguments, &["--format", format, "--color", color]);
                    let mut found = judged(format, &output.stdout);
                    found.extend(judged("text", &output.stderr));
                    found.extend(ended(&output));
                    wrong.extend(
                        found.iter().map(|why| format!("{} ({format}, colours {color}): {why}", case.name)),
                    );
                }
            }
            let files = FORMATS.map(|format| format!("--report={format}=out.{format}"));
            let output = self.run(&case.arguments, &files.each_ref().map(String::as_str));
            wrong.extend(ended(&output).map(|why| format!("{} (files): {why}", case.name)));
            for format in FORMATS {
                let file = self.0.join(format!("out.{format}"));
                // What is refused at once leaves none.
                let Ok(written) = fs::read(&file) else { continue };
                let found = judged(format, &written);
                wrong.extend(found.iter().map(|why| format!("{} (file of {format}): {why}", case.name)));
                fs::remove_file(&file).unwrap();
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// What is wrong with how the command ended.
fn ended(output: &Output) -> Option<String> {
    let known = output.status.code().is_some_and(|code| [0, 2, 65, 66, 67].contains(&code));
    let panicked = String::from_utf8_lossy(&output.stderr).contains("panicked");
    (!known || panicked).then(|| format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// What is wrong with a text.
fn judged(format: &str, bytes: &[u8]) -> Vec<String> {
    let Ok(text) = std::str::from_utf8(bytes) else { return vec!["no UTF-8".to_owned()] };
    let mut wrong = Vec::new();
    if let Some(c) = harmful(text) {
        wrong.push(format!("it has {}", c.escape_unicode()));
    }
    if text.is_empty() {
        return wrong;
    }
    match format {
        "json" | "sarif" => {
            if let Err(why) = serde_json::from_str::<serde_json::Value>(text) {
                wrong.push(format!("no JSON: {why}"));
            }
        }
        "github" => {
            let ours = [
                "::error file=",
                "::error title=",
                "::notice file=",
                "::notice title=",
                "::warning title=DagSan",
                "dagsan: ",
            ];
            wrong.extend(
                text.lines()
                    .filter(|line| !ours.iter().any(|begin| line.starts_with(begin)))
                    .map(str::to_owned),
            );
        }
        "html" => {
            let [begin, end] = ["id=\"data\" nonce=\"dagsan\">", "</script>\n<script nonce=\"dagsan\">"];
            let parts = text.split_once(begin).and_then(|(head, rest)| Some((head, rest.split_once(end)?)));
            match parts {
                Some((head, (data, _))) if head.len() < 16_384 && !data.contains(['<', '>', '&']) => {}
                _ => wrong.push("the data is not where it should be".to_owned()),
            }
            if text.matches("<script").count() != 2 || text.matches("</script").count() != 2 {
                wrong.push("there are other scripts".to_owned());
            }
        }
        _ => {}
    }
    wrong
}

/// The first character that does something instead of being seen. Colours are ours, and nothing else that begins with an escape.
fn harmful(text: &str) -> Option<char> {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        let colour = after
            .strip_prefix('[')
            .map(|code| code.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'));
        match (plain(before), colour.and_then(|code| code.strip_prefix('m'))) {
            (None, Some(next)) => rest = next,
            (found, _) => return found.or(Some('\u{1b}')),
        }
    }
    plain(rest)
}

fn plain(text: &str) -> Option<char> {
    let harmful = |c: &char| {
        (c.is_control() && *c != '\n')
            || matches!(*c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    };
    text.chars().find(harmful)
}

fn case(name: impl Into<String>, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Case {
    Case { name: name.into(), arguments: arguments.into_iter().map(Into::into).collect() }
}

#[test]
fn names_of_programs() {
    let directory = Directory::new("names");
    let mut names: Vec<Vec<u8>> = texts::NAMES.iter().map(|name| name.as_bytes().to_vec()).collect();
    names.extend([vec![b'n'; 250], b"\xff\xfe\x80".to_vec(), "e\u{301}".repeat(60).into_bytes()]);
    let cases: Vec<Case> = names
        .into_iter()
        .enumerate()
        .map(|(number, mut name)| {
            let shown = String::from_utf8_lossy(&name).escape_debug().to_string();
            name.truncate(250);
            name.extend(b".task");
            let path = Path::new(&number.to_string()).join(OsString::from_vec(name));
            directory.file(&path, texts::RACE);
            case(shown, ["check".into(), path.into_os_string()])
        })
        .collect();
    directory.attack(&cases);
}

#[test]
fn texts_of_programs() {
    let directory = Directory::new("texts");
    let cases: Vec<Case> = texts::sources()
        .into_iter()
        .map(|(name, text)| {
            let file = directory.file(format!("{name}.task"), text);
            case(name, ["check".into(), file.into_os_string(), "--max-steps=200000".into()])
        })
        .collect();
    directory.attack(&cases);
}

#[test]
fn suppressions_and_baselines() {
    let directory = Directory::new("accepted");
    directory.file("race.task", texts::RACE);
    let mut cases = Vec::new();
    for (number, text) in texts::suppressions().into_iter().enumerate() {
        let file = directory.file(format!("{number}.toml"), &text).into_os_string();
        let name: String = text.chars().take(60).collect();
        cases.push(case(name, ["check".into(), "race.task".into(), "--suppressions".into(), file]));
    }
    for (number, text) in texts::baselines().into_iter().enumerate() {
        let file = directory.file(format!("{number}.json"), &text).into_os_string();
        let name: String = text.chars().take(60).collect();
        cases.push(case(name, ["check".into(), "race.task".into(), "--baseline".into(), file]));
    }
    for path in ["/dev/zero", "/proc/self/mem", "/", "/no/such/file"] {
        cases.push(case(path, ["check", "race.task", "--suppressions", path]));
        cases.push(case(path, ["check", "race.task", "--baseline", path]));
    }
    directory.attack(&cases);
}

#[test]
fn files_of_findings() {
    let directory = Directory::new("findings");
    let pipe = directory.0.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let cases: Vec<Case> = findings::all(&pipe)
        .into_iter()
        .map(|(name, bytes)| {
            let file = directory.file(format!("{name}.json"), bytes);
            case(name, ["report".into(), file.into_os_string()])
        })
        .collect();
    directory.attack(&cases);
}

#[test]
fn graphs_of_a_million_nodes() {
    let directory = Directory::new("graphs");
    let file =
        directory.file("many.task", "shared x;\nproc main() { for i in 0..500000 { async { x = i; } } }\n");
    for kind in ["svg", "dot", "json"] {
        let graph = format!("--graph=g.{kind}");
        let output = directory.run(&["check".into(), file.clone().into_os_string(), graph.into()], &[]);
        assert_eq!(ended(&output), None, "{kind}");
        assert_eq!(judged("text", &output.stdout), Vec::<String>::new());
        let drawn = fs::metadata(directory.0.join(format!("g.{kind}"))).is_ok_and(|file| file.len() > 0);
        let refused =
            output.status.code() == Some(2) && String::from_utf8_lossy(&output.stderr).contains("error: ");
        assert!(drawn || refused, "{kind}: {output:?}");
    }
    fs::remove_dir_all(&directory.0).unwrap();
}
