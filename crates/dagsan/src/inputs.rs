//! Which files are meant.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use dagsan_report::Source;

/// The files to check.
#[derive(Debug, PartialEq, Eq)]
pub struct Inputs {
    pub files: Vec<PathBuf>,
    /// Were several files or a directory asked for, even if there is only one file in it?
    pub several: bool,
}

/// The files that the arguments mean: files as they are, and all `*.task` files of directories, sorted.
pub fn collect(paths: &[PathBuf]) -> Result<Inputs> {
    let mut inputs = Inputs { files: Vec::new(), several: paths.len() > 1 };
    for path in paths {
        if path.is_dir() {
            inputs.several = true;
            let before = inputs.files.len();
            walk(path, &mut inputs.files)?;
            let found = inputs.files.len() > before;
            ensure!(found, "no *.task file in {}: name a file, or a directory that has some", path.display());
        } else {
            inputs.files.push(path.clone());
        }
    }
    Ok(inputs)
}

fn walk(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let cannot = || format!("cannot list the directory {}", directory.display());
    let entries = fs::read_dir(directory).with_context(cannot)?;
    let mut entries = entries.collect::<Result<Vec<_>, _>>().with_context(cannot)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        // A link to a directory is not followed: it may lead back here.
        if entry.file_type().with_context(cannot)?.is_dir() {
            walk(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "task") && !path.is_dir() {
            files.push(path);
        }
    }
    Ok(())
}

/// The text of a file, or why there is none.
pub fn read(path: &Path) -> Result<Source, String> {
    let bytes = fs::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            "there is no such file; look at its name and at the directory".to_owned()
        }
        _ => error.to_string(),
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("it is not text in UTF-8 (see byte {at}); is it a task program?")
    })?;
    // Some editors mark UTF-8 with a character of its own; it is no part of the program.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Ok(Source::new(path.display().to_string(), text))
}
