//! The directory of findings: a file for each process, while it runs, and for longer if it has races.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use anyhow::{Context, Result};
use dagsan_findings::output;
use dagsan_report::Format;

use crate::cli::format_named;
use crate::native::session::Session;

/// The variable that the runtime reads; the command reads some of its keys too.
pub const OPTIONS: &str = "DAGSAN_OPTIONS";

/// So many files are kept from earlier runs.
const KEPT: usize = 100;

/// What the variable says to the command. The runtime checks it, and says what is wrong with it.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// The runtime prints its options, and the program does not run.
    pub help: bool,
    pub format: Option<Format>,
    pub color: Option<String>,
    /// The exit code of a program with races, which takes the place of its own.
    pub exit_code: u8,
    /// Is a program with races to be run again, for exact places?
    pub second_run: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { help: false, format: None, color: None, exit_code: 66, second_run: true }
    }
}

impl Options {
    pub fn from_environment() -> Options {
        Options::parse(&env::var(OPTIONS).unwrap_or_default())
    }

    fn parse(text: &str) -> Options {
        let mut options = Options::default();
        for (key, value) in text.split([':', ' ', ',']).filter_map(|pair| pair.split_once('=')) {
            match key {
                "help" => options.help = matches!(value, "1" | "true" | "yes" | "on"),
                "format" => options.format = format_named(value),
                "sites" => options.second_run = value == "auto",
                "exitcode" => options.exit_code = value.parse().unwrap_or(options.exit_code),
                "color" => options.color = Some(value.to_owned()),
                _ => {}
            }
        }
        options
    }
}

/// Makes room for the files of a session.
pub fn prepare(session: &Session) -> Result<()> {
    let directory = &session.findings;
    let cannot = || format!("cannot prepare {}", directory.display());
    fs::create_dir_all(directory).with_context(cannot)?;
    let mut files: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(directory).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        // Another session may just have removed its own.
        if let Ok(modified) = entry.metadata().and_then(|metadata| metadata.modified()) {
            files.push((modified, entry.path()));
        }
    }
    files.sort();
    let surplus = files.len().saturating_sub(KEPT);
    for (_, file) in &files[..surplus] {
        remove(file)?;
    }
    if let Some(path) = &session.output {
        output::clear(path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// A new file for a run of `executable`.
pub fn file(directory: &Path, executable: &OsStr) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    // Only the number itself is shared.
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = Path::new(executable).file_name().unwrap_or_default().to_string_lossy();
    directory.join(format!("{name}.{}.{number}.json", std::process::id()))
}

/// Removes a file that may not be there.
pub fn remove(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", file.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_runtime_are_passed_over() {
        let options = Options::parse("stacks=1:format=json::color=never");
        assert_eq!(
            options,
            Options {
                help: false,
                format: Some(Format::Json),
                color: Some("never".to_owned()),
                exit_code: 66,
                second_run: true
            }
        );
        let again = |text| Options::parse(text).second_run;
        assert_eq!(["", "sites=auto", "sites=line", "sites=exact"].map(again), [true, true, false, false]);
        assert_eq!(Options::parse("format=loud"), Options::default());
    }

    #[test]
    fn files_have_names_of_their_own() {
        let [one, two] = [(); 2].map(|()| file(Path::new("d"), OsStr::new("/x/sort-12")));
        assert_ne!(one, two);
        assert!(one.to_str().unwrap().starts_with("d/sort-12."));
    }
}
