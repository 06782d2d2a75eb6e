//! Objects that are linked and have no hooks: what they do is not checked, and both the link and the verdict say so.
//!
//! Whoever forgets `make clean`, or has a Makefile that compiles something with another compiler, would else be told that there is no race.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use object::read::archive::ArchiveFile;
use object::{Object, ObjectSection, SectionKind};

/// Every file that is compiled with hooks calls this.
const HOOK: &[u8] = b"__tsan_init";
/// How LLVM's own files begin, which are compiled when they are linked.
const BITCODE: &[u8] = b"BC\xC0\xDE";

/// The names of those of the linker's inputs that have code without hooks. What cannot be read is the linker's business.
pub fn without(arguments: &[OsString]) -> Vec<String> {
    let named = |argument: &&OsString| {
        let text = argument.to_string_lossy();
        !text.starts_with('-') && (text.ends_with(".o") || text.ends_with(".a"))
    };
    arguments.iter().filter(named).flat_map(|file| in_file(Path::new(file))).collect()
}

fn in_file(file: &Path) -> Vec<String> {
    let Ok(bytes) = fs::read(file) else { return Vec::new() };
    let name = file.display().to_string();
    let Ok(archive) = ArchiveFile::parse(&*bytes) else {
        return if lacks_hooks(&bytes) { vec![name] } else { Vec::new() };
    };
    let members = archive.members().filter_map(|member| {
        let member = member.ok()?;
        let own = String::from_utf8_lossy(member.name()).into_owned();
        lacks_hooks(member.data(&*bytes).ok()?).then(|| format!("{name}({own})"))
    });
    members.collect()
}

/// Has it code, and no hooks?
fn lacks_hooks(bytes: &[u8]) -> bool {
    let has_code = || {
        let is_code = |section: object::Section| section.kind() == SectionKind::Text && section.size() > 0;
        bytes.starts_with(BITCODE)
            || object::File::parse(bytes).is_ok_and(|file| file.sections().any(is_code))
    };
    has_code() && !bytes.windows(HOOK.len()).any(|window| window == HOOK)
}

/// The names, for a message.
pub fn list(names: &[String]) -> String {
    const SHOWN: usize = 4;
    let mut text = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text += &format!(" and {} more", names.len() - SHOWN);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_object_is_the_linkers_business() {
        assert!(!lacks_hooks(b"") && !lacks_hooks(b"/* GNU ld script */"));
        assert!(lacks_hooks(b"BC\xC0\xDE and so on") && !lacks_hooks(b"BC\xC0\xDE __tsan_init"));
        assert!(without(&["-o".into(), "nowhere/a.o".into()]).is_empty());
    }

    #[test]
    fn long_lists_are_cut() {
        let names = ["a", "b", "c", "d", "e", "f"].map(str::to_owned);
        assert_eq!(list(&names[..2]), "a, b");
        assert_eq!(list(&names), "a, b, c, d and 2 more");
    }
}
