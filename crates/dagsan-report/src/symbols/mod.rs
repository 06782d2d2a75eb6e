//! From addresses to names: which function and line a code address belongs to, and which static a data address.
//!
//! Everything comes from the executable itself, which `cargo dagsan` builds with debug information (`debug`). A file without it
//! still has its symbol table, and then functions have names but no lines. The same goes for debug information that is damaged, or that says more than it
//! can: memory and time are bounded by the size of the file (`reader`).

mod debug;
mod reader;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use object::{Object, ObjectKind, ObjectSymbol, SymbolKind};

use crate::source::read_regular;
use debug::Debug;

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
    debug: Option<Debug>,
    /// Why there is no debug information, if some was expected.
    trouble: Option<String>,
    /// By address.
    functions: Vec<Named>,
    /// By address.
    statics: Vec<Static>,
    /// What was looked up before.
    known: HashMap<u64, Vec<Symbol>>,
}

/// An entry of the symbol table.
struct Named {
    address: u64,
    /// How many bytes it has; 0 if nobody has said so.
    size: u64,
    /// As compilers write it.
    name: String,
}

impl Symbols {
    /// No symbols: every name is unknown.
    pub fn none() -> Symbols {
        Symbols {
            debug: None,
            trouble: None,
            functions: Vec::new(),
            statics: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// Reads the executable.
    pub fn open(path: &Path) -> Result<Symbols, Error> {
        let error = |why: String| Error { path: path.to_owned(), why };
        let bytes = Rc::new(read_regular(path, u64::MAX).map_err(|why| error(why.to_string()))?);
        let file = object::File::parse(bytes.as_slice()).map_err(|why| error(why.to_string()))?;
        if !matches!(file.kind(), ObjectKind::Executable | ObjectKind::Dynamic) {
            return Err(error("it is no program that was linked".to_owned()));
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
        let by_address = file.symbol_map();
        let functions = by_address.symbols().iter().map(|found| Named {
            address: found.address(),
            size: found.size(),
            name: found.name().to_owned(),
        });
        let functions = functions.collect();
        let (debug, trouble) = match Debug::load(path, &bytes) {
            Ok(debug) => (Some(debug), None),
            Err(why) => (None, Some(why)),
        };
        Ok(Symbols { debug, trouble, functions, statics, known: HashMap::new() })
    }

    /// What keeps the debug information from being used, once it was asked: names are then those of the symbol table, and there are no lines.
    pub fn trouble(&self) -> Option<String> {
        let why = match &self.debug {
            Some(debug) if debug.gave_up() => "to read it takes more than its size can ask for",
            _ => self.trouble.as_deref()?,
        };
        Some(format!("the debug information of the program is damaged ({why}): some places have no lines"))
    }

    /// The functions that the instruction *before* a return address belongs to, the innermost first: the function
    /// whose code it is comes last, those before it were inlined. Never empty.
    pub fn code(&mut self, return_address: u64) -> Vec<Symbol> {
        let address = return_address.saturating_sub(1);
        if let Some(known) = self.known.get(&address) {
            return known.clone();
        }
        let symbols = self.look_up(address);
        self.known.insert(address, symbols.clone());
        symbols
    }

    fn look_up(&self, address: u64) -> Vec<Symbol> {
        let mut symbols = self.debug.as_ref().map_or_else(Vec::new, |debug| debug.functions(address));
        if symbols.is_empty() {
            let function = self.function(address).map_or_else(unknown, demangle);
            symbols.push(Symbol { function, file: None, line: 0, column: 0, inlined: true });
        }
        if let Some(outermost) = symbols.last_mut() {
            outermost.inlined = false;
        }
        symbols
    }

    /// The function that the symbol table has at an address.
    fn function(&self, address: u64) -> Option<&str> {
        let next = self.functions.partition_point(|found| found.address <= address);
        let found = self.functions.get(next.checked_sub(1)?)?;
        (found.size == 0 || address - found.address < found.size).then_some(&*found.name)
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
