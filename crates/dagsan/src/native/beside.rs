//! The runtime for programs with fat link-time optimisation: linked beside them, as it was compiled.
//!
//! Fat link-time optimisation takes all crates of a program together. With the runtime among them, which is larger than most programs, each build
//! optimises it again. But marks are in line (`dagsan-pass`), and what is left are calls that do a lot: there is nothing to gain. So such programs get copies of the
//! runtime's libraries in which the object files have other names. rustc knows by these names which code is its own, and in link-time
//! optimisation already; of other code it knows nothing, and leaves it to the linker.
//!
//! The copies use the program's standard library, of which link-time optimisation leaves only what the program itself uses. So what they need is
//! listed beside them, and the pass keeps it (`outside` in `dagsan-pass`).

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSymbol};
use serde::{Deserialize, Serialize};

/// The copies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    /// Of the runtime itself.
    pub library: PathBuf,
    /// Where rustc finds those of the crates that it needs.
    pub directories: Vec<PathBuf>,
    /// The names of what they need of the program.
    pub needs: PathBuf,
}

/// How the names of rustc's object files end in an archive, and how they end in the copies.
const OWN: &[u8] = b".rcgu.o/\n";
const OTHER: &[u8] = b".code.o/\n";

/// Copies the runtime and all libraries of a directory, unless that was done.
pub fn copy(library: &Path, libraries: &Path, macros: &Path, to: &Path) -> Result<Beside> {
    let copies = to.join("deps");
    let beside = Beside {
        library: copies.join("libdagsan_rt.rlib"),
        directories: vec![copies.clone(), macros.to_owned()],
        needs: to.join("needs"),
    };
    let copied = fill(library, libraries, &copies, &beside);
    copied.with_context(|| format!("cannot copy the runtime to {}", to.display()))?;
    Ok(beside)
}

fn fill(library: &Path, libraries: &Path, copies: &Path, beside: &Beside) -> io::Result<()> {
    fs::create_dir_all(copies)?;
    let mut all = vec![(library.to_owned(), beside.library.clone())];
    for entry in fs::read_dir(libraries)? {
        let path = entry?.path();
        let is_library = path.extension().is_some_and(|end| end == "rlib");
        if let Some(name) = path.file_name().filter(|_| is_library) {
            all.push((path.clone(), copies.join(name)));
        }
    }
    let mut is_new = !beside.needs.exists();
    for (from, to) in &all {
        is_new |= !is_as_new(to, from)?;
    }
    if !is_new {
        return Ok(());
    }
    let mut symbols = Symbols::default();
    for (from, to) in &all {
        let mut bytes = fs::read(from)?;
        symbols.add(&bytes).map_err(|why| io::Error::new(ErrorKind::InvalidData, why))?;
        rename(&mut bytes);
        put(to, &bytes)?;
    }
    put(&beside.needs, symbols.needed().as_bytes())
}

/// Is a file there, and no older than another?
fn is_as_new(file: &Path, than: &Path) -> io::Result<bool> {
    match fs::metadata(file) {
        Ok(known) => Ok(known.modified()? >= fs::metadata(than)?.modified()?),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes a file; whoever reads it meanwhile finds the old one.
fn put(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = file.with_extension(format!("new.{}", std::process::id()));
    fs::write(&new, bytes)?;
    fs::rename(&new, file)
}

/// Gives the object files of an archive other names, which are as long.
fn rename(archive: &mut [u8]) {
    let Some(names) = long_names(archive) else { return };
    let names = &mut archive[names];
    for start in 0..names.len() {
        if names[start..].starts_with(OWN) {
            names[start..start + OWN.len()].copy_from_slice(OTHER);
        }
    }
}

/// Where an archive has the names that are too long for the heads of its members: in a member of its own.
///
/// ```text
///   !<arch>\n  │ name, 16 bytes … size, from 48 on, 10 bytes, decimal … │ the member │ …
/// ```
fn long_names(archive: &[u8]) -> Option<Range<usize>> {
    let mut at = b"!<arch>\n".len();
    loop {
        let head = archive.get(at..at + 60)?;
        let size: usize = std::str::from_utf8(&head[48..58]).ok()?.trim_end().parse().ok()?;
        let member = at + 60..at.checked_add(60)?.checked_add(size)?;
        if head.starts_with(b"// ") {
            return (member.end <= archive.len()).then_some(member);
        }
        at = member.end.next_multiple_of(2);
    }
}

/// What object files define, and what they need.
#[derive(Debug, Default)]
struct Symbols {
    defined: BTreeSet<String>,
    undefined: BTreeSet<String>,
}

impl Symbols {
    fn add(&mut self, archive: &[u8]) -> object::Result<()> {
        for member in ArchiveFile::parse(archive)?.members() {
            let member = member?;
            // What rustc knows of a crate is among the members, as an object without symbols, or as it is.
            if !member.name().ends_with(b".o") {
                continue;
            }
            let object = object::File::parse(member.data(archive)?)?;
            for symbol in object.symbols().filter(ObjectSymbol::is_global) {
                let set = if symbol.is_undefined() { &mut self.undefined } else { &mut self.defined };
                set.extend(symbol.name().ok().map(str::to_owned));
            }
        }
        Ok(())
    }

    /// A line for each.
    fn needed(&self) -> String {
        self.undefined.difference(&self.defined).map(|name| format!("{name}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, bytes: &[u8]) -> Vec<u8> {
        let mut all = format!("{name:16}{:32}{:<10}`\n", "", bytes.len()).into_bytes();
        all.extend(bytes);
        all.resize(all.len().next_multiple_of(2), b'\n');
        all
    }

    #[test]
    fn names_of_objects_change_and_nothing_else() {
        let archive = |names: &[u8]| {
            let parts = [member("/", b"odd"), member("//", names), member("/0", b"x.rcgu.o/\n")];
            [b"!<arch>\n".to_vec(), parts.concat()].concat()
        };
        let mut renamed = archive(b"a-1.a.2-cgu.0.rcgu.o/\na-1.a.2-cgu.1.rcgu.o/\nlong.rmeta/\n");
        rename(&mut renamed);
        assert_eq!(renamed, archive(b"a-1.a.2-cgu.0.code.o/\na-1.a.2-cgu.1.code.o/\nlong.rmeta/\n"));
    }

    #[test]
    fn what_is_no_archive_has_no_names() {
        for bytes in [&b""[..], b"!<arch>\n", b"!<arch>\nabc", &member("//", b"names")] {
            assert_eq!(long_names(bytes), None);
        }
        let cut = [b"!<arch>\n".to_vec(), member("//", b"names")].concat();
        assert_eq!(long_names(&cut[..cut.len() - 4]), None);
    }

    #[test]
    fn what_one_defines_another_does_not_need() {
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let symbols = Symbols { defined: set(&["a", "b"]), undefined: set(&["b", "c", "d"]) };
        assert_eq!(symbols.needed(), "c\nd\n");
    }
}
