//! Sections of debug information that can be read for so long and no longer.
//!
//! addr2line makes tables of what it reads. In what compilers write, each entry has bytes of its own, so that the tables are as large as the
//! sections, times a constant. A made-up file can have thousands of functions share one long list of ranges, or one table of lines, or one name of a
//! megabyte; the tables are then as large as the product. So each byte that is read counts, however often it is the same one, and where
//! too many have been read all further reads are errors. Time is bounded by the same count.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use addr2line::gimli::{Error, Reader, ReaderOffsetId, Result, RunTimeEndian};

/// Bytes that are compared in the time that it takes to read one.
const COMPARED: usize = 16;

/// How many bytes may still be read, of all sections together.
#[derive(Debug, Default)]
pub struct Meter {
    left: Cell<u64>,
    gave_up: Cell<bool>,
}

impl Meter {
    /// Allows so many more.
    pub fn allow(&self, bytes: u64) {
        self.left.set(self.left.get().saturating_add(bytes));
    }

    /// How many are left.
    #[cfg(test)]
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// Was more asked for than is allowed?
    pub fn gave_up(&self) -> bool {
        self.gave_up.get()
    }

    fn charge(&self, bytes: usize) -> Result<()> {
        match self.left.get().checked_sub(bytes as u64) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.gave_up.set(true);
                Err(Error::Io)
            }
        }
    }
}

/// The bytes of a file, or of a section that was unpacked.
struct Data {
    bytes: Rc<Vec<u8>>,
    endian: RunTimeEndian,
    meter: Rc<Meter>,
}

/// A part of a section.
#[derive(Clone)]
pub struct Metered {
    data: Rc<Data>,
    /// Always a range of the bytes.
    start: usize,
    end: usize,
}

impl Metered {
    /// All of the bytes.
    pub fn new(bytes: Rc<Vec<u8>>, endian: RunTimeEndian, meter: Rc<Meter>) -> Metered {
        let end = bytes.len();
        Metered { data: Rc::new(Data { bytes, endian, meter }), start: 0, end }
    }

    fn bytes(&self) -> &[u8] {
        &self.data.bytes[self.start..self.end]
    }

    fn beyond(&self) -> Error {
        Error::UnexpectedEof(self.offset_id())
    }

    /// The next bytes, which count.
    fn take(&mut self, length: usize) -> Result<&[u8]> {
        self.data.meter.charge(length)?;
        let from = self.start;
        self.skip(length)?;
        Ok(&self.data.bytes[from..self.start])
    }
}

impl fmt::Debug for Metered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

impl Reader for Metered {
    type Endian = RunTimeEndian;
    type Offset = usize;

    fn endian(&self) -> RunTimeEndian {
        self.data.endian
    }

    fn len(&self) -> usize {
        self.end - self.start
    }

    fn empty(&mut self) {
        self.end = self.start;
    }

    fn truncate(&mut self, length: usize) -> Result<()> {
        if length > self.len() {
            return Err(self.beyond());
        }
        self.end = self.start + length;
        Ok(())
    }

    fn offset_from(&self, base: &Metered) -> usize {
        self.start - base.start
    }

    fn offset_id(&self) -> ReaderOffsetId {
        ReaderOffsetId(self.bytes().as_ptr().addr() as u64)
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        let offset = usize::try_from(id.0.checked_sub(self.offset_id().0)?).ok()?;
        (offset <= self.len()).then_some(offset)
    }

    fn find(&self, byte: u8) -> Result<usize> {
        let found = self.bytes().iter().position(|&other| other == byte);
        self.data.meter.charge(found.unwrap_or(self.len()) / COMPARED + 1)?;
        found.ok_or_else(|| self.beyond())
    }

    fn skip(&mut self, length: usize) -> Result<()> {
        if length > self.len() {
            return Err(self.beyond());
        }
        self.start += length;
        Ok(())
    }

    fn split(&mut self, length: usize) -> Result<Metered> {
        let mut head = self.clone();
        head.truncate(length)?;
        self.skip(length)?;
        Ok(head)
    }

    // What is made of names is copied.

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        self.data.meter.charge(self.len())?;
        Ok(self.bytes().into())
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        self.data.meter.charge(self.len())?;
        std::str::from_utf8(self.bytes()).map(Into::into).map_err(|_| Error::BadUtf8)
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        self.data.meter.charge(self.len())?;
        Ok(String::from_utf8_lossy(self.bytes()))
    }

    fn read_slice(&mut self, into: &mut [u8]) -> Result<()> {
        into.copy_from_slice(self.take(into.len())?);
        Ok(())
    }
}
