//! The walk of `docs/walk.md`, replayed: its files are written, its commands run, and what they print is compared with what the page says.
//!
//! In blocks of `console`, lines with `$ ` are commands, and what follows is their output. Blocks with `file=` are files; with `from="…"` they take the place of
//! all from the line that starts so. What differs from run to run is `…` in the page. `UPDATE_EXPECT=1` writes the page anew.

use std::fs;
use std::path::{Path, PathBuf};

use crate::home::{Home, checkout};

/// A piece of the page.
enum Piece {
    /// Text, or a block that is not ours: stays as it is.
    Other(String),
    /// The line that opens the block, and its lines.
    Block(String, Vec<String>),
}

fn pieces(page: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut lines = page.lines().map(str::to_owned);
    while let Some(line) = lines.next() {
        let is_ours = line == "```console" || (line.starts_with("```") && line.contains(" file="));
        match is_ours {
            true => {
                let block = lines.by_ref().take_while(|line| line != "```").collect();
                pieces.push(Piece::Block(line, block));
            }
            false => pieces.push(Piece::Other(line)),
        }
    }
    pieces
}

/// Where the user is, and how the last command has ended.
struct Shell<'a> {
    home: &'a Home,
    current: PathBuf,
    code: i32,
}

impl Shell<'_> {
    /// Runs a line; what it prints, on both streams.
    fn run(&mut self, line: &str) -> String {
        if let Some(directory) = line.strip_prefix("cd ") {
            self.current.push(directory);
            return String::new();
        }
        // `$?` is that of the command before.
        let script = format!("exec 2>&1; (exit {}); {line}", self.code);
        let mut command = self.home.command("bash", &["-c", &script], &self.current);
        if line.starts_with("cargo add ") {
            // What the registry has is known from earlier; from here on, Cargo.lock says what is needed.
            command.env("CARGO_NET_OFFLINE", "true");
        }
        let output = command.output().unwrap();
        self.code = output.status.code().unwrap();
        self.shown(&String::from_utf8(output.stdout).unwrap())
    }

    /// Output as it is in the page.
    fn shown(&self, output: &str) -> String {
        let home = self.home.0.to_str().unwrap();
        let lines = output.lines().filter(|line| !is_about_others(line));
        lines.map(|line| steady(&line.replace(home, "~")) + "\n").collect()
    }
}

/// Does cargo tell of packages that are not the user's?
fn is_about_others(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match words.next() {
        Some("Compiling") => line.starts_with(' ') && !matches!(words.next(), Some("signal" | "dagsan")),
        Some("Locking" | "Adding" | "Updating" | "Downloading" | "Downloaded" | "Blocking") => {
            line.starts_with(' ')
        }
        _ => false,
    }
}

/// A line without times, numbers of processes and cargo's hashes.
fn steady(line: &str) -> String {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let word = |word: &str| {
        let time = word.trim_end_matches([',', ';', ')']).strip_suffix('s');
        let is_time =
            time.is_some_and(|time| time.split_once('.').is_some_and(|(a, b)| is_number(a) && is_number(b)));
        if is_time {
            return word.replace(time.unwrap_or_default(), "…");
        }
        // A test binary, with what cargo tells it from others by.
        if let Some((name, hash)) = word.rsplit_once('-').filter(|(name, _)| name.contains("/deps/")) {
            let rest = hash.trim_start_matches(|c: char| c.is_ascii_hexdigit());
            return format!("{name}-…{rest}");
        }
        match word.ends_with(".json") {
            true => word
                .split('.')
                .map(|part| if is_number(part) && part != "0" { "…" } else { part })
                .collect::<Vec<_>>()
                .join("."),
            false => word.to_owned(),
        }
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn write(shell: &Shell, opening: &str, lines: &[String]) {
    let (_, rest) = opening.split_once(" file=").unwrap();
    let (name, from) = match rest.split_once(" from=\"") {
        Some((name, from)) => (name, Some(from.trim_end_matches('"'))),
        None => (rest, None),
    };
    let path = shell.current.join(name);
    let mut text = String::new();
    if let Some(from) = from {
        let old = fs::read_to_string(&path).unwrap();
        let (kept, _) = old.split_once(&format!("\n{from}")).unwrap();
        text = kept.to_owned() + "\n";
    }
    fs::write(path, text + &lines.join("\n") + "\n").unwrap();
}

fn replay(page: &str, home: &Home) -> String {
    let mut shell = Shell { home, current: home.0.clone(), code: 0 };
    let mut replayed = String::new();
    for piece in pieces(page) {
        match piece {
            Piece::Other(line) => replayed += &(line + "\n"),
            Piece::Block(opening, lines) if opening == "```console" => {
                replayed += "```console\n";
                for command in lines.iter().filter_map(|line| line.strip_prefix("$ ")) {
                    replayed += &format!("$ {command}\n{}", shell.run(command));
                }
                replayed += "```\n";
            }
            Piece::Block(opening, lines) => {
                write(&shell, &opening, &lines);
                replayed += &format!("{opening}\n{}\n```\n", lines.join("\n"));
            }
        }
    }
    replayed
}

/// Replays the page.
pub fn check(home: &Home) {
    let path: &Path = &checkout().join("docs/walk.md");
    let page = fs::read_to_string(path).unwrap();
    let replayed = replay(&page, home);
    // All that was built for programs is in one place, for the next package too.
    for kept in ["sources", "runtime"] {
        let directory = home.0.join(".cache/dagsan").join(kept);
        assert_eq!(fs::read_dir(directory).unwrap().count(), 1, "{kept}");
    }
    assert!(!home.0.join("signal/target/dagsan/runtime").exists());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(path, replayed).unwrap();
        return;
    }
    if let Some((said, is)) = page.lines().zip(replayed.lines()).find(|(said, is)| said != is) {
        panic!(
            "docs/walk.md says\n{said}\nand it is\n{is}\nin\n{replayed}\nUPDATE_EXPECT=1 writes the page anew"
        );
    }
    assert_eq!(page.lines().count(), replayed.lines().count(), "{replayed}");
}

#[test]
fn what_differs_from_run_to_run_is_not_compared() {
    assert_eq!(steady("    Finished `dev` target(s) in 18.02s"), "    Finished `dev` target(s) in …s");
    assert_eq!(steady("note: see target/x/signal.9697.0.json"), "note: see target/x/signal.….0.json");
    assert_eq!(
        steady("Running x (target/debug/deps/a-b-e8e8c15197cfda94)"),
        "Running x (target/debug/deps/a-b-…)"
    );
    assert_eq!(steady("race: 36.99 of 3 and a.1.txt"), "race: 36.99 of 3 and a.1.txt");
    assert!(
        is_about_others("   Compiling either v1.19.0") && !is_about_others("   Compiling dagsan runtime")
    );
    assert!(!is_about_others("Compiling this is what the program prints"));
}
