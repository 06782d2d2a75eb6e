//! The log of the running strand: which code touched which lines, in the order of its accesses.
//!
//! The tables of `layout` say *which* bytes the strand has touched; the log says *who* did. An entry is made when some
//! code touches new bytes of a line, and other code, or none, was the last to do so. It keeps the line's mask as it
//! was then: the bytes that belong to an entry are those that were set since, up to the next entry of the line.
//!
//! Code that walks through memory touches line after line, each the same way. So an entry stands for a stretch of
//! lines: it is made longer as long as the lines follow each other. A loop that the compiler has unrolled consists of several
//! such codes, which take turns, and may come by each line more than once; therefore many latest entries are kept at
//! hand, each at the place that some bits of its code and mask choose.
//!
//! ```text
//!   log     next, end │ latest entries │ … entries …                                 reads and writes have a log each
//!
//!   entry   [ last line + 1 │ lines before it │ mask before │ code │ caller ]
//!                 6                 2                8          4      4
//!   code    [ low half of the code's address, but its two lowest bits │ not the line's first? │ 1 ]
//! ```
//!
//! The table of sites has the last code of each line: so it also tells whether a line was touched by several. Which entry
//! of a line came first does not matter otherwise, as its masks only grow.
//!
//! At the end of the strand, the first entry of each line gives the runs of the access set, and the tables are left empty.
//! A line is one run, with the code of that entry; the other entries go to the `journal`. A write covers the reads of the
//! same bytes.
//!
//! If the log is full the strand's accesses are delivered, and it begins again: a strand may come in pieces. To
//! keep call stacks (`sites::depth`) the log claims to be full all the time, so that every entry is made here.

use dagsan_core::contract::MOST;
use dagsan_core::{AccessKind, Bytes, Location, Run, SiteId, Span};

use crate::layout::{self, SEEN, WRITTEN};
use crate::session;
use crate::sites::{Origin, Sites};

/// One entry. The assembly in `miss` knows this layout.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Entry {
    /// See the module's documentation.
    lines: u64,
    /// The bytes of each line that the strand knew.
    pub(crate) before: u64,
    origin: Origin,
}

const MORE: u32 = 48;
/// What is added to the lines of an entry for one line more.
pub(crate) const ONE_MORE: u64 = 1 << MORE | 1;

/// Of a code: it is not the first that touched the line. Of that of an atomic operation: it stores another value.
pub(crate) const LATER: u32 = 2;
/// Of a code: set in every code, so that none is 0; of one in the journal: is it a write?
const CODE: u32 = 1;

/// The code at an address.
pub(crate) fn code(address: usize) -> u32 {
    address as u32 & !(LATER | CODE) | CODE
}

impl Entry {
    #[inline]
    pub(crate) fn new(line: u64, first: bool, before: u64, origin: Origin) -> Entry {
        let later = if first { 0 } else { LATER };
        Entry { lines: line + 1, before, origin: Origin { code: origin.code | later, ..origin } }
    }

    /// The lines it stands for.
    #[inline]
    pub(crate) fn lines(&self) -> std::ops::Range<u64> {
        let end = self.lines & ((1 << MORE) - 1);
        end - (self.lines >> MORE) - 1..end
    }

    /// Is it the first of its lines?
    #[inline]
    fn is_first(&self) -> bool {
        self.origin.code & LATER == 0
    }

    /// Who it was.
    #[inline]
    pub(crate) fn origin(&self) -> Origin {
        Origin { code: self.origin.code & !LATER | CODE, ..self.origin }
    }

    /// The same for the journal, which has reads and writes.
    #[inline]
    pub(crate) fn of_kind(mut self, kind: AccessKind) -> Entry {
        self.origin.code = self.origin.code & !CODE | u32::from(kind == AccessKind::Write);
        self
    }

    pub(crate) fn kind(&self) -> AccessKind {
        if self.origin.code & CODE == 0 { AccessKind::Read } else { AccessKind::Write }
    }
}

/// So many entries before the strand is delivered in pieces.
const CAPACITY: usize = 1 << 20;

/// So many latest entries are at hand: for the codes of a loop of 1 KiB, as each is longer than 16 bytes.
pub(crate) const LATEST: usize = 64;

/// A log: where the next entry goes, where there is room no more, the latest entries, and where the log starts. The
/// assembly in `miss` knows the first three. A latest entry at or after the next one was of an earlier strand.
#[repr(C)]
pub(crate) struct Log {
    next: *mut Entry,
    end: *mut Entry,
    latest: [*mut Entry; LATEST],
    start: *mut Entry,
}

/// The log of reads.
pub(crate) static mut READS: Log = Log::NONE;
/// The log of writes.
pub(crate) static mut WRITES: Log = Log::NONE;

impl Log {
    const NONE: Log = Log {
        next: std::ptr::null_mut(),
        end: std::ptr::null_mut(),
        latest: [std::ptr::without_provenance_mut(usize::MAX); LATEST],
        start: std::ptr::null_mut(),
    };

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

    /// Has the last entry stand for one line more, if that is the next line, and new, and the code the same.
    fn lengthen(&mut self, line: u64, origin: Origin) -> bool {
        if self.is_empty() {
            return false;
        }
        // SAFETY: there is an entry.
        let last = unsafe { &mut *self.next.sub(1) };
        let follows = last.origin == origin && last.lines().end == line && last.lines >> MORE < 0xffff;
        if follows {
            last.lines += ONE_MORE;
        }
        follows
    }

    /// All entries.
    fn entries(&self) -> &'static [Entry] {
        // SAFETY: entries from `start` to `next` have been written, and are not written again before `clear`.
        unsafe { std::slice::from_raw_parts(self.start, self.next.offset_from_unsigned(self.start)) }
    }

    fn clear(&mut self) {
        self.next = self.start;
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

/// An access that `miss` could not enter in the log. `kind` is 0 for a read, 1 for a write; `bytes` has bit 0 for that at
/// `address`; what is beyond its line does not count.
pub(crate) extern "C" fn record_miss(address: usize, bytes: u64, kind: u32, code: u32, frame: usize) {
    let kind = if kind == 0 { AccessKind::Read } else { AccessKind::Write };
    let at = Location { line: address as u64 >> layout::LINE_SHIFT, mask: bytes << (address & 63) };
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
        if (*layout::sites(line))[slot] & !LATER != origin.code {
            if (*log).is_full() {
                session.deliver();
            }
            let first = (*layout::sites(line))[slot] == 0;
            if !first || !(*log).lengthen(line, origin) {
                (*log).push(Entry::new(line, first, *known, origin));
            }
            (*layout::sites(line))[slot] = if first { origin.code } else { origin.code | LATER };
        }
        *known |= mask;
        *layout::mask(SEEN, line) |= mask;
    }
}

/// Records an access to bytes of any lines. Lines that are new to the strand, one after the other, are one entry.
pub(crate) fn record_bytes(session: &mut session::Session, bytes: Bytes, kind: AccessKind, origin: Origin) {
    let slot = if kind == AccessKind::Read { 0 } else { 1 };
    let log = Log::of(kind);
    // Not in the log yet, which has room for it.
    let mut open: Option<Entry> = None;
    for (line, mask) in bytes.lines() {
        // SAFETY: as in `record`.
        unsafe {
            let code = &raw mut (*layout::sites(line))[slot];
            if *code != 0 {
                open.take().into_iter().for_each(|entry| (*log).push(entry));
                record(session, Location { line, mask }, kind, origin);
                continue;
            }
            match &mut open {
                Some(entry) if entry.lines >> MORE < 0xffff => entry.lines += ONE_MORE,
                _ => {
                    open.take().into_iter().for_each(|entry| (*log).push(entry));
                    if (*log).is_full() {
                        session.deliver();
                    }
                    open = Some(Entry::new(line, true, 0, origin));
                }
            }
            *code = origin.code;
            *layout::mask(SEEN, line) |= mask;
            if kind == AccessKind::Write {
                *layout::mask(WRITTEN, line) |= mask;
            }
        }
    }
    // SAFETY: as in `record`.
    open.into_iter().for_each(|entry| unsafe { (*log).push(entry) });
}

/// Nothing recorded?
#[inline]
pub(crate) fn is_empty() -> bool {
    // SAFETY: as in `record`.
    unsafe { (*Log::of(AccessKind::Read)).is_empty() && (*Log::of(AccessKind::Write)).is_empty() }
}

/// Are there so few lines that a set of a tiny task has room for them?
pub(crate) fn is_small() -> bool {
    const ENTRIES: usize = MOST / 4;
    // SAFETY: as in `record`.
    let logs = unsafe { [&*Log::of(AccessKind::Read), &*Log::of(AccessKind::Write)] };
    let few = |log: &Log| {
        let entries = log.entries();
        entries.len() <= ENTRIES
            && entries.iter().map(|entry| (entry.lines >> MORE) + 1).sum::<u64>() <= ENTRIES as u64
    };
    logs.into_iter().all(few)
}

/// What is delivered at a time: as much as stays in the processor's first cache.
const PIECE: usize = 512;

/// Spans on their way to the detector.
pub(crate) struct Outbox<F: FnMut(&[Span])> {
    spans: Vec<Span>,
    /// So many go at a time.
    piece: usize,
    deliver: F,
}

impl<F: FnMut(&[Span])> Outbox<F> {
    /// With the room of `spans`, which is empty. What must not be cut goes `whole`.
    pub(crate) fn new(spans: Vec<Span>, whole: bool, deliver: F) -> Outbox<F> {
        Outbox { spans, piece: if whole { usize::MAX } else { PIECE }, deliver }
    }

    #[inline]
    pub(crate) fn push(&mut self, run: Run) {
        if run.at.mask == 0 {
            return;
        }
        if let Some(Span { first, more }) = self.spans.last_mut() {
            let next = Location { line: first.at.line + u64::from(*more) + 1, ..first.at };
            if run == (Run { at: next, ..*first }) {
                *more += 1;
                return;
            }
            // The write of a line and its read stay together.
            if first.at.line != run.at.line && self.spans.len() >= self.piece {
                self.flush();
            }
        }
        self.spans.push(run.into());
    }

    fn flush(&mut self) {
        (self.deliver)(&self.spans);
        self.spans.clear();
    }

    /// Delivers the rest. Returns the room.
    pub(crate) fn close(mut self) -> Vec<Span> {
        if !self.spans.is_empty() {
            self.flush();
        }
        self.spans
    }
}

/// The same access to all of these bytes: a part of a line, whole lines, a part of a line.
pub(crate) fn spans(bytes: Bytes, kind: AccessKind, site: SiteId, into: &mut Vec<Span>) {
    let range = bytes.start() as usize..bytes.end() as usize;
    let [mut line, last] = [bytes.start(), bytes.end()].map(|address| address >> layout::LINE_SHIFT);
    while line <= last {
        let mask = session::within(&range, line);
        // All lines between the first and the last are whole, and perhaps the first.
        let more = if mask == u64::MAX { u32::try_from(last - line - 1).unwrap_or(u32::MAX) } else { 0 };
        if mask != 0 {
            into.push(Span { first: run(line, mask, kind, site), more });
        }
        line += u64::from(more) + 1;
    }
}

/// Takes what was recorded to `outbox`, without the bytes that `drop` picks of a line. Tables and logs are empty
/// afterwards. If a line was read and written, both come together, the write first.
pub(crate) fn take<F: FnMut(&[Span])>(sites: &mut Sites, outbox: &mut Outbox<F>, drop: impl Fn(u64) -> u64) {
    // SAFETY: as in `record`.
    unsafe {
        for entry in take_entries(AccessKind::Read, sites) {
            let mut numbers = Numbers::default();
            for line in entry.lines() {
                let (seen, written) = (layout::mask(SEEN, line), *layout::mask(WRITTEN, line));
                let code = &mut (*layout::sites(line))[0];
                let site = numbers.number(entry.origin(), *code, sites);
                if written != 0 {
                    // The write comes first: until it does, the site waits in the table.
                    *code = site.number();
                    continue;
                }
                outbox.push(run(line, *seen & !drop(line), AccessKind::Read, site));
                (*seen, *code) = (0, 0);
            }
        }
        for entry in take_entries(AccessKind::Write, sites) {
            let mut numbers = Numbers::default();
            for line in entry.lines() {
                let (seen, written) = (layout::mask(SEEN, line), layout::mask(WRITTEN, line));
                let [read, code] = &mut *layout::sites(line);
                let site = numbers.number(entry.origin(), *code, sites);
                let kept = !drop(line);
                outbox.push(run(line, *written & kept, AccessKind::Write, site));
                let read_at = SiteId::new(*read).unwrap_or(UNKNOWN);
                outbox.push(run(line, *seen & !*written & kept, AccessKind::Read, read_at));
                (*seen, *written) = (0, 0);
                (*read, *code) = (0, 0);
            }
        }
    }
}

/// The first entries of all lines. The others have gone to the journal, and the log is empty.
fn take_entries(kind: AccessKind, sites: &mut Sites) -> impl Iterator<Item = &'static Entry> + use<> {
    // SAFETY: as in `record`. Nothing is recorded while the entries are in use, as that is while the session is.
    let entries = unsafe {
        let log = &mut *Log::of(kind);
        let entries = log.entries();
        log.clear();
        entries
    };
    for later in entries.iter().filter(|entry| !entry.is_first()) {
        sites.journal.push(later.of_kind(kind));
    }
    entries.iter().filter(|entry| entry.is_first())
}

/// The numbers of an entry's site: it alone, and one of several.
#[derive(Default)]
struct Numbers([Option<SiteId>; 2]);

impl Numbers {
    /// For a line that `code` was the last to touch.
    #[inline]
    fn number(&mut self, origin: Origin, code: u32, sites: &mut Sites) -> SiteId {
        let several = code & LATER != 0;
        *self.0[usize::from(several)].get_or_insert_with(|| sites.number(origin, several))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_three_spans_at_most() {
        let of = |start: u64, len: u64| {
            let mut into = Vec::new();
            spans(Bytes::new(start, len).unwrap(), AccessKind::Write, UNKNOWN, &mut into);
            into
        };
        for start in [0, 1, 63, 64, 100, 128] {
            for len in [1, 2, 27, 28, 29, 63, 64, 65, 128, 129, 1000] {
                let spans = of(start, len);
                assert!(spans.len() <= 3, "{spans:?}");
                let lines = spans.iter().flat_map(|span| {
                    let Location { line, mask } = span.first.at;
                    (line..=line + u64::from(span.more)).map(move |line| (line, mask))
                });
                let expected: Vec<(u64, u64)> = Bytes::new(start, len).unwrap().lines().collect();
                assert_eq!(lines.collect::<Vec<_>>(), expected, "{start} {len}");
            }
        }
    }
}
