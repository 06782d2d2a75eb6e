//! From addresses to names: which function and line a code address belongs to, and which static a data address.
//!
//! Everything comes from the executable itself, which `cargo dagsan` builds with debug information. A file without it
//! still has its symbol table, and then functions have names but no lines.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::{CompressionFormat, Object, ObjectKind, ObjectSection, ObjectSymbol, SymbolKind};

use crate::clean::clean;
use crate::source::read_regular;

/// A function that an address belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// Its name, demangled, without the hash; `??` if it is not known.
    pub function: String,
    /// The file as the compiler knew it, made absolute by the compiler's directory.
    pub file: Option<String>,
    /// The line, from 1; 0 if it is not known.
    pub line: u32,
    /// The column, from 1; 0 if it is not known.
    pub column: u32,
    /// Was its code put into that of the next one?
    pub inlined: bool,
}

/// A static variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Static {
    /// Its name, demangled, without the hash.
    pub name: String,
    /// Where it starts.
    pub address: u64,
    /// How many bytes it has.
    pub size: u64,
}

/// Why there are no symbols.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct Error {
    /// The executable.
    path: PathBuf,
    /// Why.
    why: String,
}

/// The symbols of an executable.
pub struct Symbols {
    loader: Option<Loader>,
    /// By address.
    statics: Vec<Static>,
    /// What was looked up before.
    known: HashMap<u64, Vec<Symbol>>,
}

impl Symbols {
    /// No symbols: every name is unknown.
    pub fn none() -> Symbols {
        Symbols { loader: None, statics: Vec::new(), known: HashMap::new() }
    }

    /// Reads the executable.
    pub fn open(path: &Path) -> Result<Symbols, Error> {
        let error = |why: String| Error { path: path.to_owned(), why };
        let bytes = read_regular(path, u64::MAX).map_err(|why| error(why.to_string()))?;
        let file = object::File::parse(&*bytes).map_err(|why| error(why.to_string()))?;
        // The loader has words of its own for what it cannot relocate, and prints them.
        if !matches!(file.kind(), ObjectKind::Executable | ObjectKind::Dynamic) {
            return Err(error("it is no program that was linked".to_owned()));
        }
        if let Some(name) = file.sections().find_map(|section| inflated(&section)) {
            return Err(error(format!(
                "the section {name} claims to be larger than it can be when it is unpacked"
            )));
        }
        let mut statics: Vec<Static> = file
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Data && symbol.size() > 0)
            .filter_map(|symbol| {
                let name = demangle(symbol.name().ok()?);
                Some(Static { name, address: symbol.address(), size: symbol.size() })
            })
            .collect();
        statics.sort_by_key(|found| found.address);
        let loader = Loader::new(path).map_err(|why| error(why.to_string()))?;
        Ok(Symbols { loader: Some(loader), statics, known: HashMap::new() })
    }

    /// The functions that the instruction *before* a return address belongs to, the innermost first: the function
    /// whose code it is comes last, those before it were inlined. Never empty.
    pub fn code(&mut self, return_address: u64) -> Vec<Symbol> {
        let Symbols { loader, known, .. } = self;
        let address = return_address.saturating_sub(1);
        known.entry(address).or_insert_with(|| look_up(loader.as_ref(), address)).clone()
    }

    /// What a return address is to be, in a test without an executable.
    #[cfg(test)]
    pub(crate) fn know(&mut self, return_address: u64, symbols: Vec<Symbol>) {
        self.known.insert(return_address - 1, symbols);
    }

    /// The static that holds the byte.
    pub fn data(&self, address: u64) -> Option<&Static> {
        let next = self.statics.partition_point(|found| found.address <= address);
        let found = self.statics.get(next.checked_sub(1)?)?;
        (address - found.address < found.size).then_some(found)
    }
}

/// No byte of a compressed section can stand for more.
const RATIO: u64 = 1032;

/// The name of a section that was compressed, by its own account, from more than could be: the loader would set aside as much as it says.
fn inflated<'d>(section: &impl ObjectSection<'d>) -> Option<String> {
    let range = section.compressed_file_range().ok()?;
    let compressed = range.format != CompressionFormat::None;
    let most = range.compressed_size.saturating_add(1).saturating_mul(RATIO);
    (compressed && range.uncompressed_size > most).then(|| clean(section.name().unwrap_or("??")).into_owned())
}

fn look_up(loader: Option<&Loader>, address: u64) -> Vec<Symbol> {
    let mut symbols = Vec::new();
    if let Some(mut frames) = loader.and_then(|loader| loader.find_frames(address).ok()) {
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
    }
    if symbols.is_empty() {
        let name = loader.and_then(|loader| loader.find_symbol(address));
        let function = name.map_or_else(unknown, demangle);
        symbols.push(Symbol { function, file: None, line: 0, column: 0, inlined: true });
    }
    if let Some(outermost) = symbols.last_mut() {
        outermost.inlined = false;
    }
    symbols
}

fn unknown() -> String {
    "??".to_owned()
}

/// The name as it is in the source, without the hash that compilers add.
fn demangle(name: &str) -> String {
    let name = addr2line::demangle_auto(name.into(), None);
    match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.bytes().all(|c| c.is_ascii_hexdigit()) => {
            path.to_owned()
        }
        _ => name.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::fs;
    use std::process::Command;

    use super::*;

    const PROGRAM: &str = "\
static mut COUNTER: [u64; 4] = [1; 4];

#[inline(always)]
fn inner(at: usize) -> u64 {
    unsafe { std::ptr::read_volatile(&raw const COUNTER[at]) }
}

#[inline(never)]
#[unsafe(no_mangle)]
fn outer(at: usize) -> u64 {
    inner(at) + 1
}

fn main() {
    std::process::exit(outer(std::env::args().count()) as i32);
}
";

    /// Compiles the program, and hands its file to the test.
    fn with_program(name: &str, test: impl FnOnce(&Path)) {
        let directory = env::temp_dir().join(format!("dagsan-symbols-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (source, program) = (directory.join("program.rs"), directory.join("program"));
        fs::write(&source, PROGRAM).unwrap();
        let status = Command::new("rustc")
            .args([
                "--edition=2024",
                "-Copt-level=1",
                "-Cdebuginfo=1",
                "-Clink-arg=-Wl,--compress-debug-sections=zlib",
            ])
            .arg("-o")
            .args([&program, &source])
            .status()
            .unwrap();
        assert!(status.success());
        test(&program);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn functions_lines_and_statics_are_found() {
        with_program("names", |program| {
            let mut symbols = Symbols::open(program).unwrap();
            let bytes = fs::read(program).unwrap();
            let file = object::File::parse(&*bytes).unwrap();
            let outer = file.symbols().find(|symbol| symbol.name() == Ok("outer")).unwrap();
            let (start, end) = (outer.address(), outer.address() + outer.size());

            let stacks: Vec<Vec<Symbol>> = (start..end).map(|address| symbols.code(address + 1)).collect();
            let inlined =
                stacks.iter().find(|stack| stack.iter().any(|frame| frame.function == "program::inner"));
            let inlined = inlined.expect("the read is in `inner`");
            let [inner, outer] = &inlined[inlined.len() - 2..] else { panic!("{inlined:?}") };
            assert_eq!((&*inner.function, inner.line, inner.inlined), ("program::inner", 5, true));
            assert_eq!((&*outer.function, outer.line, outer.inlined), ("outer", 11, false));
            assert!(inner.file.as_ref().unwrap().ends_with("program.rs") && inner.column > 0);

            let counter =
                symbols.statics.iter().find(|found| found.name == "program::COUNTER").unwrap().clone();
            assert_eq!(counter.size, 32);
            assert_eq!(symbols.data(counter.address + 31), Some(&counter));
            assert_ne!(symbols.data(counter.address + 32), Some(&counter));
            assert_eq!(symbols.data(0), None);
            assert_eq!(symbols.code(u64::MAX)[0].function, "??");
        });
    }

    #[test]
    fn a_section_that_claims_to_be_huge_is_an_error() {
        with_program("huge", |program| {
            let mut bytes = fs::read(program).unwrap();
            let file = object::File::parse(&*bytes).unwrap();
            let section = file.section_by_name(".debug_info").unwrap();
            let range = section.compressed_file_range().unwrap();
            assert_ne!(range.format, CompressionFormat::None);
            // The size follows the kind, and the head is three words long.
            let size = range.offset as usize - 16;
            assert_eq!(bytes[size..size + 8], range.uncompressed_size.to_le_bytes());
            bytes[size..size + 8].copy_from_slice(&(1_u64 << 31).to_le_bytes());
            fs::write(program, bytes).unwrap();
            let why = Symbols::open(program).err().unwrap().to_string();
            assert!(
                why.ends_with(
                    "the section .debug_info claims to be larger than it can be when it is unpacked"
                ),
                "{why}"
            );
        });
    }

    #[test]
    fn files_that_are_no_programs_are_errors() {
        assert!(Symbols::open(Path::new("/no/such/file")).is_err());
        let this = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(Symbols::open(&this).is_err_and(|error| error.to_string().contains("Cargo.toml: ")));
        assert_eq!(
            Symbols::none().code(7),
            [Symbol { function: unknown(), file: None, line: 0, column: 0, inlined: false }]
        );
    }

    #[test]
    fn hashes_are_no_part_of_names() {
        assert_eq!(demangle("_ZN4core3ptr5write17h0123456789abcdefE"), "core::ptr::write");
        assert_eq!(demangle("main"), "main");
    }
}
