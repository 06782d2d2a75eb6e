//! The log of the running strand: which code touched which line first, in the order of its accesses.
//!
//! The tables of `layout` say *which* bytes the strand has touched; the log says *who* did. An entry is made when some
//! code touches new bytes of a line, and other code, or none, was the last to do so. It keeps the line's mask as it
//! was then. So the bytes that belong to an entry are those that were set since, up to the next entry of the line:
//!
//! ```text
//!   entry  [ line, is it the line's first? | mask before | code, caller ]           reads and writes have a log each
//!              7              1                   8            4 + 4
//! ```
//!
//! Read backwards, the log gives the runs of the access set and leaves the tables empty, in one pass. A line is one run,
//! with the code of its first entry; if it has more, they go to the `journal`. A write covers the reads of the same
//! bytes.
//!
//! If the log is full the strand's accesses are delivered, and it begins again: a strand may come in pieces. To
//! keep whole call stacks (`stacks=1`) the log claims to be full all the time, so that every entry is made here.

use dagsan_core::{AccessKind, Location, Run, SiteId};

use crate::layout::{self, SEEN, WRITTEN};
use crate::session;
use crate::sites::{Origin, Sites};

/// One entry. The assembly in `miss` knows this layout.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Entry {
    /// The number of the line, and flags in the highest byte.
    line: u64,
    /// The bytes of the line that the strand knew.
    pub(crate) before: u64,
    pub(crate) origin: Origin,
}

/// There is an earlier entry of the line.
const LATER: u64 = 1 << 56;
/// In the journal: a write.
const WRITE: u64 = 1 << 57;

impl Entry {
    #[inline]
    pub(crate) fn new(line: u64, kind: AccessKind, first: bool, before: u64, origin: Origin) -> Entry {
        let later = if first { 0 } else { LATER };
        let write = if kind == AccessKind::Write { WRITE } else { 0 };
        Entry { line: line | later | write, before, origin }
    }

    #[inline]
    pub(crate) fn line(&self) -> u64 {
        self.line & (LATER - 1)
    }

    /// Is it the first of its line?
    #[inline]
    pub(crate) fn is_first(&self) -> bool {
        self.line & LATER == 0
    }

    pub(crate) fn kind(&self) -> AccessKind {
        if self.line & WRITE == 0 { AccessKind::Read } else { AccessKind::Write }
    }
}

/// So many entries before the strand is delivered in pieces: lines of 64 MiB.
const CAPACITY: usize = 1 << 20;

/// A log: where the next entry goes, where there is room no more, and where it starts. The assembly in `miss` knows
/// the first two.
#[repr(C)]
pub(crate) struct Log {
    next: *mut Entry,
    end: *mut Entry,
    start: *mut Entry,
}

/// The log of reads.
pub(crate) static mut READS: Log = Log::NONE;
/// The log of writes.
pub(crate) static mut WRITES: Log = Log::NONE;

impl Log {
    const NONE: Log =
        Log { next: std::ptr::null_mut(), end: std::ptr::null_mut(), start: std::ptr::null_mut() };

    /// The log of a kind.
    fn of(kind: AccessKind) -> *mut Log {
        match kind {
            AccessKind::Read => &raw mut READS,
            AccessKind::Write => &raw mut WRITES,
        }
    }

    /// Reserves room. With `stacks`, entries are made by [`record`] only.
    fn reserve(&mut self, stacks: bool) -> std::io::Result<()> {
        let (access, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        let length = CAPACITY * size_of::<Entry>();
        // SAFETY: a new mapping.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        self.start = at.cast();
        self.next = self.start;
        self.end = if stacks { self.start } else { self.start.wrapping_add(CAPACITY) };
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.next == self.start.wrapping_add(CAPACITY)
    }

    fn is_empty(&self) -> bool {
        self.next == self.start
    }

    fn push(&mut self, entry: Entry) {
        debug_assert!(!self.is_full());
        // SAFETY: there is room, and nobody else uses it: see `record`.
        unsafe {
            self.next.write(entry);
            self.next = self.next.add(1);
        }
    }

    fn pop(&mut self) -> Option<Entry> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: entries from `start` to `next` have been written.
        unsafe {
            self.next = self.next.sub(1);
            Some(self.next.read())
        }
    }
}

/// Makes the logs. To be called once, before the first access is recorded.
pub(crate) fn reserve(stacks: bool) -> std::io::Result<()> {
    // SAFETY: no other thread exists yet, and no hook has been called that is not inactive.
    unsafe {
        (*Log::of(AccessKind::Read)).reserve(stacks)?;
        (*Log::of(AccessKind::Write)).reserve(stacks)
    }
}

/// An access that `miss` could not enter in the log. `kind` is 0 for a read, 1 for a write; `bytes` has bit 0 for the
/// first of the eight bytes that `address` is in.
pub(crate) extern "C" fn record_miss(address: usize, bytes: u32, kind: u32, code: u32, frame: usize) {
    let kind = if kind == 0 { AccessKind::Read } else { AccessKind::Write };
    let at = Location {
        line: address as u64 >> layout::LINE_SHIFT,
        mask: u64::from(bytes) << (address & 63 & !7),
    };
    session::with(|session| {
        let origin = session.origin(code, frame);
        record(session, at, kind, origin);
    });
}

/// Records an access to bytes of one line.
pub(crate) fn record(session: &mut session::Session, at: Location, kind: AccessKind, origin: Origin) {
    let Location { line, mask } = at;
    let (table, slot) = match kind {
        AccessKind::Read => (SEEN, 0),
        AccessKind::Write => (WRITTEN, 1),
    };
    // SAFETY: `session::with` is for the thread that runs the tasks, the only one that writes the tables and the
    // logs, and hooks do not run while it is inside.
    unsafe {
        let known = layout::mask(table, line);
        if *known & mask == mask {
            return;
        }
        let log = Log::of(kind);
        if (*layout::sites(line))[slot] != origin.code {
            if (*log).is_full() {
                session.deliver();
            }
            let first = (*layout::sites(line))[slot] == 0;
            (*layout::sites(line))[slot] = origin.code;
            (*log).push(Entry::new(line, AccessKind::Read, first, *known, origin));
        }
        *known |= mask;
        *layout::mask(SEEN, line) |= mask;
    }
}

/// Nothing recorded?
#[inline]
pub(crate) fn is_empty() -> bool {
    // SAFETY: as in `record`.
    unsafe { (*Log::of(AccessKind::Read)).is_empty() && (*Log::of(AccessKind::Write)).is_empty() }
}

/// What stands in the table of sites for a line of which later entries have been taken: no code is even.
const TAKEN: u32 = 2;

/// Moves what was recorded into `runs`, without the bytes that `drop` picks of a line. Tables and logs are empty
/// afterwards. If a line was read and written, both come together, the write first.
pub(crate) fn take(sites: &mut Sites, runs: &mut Vec<Run>, drop: impl Fn(u64) -> u64) {
    // SAFETY: as in `record`.
    unsafe {
        let reads = Log::of(AccessKind::Read);
        while let Some(entry) = (*reads).pop() {
            let line = entry.line();
            let (seen, written) = (layout::mask(SEEN, line), *layout::mask(WRITTEN, line));
            let code = &mut (*layout::sites(line))[0];
            let Some(site) = site(entry, AccessKind::Read, *seen & !written, code, sites) else { continue };
            if written != 0 {
                // The write comes first: until it does, the site waits in the table.
                *code = site.number();
                continue;
            }
            let mask = *seen & !drop(line);
            if mask != 0 {
                runs.push(run(line, mask, AccessKind::Read, site));
            }
            (*seen, *code) = (0, 0);
        }
        let writes = Log::of(AccessKind::Write);
        while let Some(entry) = (*writes).pop() {
            let line = entry.line();
            let (seen, written) = (layout::mask(SEEN, line), layout::mask(WRITTEN, line));
            let [read, code] = &mut *layout::sites(line);
            let Some(site) = site(entry, AccessKind::Write, *written, code, sites) else { continue };
            let kept = !drop(line);
            if *written & kept != 0 {
                runs.push(run(line, *written & kept, AccessKind::Write, site));
            }
            let mask = *seen & !*written & kept;
            if mask != 0 {
                runs.push(run(line, mask, AccessKind::Read, SiteId::new(*read).unwrap_or(UNKNOWN)));
            }
            (*seen, *written) = (0, 0);
            (*read, *code) = (0, 0);
        }
    }
}

/// The site of a line, if the entry is the line's first: until it comes, later ones go to the journal. `all` are the
/// bytes, and `code` is the entry's part of the table of sites.
#[inline(always)]
fn site(entry: Entry, kind: AccessKind, all: u64, code: &mut u32, sites: &mut Sites) -> Option<SiteId> {
    if !entry.is_first() {
        *code = TAKEN;
        sites.journal.push(Entry::new(entry.line(), kind, false, entry.before, entry.origin));
        return None;
    }
    let several = *code == TAKEN;
    if several {
        sites.journal.push(Entry::new(entry.line(), kind, true, all, entry.origin));
    }
    Some(sites.number(entry.origin, several))
}

#[inline]
fn run(line: u64, mask: u64, kind: AccessKind, site: SiteId) -> Run {
    Run { at: Location { line, mask }, kind, site, atomic: false }
}

/// A site that stands for an access whose code is not known.
pub(crate) const UNKNOWN: SiteId = match SiteId::new(0) {
    Some(site) => site,
    None => unreachable!(),
};
