//! The files that a command writes, looked at before anything is built and run, which may take long: each has a directory to be in, none is written twice, and
//! none takes the place of what is read.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Is there something wrong with what is `written`, beside what is `read`?
pub fn check<'a>(
    written: impl IntoIterator<Item = &'a Path>,
    read: impl IntoIterator<Item = &'a Path>,
) -> Result<()> {
    let read = read.into_iter().map(place).collect::<Result<HashSet<_>>>()?;
    let mut seen = HashSet::new();
    for path in written {
        let directory = path.parent().filter(|name| !name.as_os_str().is_empty());
        if let Some(directory) = directory.filter(|name| !name.is_dir()) {
            bail!("cannot write {}: there is no directory {}", path.display(), directory.display());
        }
        if path.is_dir() {
            bail!("cannot write {}: it is a directory", path.display());
        }
        let place = place(path)?;
        // Pipes and terminals take one after the other.
        let is_file = !place.exists() || place.is_file();
        if is_file && read.contains(&place) {
            bail!(
                "{} is read, and would be written over: give each report a file of its own",
                path.display()
            );
        }
        if !seen.insert(place) && is_file {
            bail!("{} is to be written twice: give each report a file of its own", path.display());
        }
    }
    Ok(())
}

/// The path by which two names of a file are the same.
fn place(path: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(path).context("cannot tell the current directory")?;
    if let Ok(place) = absolute.canonicalize() {
        return Ok(place);
    }
    // It is not there yet; its directory is.
    let directory = absolute.parent().and_then(|directory| directory.canonicalize().ok());
    Ok(match (directory, absolute.file_name()) {
        (Some(directory), Some(name)) => directory.join(name),
        _ => absolute,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_lost_is_refused() {
        let directory = std::env::temp_dir().join(format!("dagsan-files-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let [one, two, link] = ["one", "two", "link"].map(|name| directory.join(name));
        std::fs::write(&one, "").unwrap();
        std::os::unix::fs::symlink(&one, &link).unwrap();
        let why = |written: &[&Path], read: &[&Path]| {
            check(written.iter().copied(), read.iter().copied()).err().map(|error| error.to_string())
        };
        let dotted = directory.join(".").join("two");
        assert!(why(&[&two, &dotted], &[]).unwrap().contains("two is to be written twice"));
        assert!(why(&[&two, &link], &[&one]).unwrap().contains("link is read, and would be written over"));
        let lost = directory.join("no").join("x");
        assert!(why(&[&lost], &[]).unwrap().contains("x: there is no directory "));
        assert!(why(&[&directory], &[]).unwrap().ends_with(": it is a directory"));
        let null = Path::new("/dev/null");
        assert_eq!(why(&[null, null, &one, &two], &[null]), None);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
