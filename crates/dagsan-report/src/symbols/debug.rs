//! Debug information: which functions, and which lines of them, an address of code belongs to.
//!
//! addr2line reads it, by way of a [`reader`](super::reader) that gives up when more is read than real debug information needs. Files beside the executable
//! are read too, if it says that parts are there: `.dwo` and `.dwp`.
//!
//! What cannot be: debug information in a file of its own (`.gnu_debuglink`), and that of other systems.

use std::cell::Cell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use addr2line::gimli::{
    AbbreviationsCacheStrategy, Dwarf, DwarfPackage, Error, Reader as _, Result, RunTimeEndian,
};
use addr2line::{Context, LookupContinuation as _, LookupResult, SplitDwarfLoad};
use object::{CompressionFormat, Object, ObjectSection};

use super::reader::{Meter, Metered};
use super::{Symbol, demangle, unknown};
use crate::source::read_regular;

/// So often a file may be read as a whole. What compilers write is read a third of a time, with all functions asked for.
const TIMES: u64 = 2;

/// So many bytes may be read besides, of a file however small it is.
const BESIDES: u64 = 1 << 20;

/// So many bytes may be read for the answer about one address: the names of functions that are inlined into each other.
const ANSWER: u64 = 1 << 16;

/// Sections may be so many times larger than their file when they are unpacked. Those of compilers are four times larger, or so.
const UNPACKED: u64 = 16;

/// `.dwo` files have so many bytes, all together. Their names come from the executable, and may be anybody's.
const SPLIT: u64 = 1 << 30;

/// The debug information of an executable.
pub struct Debug {
    context: Context<Metered>,
    package: Option<DwarfPackage<Metered>>,
    meter: Rc<Meter>,
    split: Cell<u64>,
}

impl Debug {
    /// Reads what says where the rest is.
    pub fn load(path: &Path, file: &Rc<Vec<u8>>) -> std::result::Result<Debug, String> {
        let meter = Rc::new(Meter::default());
        let sections = Sections::of(file, &meter)?;
        let mut dwarf = Dwarf::load(|id| sections.load(Some(id.name())))?;
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        let context = Context::from_dwarf(dwarf).map_err(|why| why.to_string())?;
        let package = package(path, &meter);
        Ok(Debug { context, package, meter, split: Cell::new(SPLIT) })
    }

    /// Was it given up, because more had to be read than real debug information needs?
    pub fn gave_up(&self) -> bool {
        self.meter.gave_up()
    }

    /// The functions that an address belongs to, the innermost first; as many as are known.
    pub fn functions(&self, address: u64) -> Vec<Symbol> {
        self.meter.allow(ANSWER);
        let mut found = self.context.find_frames(address);
        let frames = loop {
            match found {
                LookupResult::Output(frames) => break frames,
                LookupResult::Load { load, continuation } => {
                    found = continuation.resume(self.load_split(&load).ok().flatten().map(Arc::new));
                }
            }
        };
        let mut symbols = Vec::new();
        let Ok(mut frames) = frames else { return symbols };
        // Damaged debug information ends the list early.
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|name| name.raw_name().ok());
            let location = frame.location.as_ref();
            symbols.push(Symbol {
                function: name.map_or_else(unknown, |name| demangle(&name)),
                file: location.and_then(|location| location.file).map(str::to_owned),
                line: location.and_then(|location| location.line).unwrap_or(0),
                column: location.and_then(|location| location.column).unwrap_or(0),
                inlined: true,
            });
        }
        symbols
    }

    /// The part that is in a file of its own, or in the package.
    fn load_split(&self, load: &SplitDwarfLoad<Metered>) -> Result<Option<Dwarf<Metered>>> {
        if let Some(package) = &self.package
            && let Some(found) = package.find_cu(load.dwo_id, &load.parent)?
        {
            return Ok(Some(found));
        }
        let Some(name) = &load.path else { return Ok(None) };
        let directory = load.comp_dir.as_ref().map_or(Ok(PathBuf::new()), path)?;
        let Ok(bytes) = read_regular(&directory.join(path(name)?), self.split.get()) else { return Ok(None) };
        self.split.set(self.split.get() - bytes.len() as u64);
        let file = Rc::new(bytes);
        let Ok(sections) = Sections::of(&file, &self.meter) else { return Ok(None) };
        let Ok(mut dwarf) = Dwarf::load(|id| sections.load(id.dwo_name())) else { return Ok(None) };
        let Some(header) = dwarf.units().next()? else { return Ok(None) };
        // A file that was built again is another one.
        if dwarf.unit(header)?.dwo_id != Some(load.dwo_id) {
            return Ok(None);
        }
        dwarf.make_dwo(&load.parent);
        Ok(Some(dwarf))
    }
}

/// The package of all `.dwo` files, beside the executable, if there is one.
fn package(executable: &Path, meter: &Rc<Meter>) -> Option<DwarfPackage<Metered>> {
    let mut name = executable.file_name()?.to_owned();
    name.push(".dwp");
    let bytes = Rc::new(read_regular(&executable.with_file_name(name), u64::MAX).ok()?);
    let sections = Sections::of(&bytes, meter).ok()?;
    let empty = sections.reader(Rc::default());
    // The package wants errors of its own kind.
    DwarfPackage::load(|id| sections.load(id.dwo_name()).map_err(|_| Error::Io), empty).ok()
}

fn path(name: &Metered) -> Result<PathBuf> {
    Ok(PathBuf::from(OsStr::from_bytes(&name.to_slice()?)))
}

/// The sections of a file.
struct Sections<'a> {
    file: &'a Rc<Vec<u8>>,
    object: object::File<'a>,
    endian: RunTimeEndian,
    meter: &'a Rc<Meter>,
    /// How many bytes may still be unpacked.
    room: Cell<u64>,
}

impl<'a> Sections<'a> {
    fn of(file: &'a Rc<Vec<u8>>, meter: &'a Rc<Meter>) -> std::result::Result<Sections<'a>, String> {
        let object = object::File::parse(file.as_slice()).map_err(|why| why.to_string())?;
        let endian = match object.is_little_endian() {
            true => RunTimeEndian::Little,
            false => RunTimeEndian::Big,
        };
        let length = file.len() as u64;
        let room = length.saturating_mul(UNPACKED).saturating_add(BESIDES);
        meter.allow(length.saturating_mul(TIMES).saturating_add(BESIDES));
        Ok(Sections { file, object, endian, meter, room: Cell::new(room) })
    }

    /// A section; one that is not there is empty.
    fn load(&self, name: Option<&str>) -> std::result::Result<Metered, String> {
        let Some(section) = name.and_then(|name| self.object.section_by_name(name)) else {
            return Ok(self.reader(Rc::default()));
        };
        let wrong = |why: object::Error| format!("{}: {why}", name.unwrap_or_default());
        let range = section.compressed_file_range().map_err(wrong)?;
        if range.format == CompressionFormat::None {
            let mut reader = self.reader(Rc::clone(self.file));
            let (start, length) = (range.offset as usize, range.uncompressed_size as usize);
            let part = reader.skip(start).and_then(|()| reader.truncate(length));
            return part.map(|()| reader).map_err(|why| format!("{}: {why}", name.unwrap_or_default()));
        }
        let Some(room) = self.room.get().checked_sub(range.uncompressed_size) else {
            return Err(format!(
                "{} claims to be larger than it can be when it is unpacked",
                name.unwrap_or_default()
            ));
        };
        self.room.set(room);
        let bytes = section.uncompressed_data().map_err(wrong)?.into_owned();
        self.meter.allow((bytes.len() as u64).saturating_mul(TIMES));
        Ok(self.reader(Rc::new(bytes)))
    }

    fn reader(&self, bytes: Rc<Vec<u8>>) -> Metered {
        Metered::new(bytes, self.endian, Rc::clone(self.meter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This program is a real one: all functions of it, with all that is inlined into them, take half of what is allowed at most.
    #[test]
    fn real_debug_information_is_far_from_the_limit() {
        let path = std::env::current_exe().unwrap();
        let file = Rc::new(std::fs::read(&path).unwrap());
        let debug = Debug::load(&path, &file).unwrap();
        let allowed = file.len() as u64 * TIMES + BESIDES;
        let object = object::File::parse(file.as_slice()).unwrap();
        let code = object.sections().filter(|section| section.kind() == object::SectionKind::Text);
        let mut known = 0;
        for address in
            code.flat_map(|section| (section.address()..section.address() + section.size()).step_by(16))
        {
            let found = debug.context.find_frames(address).skip_all_loads();
            known +=
                u64::from(found.is_ok_and(|mut frames| frames.next().is_ok_and(|frame| frame.is_some())));
        }
        assert!(known > 1000, "{known}");
        let used = allowed - debug.meter.left();
        println!("{} bytes, of which {used} were read", file.len());
        assert!(!debug.gave_up() && used < allowed / 2, "{used} of {allowed}");
    }
}
