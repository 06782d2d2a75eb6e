//! The log of the running strand: which lines it has touched, and which code was the first to.
//!
//! The tables of `layout` say *which* bytes the strand has touched; the log says where to look, and *who* it was. An entry is made when
//! some code touches a line that is new to the strand.
//!
//! Code that walks through memory touches line after line, each the same way. So an entry stands for a stretch of
//! lines: it is made longer as long as the lines follow each other. Loops take turns between several arrays; therefore many latest
//! entries are kept at hand, each at the place that some bits of its code choose.
//!
//! ```text
//!   log     next, end │ latest entries │ … entries …                                 reads and writes have a log each
//!
//!   entry   [ last line + 1 │ lines before it │ code │ caller ]
//!                 6                 2            4      4
//!   code    [ low half of the code's address, but its two lowest bits │ 0 │ 1 ]
//! ```
//!
//! # One line, one code
//!
//! Who touched which byte of a line is not known: a line is one run, with the code that came first, and once it is in the log its bits
//! are set without any question. That is enough for the verdict, which depends on bytes, tasks and locks alone. Where places are to
//! be exact (`state::EXACT`), the table of sites has the last code of each line, and the others that come by go to the `journal`.
//!
//! At the end of the strand, the entries give the runs of the access set, and the tables are left empty. A write covers the reads
//! of the same bytes.
//!
//! If the log is full the strand's accesses are delivered, and it begins again: a strand may come in pieces. To
//! keep call stacks (`sites::depth`) the log claims to be full all the time, so that every entry is made here.

use std::ops::Range;

use dagsan_core::contract::{SmallSet, Touched};
use dagsan_core::{AccessKind, Bytes, Location, SiteId, Span};

use crate::journal;
use crate::layout::{self, KEPT, SEEN, WRITTEN};
use crate::outbox::{Outbox, run};
use crate::private::{Private, within};
use crate::session;
use crate::shared;
use crate::sites::{Origin, Sites};
use crate::state::{EXACT, Worker, worker};

/// Lines that follow each other: the last one plus 1, and how many are before it. The assembly in `miss` knows this layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Lines(u64);

const MORE: u32 = 48;
/// What is added to the lines of an entry for one line more.
pub(crate) const ONE_MORE: u64 = 1 << MORE | 1;

impl Lines {
    #[inline]
    pub(crate) fn new(line: u64) -> Lines {
        Lines(line + 1)
    }

    /// Some, and not more than [`LONGEST`].
    fn of(lines: &Range<u64>) -> Lines {
        Lines(lines.end | (lines.end - lines.start - 1) << MORE)
    }

    #[inline]
    pub(crate) fn range(self) -> Range<u64> {
        let end = self.0 & ((1 << MORE) - 1);
        end - (self.0 >> MORE) - 1..end
    }

    /// How many.
    fn count(self) -> u64 {
        (self.0 >> MORE) + 1
    }

    /// Adds a line, if it is the next one and there is room in the number.
    #[inline]
    pub(crate) fn lengthen(&mut self, line: u64) -> bool {
        let follows = self.range().end == line && self.0 >> MORE < 0xffff;
        if follows {
            self.0 += ONE_MORE;
        }
        follows
    }
}

/// One entry. The assembly in `miss` knows this layout.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Entry {
    lines: Lines,
    origin: Origin,
}

/// Of a code in the table of sites: it is not the first that touched the line. Of that of an atomic operation: it stores another value.
pub(crate) const LATER: u32 = 2;
/// Of a code: set in every code, so that none is 0.
const CODE: u32 = 1;

/// The code at an address.
pub(crate) fn code(address: usize) -> u32 {
    address as u32 & !(LATER | CODE) | CODE
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

impl Log {
    pub(crate) const NONE: Log = Log {
        next: std::ptr::null_mut(),
        end: std::ptr::null_mut(),
        latest: [std::ptr::without_provenance_mut(usize::MAX); LATEST],
        start: std::ptr::null_mut(),
    };

    /// The log of a kind, of the worker that this thread runs for.
    #[inline]
    fn of(kind: AccessKind) -> *mut Log {
        worker().logs[slot(kind)].get()
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

    /// Has the last entry stand for one line more, if that is the next line, and the code the same.
    fn lengthen(&mut self, line: u64, origin: Origin) -> bool {
        if self.is_empty() {
            return false;
        }
        // SAFETY: there is an entry.
        let last = unsafe { &mut *self.next.sub(1) };
        last.origin == origin && last.lines.lengthen(line)
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

/// Makes the logs of a worker, for which nobody runs yet.
pub(crate) fn reserve(worker: &Worker, stacks: bool) -> std::io::Result<()> {
    // SAFETY: nobody else uses them.
    worker.logs.iter().try_for_each(|log| unsafe { (*log.get()).reserve(stacks) })
}

/// An access that `miss` could not enter in the log. `kind` is 0 for a read, 1 for a write.
pub(crate) extern "C" fn record_miss(line: u64, mask: u64, kind: u32, code: u32, frame: usize) {
    let kind = if kind == 0 { AccessKind::Read } else { AccessKind::Write };
    session::with(|session| {
        let origin = session.origin(code, frame);
        record(session, Location { line, mask }, kind, origin);
    });
}

/// The table of a kind of access.
#[inline(always)]
pub(crate) fn table(kind: AccessKind) -> usize {
    match kind {
        AccessKind::Read => SEEN,
        AccessKind::Write => WRITTEN,
    }
}

/// Sets the bits of bytes in a line that is in the log.
///
/// # Safety
///
/// The thread runs the tasks, and nobody else is in the session.
#[inline(always)]
pub(crate) unsafe fn set(at: Location, kind: AccessKind) {
    // SAFETY: the tables cover all addresses of the program, and only the thread that runs the tasks writes them.
    unsafe {
        *layout::mask(table(kind), at.line) |= at.mask;
        if kind == AccessKind::Write {
            *layout::mask(SEEN, at.line) |= at.mask;
        }
    }
}

/// Records an access to bytes of one line.
fn record(session: &mut session::Session, at: Location, kind: AccessKind, origin: Origin) {
    // SAFETY: `session::with` is for the thread that runs the tasks, the only one that writes the tables and the
    // logs, and hooks do not run while it is inside.
    unsafe {
        let known = *layout::mask(table(kind), at.line);
        if known & at.mask == at.mask || known == 0 && shared::is_kept(at.line, at.mask, kind) {
            return;
        }
        if EXACT.get() {
            record_code(session, at.line, kind, origin, known);
        } else if known == 0 {
            enter(session, at.line, kind, origin);
        }
        set(at, kind);
    }
}

/// An entry for a line that is not in the log.
fn enter(session: &mut session::Session, line: u64, kind: AccessKind, origin: Origin) {
    // SAFETY: as in `record`.
    unsafe {
        let log = Log::of(kind);
        if (*log).is_full() {
            session.deliver();
        }
        if !(*log).lengthen(line, origin) {
            (*log).push(Entry { lines: Lines::new(line), origin });
        }
    }
}

/// The same where each code is wanted. `known` are the bytes of the line that the strand knows.
fn record_code(session: &mut session::Session, line: u64, kind: AccessKind, origin: Origin, known: u64) {
    // SAFETY: as in `record`.
    let code = unsafe { &mut (*layout::sites(line))[slot(kind)] };
    if *code == 0 {
        enter(session, line, kind, origin);
        *code = origin.code;
    } else if *code & !LATER != origin.code {
        session.sites.journal.push(journal::Entry::new(line, known, kind, origin));
        *code = origin.code | LATER;
    }
}

fn slot(kind: AccessKind) -> usize {
    match kind {
        AccessKind::Read => 0,
        AccessKind::Write => 1,
    }
}

/// Records an access to bytes of any lines.
pub(crate) fn record_bytes(session: &mut session::Session, bytes: Bytes, kind: AccessKind, origin: Origin) {
    if EXACT.get() {
        let lines = bytes.lines().map(|(line, mask)| Location { line, mask });
        return lines.for_each(|at| record(session, at, kind, origin));
    }
    let [first, last] = [bytes.start(), bytes.end() - 1].map(|address| address >> layout::LINE_SHIFT);
    for first in (first..=last).step_by(LONGEST) {
        let last = last.min(first + LONGEST as u64 - 1);
        record_stretch(session, first..last + 1, bytes, kind, origin);
    }
}

/// An entry has so many lines at most.
const LONGEST: usize = 1 << 16;

/// Records an access to those of the bytes that are in these lines. If some of them are new to the strand, all are one entry: of a line that
/// has another one, that is the first, and nothing is left for the second.
fn record_stretch(
    session: &mut session::Session,
    lines: Range<u64>,
    bytes: Bytes,
    kind: AccessKind,
    origin: Origin,
) {
    // SAFETY: as in `record`.
    unsafe {
        if words(table(kind), &lines).contains(&0) {
            let log = Log::of(kind);
            if (*log).is_full() {
                session.deliver();
            }
            // Narrow pieces may be a line each.
            let is_one = lines.end - lines.start == 1;
            if !is_one || !(*log).lengthen(lines.start, origin) {
                (*log).push(Entry { lines: Lines::of(&lines), origin });
            }
        }
        let whole = bytes.start().next_multiple_of(64) >> 6..bytes.end() >> 6;
        let whole = whole.start.max(lines.start)..whole.end.min(lines.end);
        if !whole.is_empty() {
            words(SEEN, &whole).fill(u64::MAX);
            if kind == AccessKind::Write {
                words(WRITTEN, &whole).fill(u64::MAX);
            }
        }
        let range = bytes.start() as usize..bytes.end() as usize;
        for line in [lines.start, lines.end - 1] {
            set(Location { line, mask: within(&range, line) }, kind);
        }
    }
}

/// The words of a table for some lines.
///
/// # Safety
///
/// The thread runs the tasks and is in the session, and nobody else uses these words meanwhile.
unsafe fn words<'a>(table: usize, lines: &Range<u64>) -> &'a mut [u64] {
    // SAFETY: the tables cover all addresses of the program; the caller's promise.
    unsafe {
        std::slice::from_raw_parts_mut(layout::mask(table, lines.start), (lines.end - lines.start) as usize)
    }
}

/// Nothing recorded?
#[inline]
pub(crate) fn is_empty() -> bool {
    // SAFETY: as in `record`.
    unsafe { (*Log::of(AccessKind::Read)).is_empty() && (*Log::of(AccessKind::Write)).is_empty() }
}

/// Has the running strand touched the line?
pub(crate) fn has(line: u64) -> bool {
    // SAFETY: as in `record`.
    unsafe { *layout::mask(SEEN, line) != 0 }
}

/// Are there so few lines that they are worth no strand of their own?
pub(crate) fn is_small() -> bool {
    const ENTRIES: usize = 64;
    // SAFETY: as in `record`.
    let logs = unsafe { [&*Log::of(AccessKind::Read), &*Log::of(AccessKind::Write)] };
    let few = |log: &Log| {
        let entries = log.entries();
        entries.len() <= ENTRIES
            && entries.iter().map(|entry| entry.lines.count()).sum::<u64>() <= ENTRIES as u64
    };
    logs.into_iter().all(few)
}

/// Does this hold for all lines that were recorded?
#[inline]
pub(crate) fn all_lines(holds: impl Fn(u64) -> bool) -> bool {
    // SAFETY: as in `record`.
    let logs = unsafe { [&*Log::of(AccessKind::Read), &*Log::of(AccessKind::Write)] };
    logs.into_iter().flat_map(Log::entries).all(|entry| entry.lines.range().all(&holds))
}

/// Takes what was recorded, of which [`is_small`] says that it is little, into a set, without what is private. A line that was read and
/// written has one site, as exact places are not asked for. Tables and logs are empty afterwards.
#[inline]
pub(crate) fn take_small(sites: &mut Sites, set: &mut SmallSet, private: &Private) {
    for kind in [AccessKind::Read, AccessKind::Write] {
        for entry in take_entries(kind) {
            let mut numbers = Numbers::default();
            for line in entry.lines.range() {
                // Its own frames are most of what a short strand touches.
                if private.has_frames_only(line) && shared::drop_unkept(line) {
                    continue;
                }
                let (seen, written) = shared::end(line);
                let others = !private.of(line);
                let (read, written) = (seen & others, written & others);
                // Of a line that was also read, and is in the set, nothing is left.
                if read != 0 {
                    let site = numbers.number(entry.origin, false, sites);
                    set.push(line, Touched { read, written, sites: [site; 2] });
                }
            }
        }
    }
}

/// Takes what was recorded to `outbox`, without the bytes that `private` picks of a line, and without reads for which others stand, if
/// `shared` says that there are any. Tables and logs are empty afterwards, but for these. If a line was read and written, both come
/// together, the write first.
pub(crate) fn take<F: FnMut(&[Span])>(
    sites: &mut Sites,
    outbox: &mut Outbox<F>,
    private: &Private,
    shared: bool,
) {
    let exact = EXACT.get();
    // Lines that were read and written: until the write comes, the site of the read waits in the table of sites.
    let mut wait = false;
    // SAFETY: as in `record`.
    unsafe {
        // Without an entry in this log nothing is written: its table need not be in the cache.
        let writes = !(*Log::of(AccessKind::Write)).is_empty();
        let entries = take_entries(AccessKind::Read);
        for (number, entry) in entries.iter().enumerate() {
            expect(entries.get(number + AHEAD), writes);
            let mut numbers = Numbers::default();
            let Range { start: mut line, end } = entry.lines.range();
            while line < end {
                let seen = *layout::mask(SEEN, line);
                let written = if writes { *layout::mask(WRITTEN, line) } else { 0 };
                let code = &raw mut (*layout::sites(line))[slot(AccessKind::Read)];
                let site = numbers.number(entry.origin, exact && *code & LATER != 0, sites);
                if written != 0 {
                    if exact || *code == 0 {
                        *code = site.number();
                    }
                    wait = true;
                    line += 1;
                    continue;
                }
                let kept = if shared { shared::kept(line) } else { 0 };
                let mut rest = line..line + 1;
                if exact {
                    *code = 0;
                } else if kept == 0 {
                    rest.end = private.border(line, end);
                }
                let more = alike(&rest, [seen, 0], shared);
                outbox.push_span(run(line, seen & !kept & !private.of(line), AccessKind::Read, site), more);
                rest.end = line + u64::from(more) + 1;
                words(SEEN, &rest).fill(if kept == u64::MAX { u64::MAX } else { 0 });
                line = rest.end;
            }
        }
        let entries = take_entries(AccessKind::Write);
        for (number, entry) in entries.iter().enumerate() {
            expect(entries.get(number + AHEAD), true);
            let mut numbers = Numbers::default();
            let Range { start: mut line, end } = entry.lines.range();
            while line < end {
                let (seen, written) = (*layout::mask(SEEN, line), *layout::mask(WRITTEN, line));
                let codes = layout::sites(line);
                let site = numbers.number(entry.origin, exact && (*codes)[1] & LATER != 0, sites);
                let mut rest = line..line + 1;
                let mut read_at = site;
                if wait || exact {
                    read_at = SiteId::new((*codes)[0]).filter(|&read| read != UNKNOWN).unwrap_or(site);
                    *codes = [0, 0];
                } else if seen == written {
                    rest.end = private.border(line, end);
                }
                let (more, others) = (alike(&rest, [seen, written], shared), !private.of(line));
                let own = if shared && more == 0 { shared::end(line).0 } else { seen };
                outbox.push_span(run(line, written & others, AccessKind::Write, site), more);
                outbox.push(run(line, own & !written & others, AccessKind::Read, read_at));
                rest.end = line + u64::from(more) + 1;
                if more > 0 || !shared {
                    words(SEEN, &rest).fill(0);
                    words(WRITTEN, &rest).fill(0);
                }
                line = rest.end;
            }
        }
    }
}

/// So many entries before the tables are read, they are asked for.
const AHEAD: usize = 8;

/// The tables will soon be read where this entry begins; that of what is written if there are `writes`.
#[inline]
fn expect(entry: Option<&Entry>, writes: bool) {
    if let Some(entry) = entry {
        let line = entry.lines.range().start;
        fetch(layout::mask(SEEN, line));
        if writes {
            fetch(layout::mask(WRITTEN, line));
        }
    }
}

/// Has the processor fetch a word, without waiting for it.
#[inline]
fn fetch(word: *const u64) {
    // SAFETY: a hint, for whatever address.
    unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(word.cast()) };
}

/// Takes what was recorded of these bytes, of which nothing is kept. Their lines stay in the log.
pub(crate) fn take_bytes(bytes: Bytes, private: &Private, into: &mut Vec<Span>) {
    for (line, mask) in bytes.lines() {
        // SAFETY: as in `record`.
        let (seen, written) = unsafe { (&mut *layout::mask(SEEN, line), &mut *layout::mask(WRITTEN, line)) };
        if *seen & mask != 0 {
            let own = mask & !private.of(line);
            for (mask, kind) in
                [(*written & own, AccessKind::Write), (*seen & !*written & own, AccessKind::Read)]
            {
                if mask != 0 {
                    into.push(Span { first: run(line, mask, kind, UNKNOWN), more: 0 });
                }
            }
            (*seen, *written) = (*seen & !mask, *written & !mask);
        }
    }
}

/// The bytes, of which nothing is kept, are other memory: what was recorded of them has nothing to do with what comes.
pub(crate) fn forget_bytes(bytes: Bytes) {
    for (line, mask) in bytes.lines() {
        // SAFETY: as in `record`.
        let (seen, written) = unsafe { (&mut *layout::mask(SEEN, line), &mut *layout::mask(WRITTEN, line)) };
        if *seen & mask != 0 {
            (*seen, *written) = (*seen & !mask, *written & !mask);
        }
    }
}

/// How many lines after the first have these words in the tables too, if nothing in any of them is kept (which `shared` says may be).
///
/// # Safety
///
/// As for [`words`].
#[inline]
unsafe fn alike(lines: &Range<u64>, [seen, written]: [u64; 2], shared: bool) -> u32 {
    if lines.end - lines.start == 1 {
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let lines = lines.start..if shared { lines.start + unkept(lines) } else { lines.end };
        let words = words(SEEN, &lines).iter().zip(words(WRITTEN, &lines)).skip(1);
        words.take_while(|(a, b)| (**a, **b) == (seen, written)).count() as u32
    }
}

/// How many lines there are before the first in which something is kept.
///
/// # Safety
///
/// As for [`words`].
unsafe fn unkept(lines: &Range<u64>) -> u64 {
    // SAFETY: the caller's promise.
    let kept = unsafe { words(KEPT, lines) };
    kept.iter().position(|&kept| kept != 0).unwrap_or(kept.len()) as u64
}

/// The entries of a log, which is empty then.
fn take_entries(kind: AccessKind) -> &'static [Entry] {
    // SAFETY: as in `record`. Nothing is recorded while the entries are in use, as that is while the session is.
    unsafe {
        let log = &mut *Log::of(kind);
        let entries = log.entries();
        log.clear();
        entries
    }
}

/// The numbers of an entry's site: it alone, and one of several.
#[derive(Default)]
struct Numbers([Option<SiteId>; 2]);

impl Numbers {
    #[inline]
    fn number(&mut self, origin: Origin, several: bool, sites: &mut Sites) -> SiteId {
        *self.0[usize::from(several)].get_or_insert_with(|| sites.number(origin, several))
    }
}

/// A site that stands for an access whose code is not known.
pub(crate) const UNKNOWN: SiteId = match SiteId::new(0) {
    Some(site) => site,
    None => unreachable!(),
};
