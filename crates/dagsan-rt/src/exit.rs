//! The end of the program: what was found is written down, and a race changes the exit code.
//!
//! Comes last of all that runs at exit. An abort is reported too, a fault (`faults`), and the runtime's own lack of memory.
//!
//! An abort may come in the middle of anything: of the allocator, on a stack that is full, while other threads hold what is
//! needed. So from there on the reporting thread uses memory and a stack of its own (`reserve`), waits for nobody
//! longer than some seconds, and says so if it has to give up.

use std::ffi::{c_int, c_void};
use std::path::PathBuf;

use dagsan_core::graph::{EdgeKind, Neighbourhood, PathStep};
use dagsan_core::{AccessKind, Construct};
use dagsan_findings::{
    Blocked, End, Findings, Kind, Memory, Order, Process, Race, ScheduleDependence, ScheduleDependent, Side,
    Stack, Stats, Task, Threads, Uses, VERSION,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::counts;
use crate::heap::Where;
use crate::races::Place;
use crate::reserve;
use crate::session::{self, Last, Session};
use crate::start;
use crate::state::{Flag, this_thread};
use crate::tasks::Handle;
use crate::threads;
use crate::turns;
use crate::uses::Use;

/// Sees to it that the end will be heard of.
pub fn prepare() -> std::io::Result<()> {
    reserve::prepare()?;
    // SAFETY: plain calls of the C library; the handlers have the right types.
    unsafe {
        on_exit(at_exit, std::ptr::null_mut());
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = at_abort as *const () as usize;
        libc::sigaction(libc::SIGABRT, &raw const action, std::ptr::null_mut());
    }
    Ok(())
}

/// Writes to standard error, past whatever captures or buffers it.
pub fn say(text: &str) {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        // SAFETY: the bytes of a slice.
        let written = unsafe { libc::write(libc::STDERR_FILENO, rest.as_ptr().cast(), rest.len()) };
        match usize::try_from(written) {
            Ok(written) if written > 0 => rest = &rest[written..],
            // Nobody listens.
            _ => return,
        }
    }
}

unsafe extern "C" {
    /// glibc's `atexit` for handlers that want to know the exit code.
    fn on_exit(handler: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

extern "C" fn at_exit(status: c_int, _: *mut c_void) {
    session::in_order();
    if start::is_this_process()
        && let Some(code) = finish_after(End::Exited, Some(status), |_| {})
    {
        // SAFETY: plain calls. Everything else that runs at exit has run: this was registered first.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            libc::_exit(code);
        }
    }
}

/// The program aborts, or has made a fault.
pub extern "C" fn at_abort(signal: c_int) {
    if start::is_this_process() {
        cut_off(Cause::Aborted);
    }
    // SAFETY: plain calls, allowed in a handler. The signal then does what it does.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// The runtime needs memory, and there is none: it says so, reports what it has found, and ends the program.
#[cold]
pub fn out_of_memory() -> ! {
    say("dagsan: out of memory\n");
    let code = cut_off(Cause::OutOfMemory).unwrap_or(1);
    // SAFETY: a plain call.
    unsafe { libc::_exit(code) }
}

/// The threads of these tasks wait for each other, and nobody else is there: it says so, reports what was found, and ends the program.
#[cold]
pub fn deadlock(blocked: Vec<(Handle, &'static str)>) -> ! {
    say("dagsan: deadlock: every thread waits for another\n");
    let code = finish_after(End::Exited, None, |session| {
        let tell = |&(handle, why): &(Handle, &str)| {
            let task = session.tasks.of_handle(handle).0;
            session.found.mention(task, &session.tasks, None);
            Blocked { task, place: None, waits_for: why.to_owned() }
        };
        let blocked = blocked.iter().map(tell).collect();
        session.deadlock.get_or_insert(End::Deadlock(blocked));
    });
    // SAFETY: a plain call.
    unsafe { libc::_exit(code.unwrap_or(DEADLOCK)) }
}

/// The program needs what is not there: it says so, reports what was found, and ends the program.
#[cold]
pub fn refuse(text: &str) -> ! {
    say(&format!("dagsan: {text}\n"));
    let code = finish_after(End::Exited, None, |session| {
        session.stopped.get_or_insert(End::Refused(text.to_owned()));
    });
    // SAFETY: a plain call.
    unsafe { libc::_exit(code.unwrap_or(REFUSED)) }
}

/// The exit code of a program that needs what is not there.
const REFUSED: i32 = 2;

/// The exit code of a program that is ended because of a deadlock.
const DEADLOCK: i32 = 65;

/// Why a program is cut off.
#[derive(Clone, Copy)]
enum Cause {
    Aborted,
    OutOfMemory,
}

/// A report, on its way to the stack that it is made on and back.
struct Report {
    cause: Cause,
    code: Option<i32>,
}

/// Reports with memory and on a stack of its own. The exit code, if it is not to be the program's own.
fn cut_off(cause: Cause) -> Option<i32> {
    match reserve::begin() {
        Ok(()) => {}
        Err(reporter) if reporter == this_thread() => {
            say("dagsan: the report was cut off: not all that was found is told\n");
            return None;
        }
        Err(_) => {
            // Another thread reports, and ends the process when it is done.
            session::be_patient(|| None::<()>);
            return None;
        }
    }
    limit_time();
    let mut report = Report { cause, code: None };
    // SAFETY: this thread has just begun to use the reserve.
    unsafe { reserve::on_stack(report_cut_off, (&raw mut report).cast()) };
    report.code
}

/// So many seconds are enough for a report. An allocator of the program's that was aborted in its middle, and that the
/// runtime allocates with too, may never come back. It waits five seconds for whoever is in the session, and as long for the list of blocks; that is not all the time it has,
/// also on a machine that does much else.
const ENOUGH: u32 = 25;

/// Is there code in the program that was to have hooks, and has none?
static WITHOUT_HOOKS: Flag = Flag::new();

/// There is.
pub fn some_code_has_no_hooks() {
    WITHOUT_HOOKS.set(true);
}

/// Has a thread run several sections of OpenMP, and it is not known where each begins?
static UNTOLD_SECTIONS: Flag = Flag::new();

/// It has.
pub fn sections_are_not_told() {
    UNTOLD_SECTIONS.set(true);
}

/// Has a taskwait joined tasks that a thread has created in a piece of work which any thread may get?
static PIECE_WAITED_FOR: Flag = Flag::new();

/// It has.
pub fn waits_for_tasks_of_piece() {
    PIECE_WAITED_FOR.set(true);
}

/// Has a program of OpenMP cancelled something?
static CANCELLED: Flag = Flag::new();

/// It has.
pub fn cancels() {
    CANCELLED.set(true);
}

/// Ends the process if the report does not.
fn limit_time() {
    // SAFETY: plain calls; the handler has the right type.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = takes_too_long as *const () as usize;
        libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut());
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut signals, libc::SIGALRM);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const signals, std::ptr::null_mut());
        libc::alarm(ENOUGH);
    }
}

extern "C" fn takes_too_long(_: c_int) {
    say("dagsan: the report does not come to its end: what was found is not reported\n");
    // SAFETY: a plain call.
    unsafe { libc::_exit(1) }
}

extern "C" fn report_cut_off(report: *mut c_void) {
    // SAFETY: that of `cut_off`, which waits for this to return.
    let report = unsafe { &mut *report.cast::<Report>() };
    report.code = finish(match report.cause {
        Cause::Aborted => End::Aborted,
        Cause::OutOfMemory => End::CutShort("the runtime got no more memory; use a smaller input".to_owned()),
    });
}

/// Writes the findings. The exit code, if it is not to be the program's own.
fn finish(end: End) -> Option<i32> {
    finish_after(end, None, |_| {})
}

/// The same after something was done to a session that is whole; with the code that the program asked for.
fn finish_after(end: End, asked: Option<c_int>, first: impl FnOnce(&mut Session)) -> Option<i32> {
    let (session, memory) = match session::last() {
        Last::Whole(session) => {
            first(session);
            // What the running strand has done takes memory to find out about.
            if !matches!(end, End::CutShort(_)) {
                session.tell();
                session.deliver();
                if let Err(error) = session.stream.consumer_mut().finish() {
                    session.stop(&error);
                }
                session.delivered(Ok(()));
                session.mention_around();
            }
            let memory = session.stream.consumer().memory();
            (&*session, memory)
        }
        // How much memory there is would be asked of parts that may be locked.
        Last::Interrupted(session) => (session, (0, 0)),
        Last::Busy => {
            say(
                "dagsan: the thread that runs the tasks does not leave the runtime: what was found is not reported\n",
            );
            return None;
        }
    };
    let findings = Findings { code: asked, ..findings(session, end, memory) };
    let code = (!findings.races.is_empty()).then_some(session.options.exitcode);
    tell(session, &findings);
    code
}

/// Writes the findings where they are waited for, or, if nobody waits and there is something to tell, to a file of
/// their own.
fn tell(session: &Session, findings: &Findings) {
    let wanted = &session.options.awaited;
    let path = match wanted.as_ref().or(session.options.findings.as_ref()) {
        Some(path) => path.clone(),
        None if findings.races.is_empty() && matches!(findings.end, End::Exited) => return,
        None => PathBuf::from(format!("dagsan.{}.json", findings.process.id)),
    };
    match findings.write(&path) {
        Ok(()) if wanted.is_some() => {}
        Ok(()) => {
            let found = match findings.races.len() {
                0 => "no race".to_owned(),
                1 => "1 race".to_owned(),
                races => format!("{races} races"),
            };
            say(&format!("dagsan: {found} found; `dagsan report {}` tells more\n", path.display()));
        }
        Err(error) => say(&format!("dagsan: cannot write what was found: {error}\n")),
    }
}

fn findings(session: &Session, end: End, (order_memory, access_memory): (usize, usize)) -> Findings {
    let detector = session.stream.consumer();
    let mut stacks = Stacks::default();
    let mut races = Vec::new();
    for refined in &session.found.races {
        let race = &detector.races()[refined.race];
        let mut side = |access: &dagsan_core::Access, place: Place| Side {
            kind: match access.kind {
                AccessKind::Read => Kind::Read,
                AccessKind::Write if session.sites.is_free(place.site) => Kind::Free,
                AccessKind::Write => Kind::Write,
            },
            atomic: access.atomic,
            locked: access.locked,
            shares_lock: access.shares_lock,
            task: access.task.0,
            stack: stacks.number(session.sites.stack(place.site)),
            nearby: place.nearby,
        };
        let [first, second] = refined.places;
        let (first, second) = (side(&race.first, first), side(&race.second, second));
        let memory = match &refined.memory {
            Where::Known(memory) => memory.clone(),
            Where::Block(block) => Memory::Heap {
                start: block.start as u64,
                size: block.size as u64,
                stack: Some(stacks.number(session.sites.relative(block.frames(), true))),
            },
        };
        let bytes = refined.location.ranges().map(|range| (range.start(), range.len())).collect();
        let graph = detector.around().and_then(|around| around.of(race.first.strand, race.second.strand));
        races.push(Race { bytes, memory, first, second, duplicates: race.duplicates, graph });
    }
    let unchecked = threads::started().filter(|started| started.unchecked() > 0);
    let threads = unchecked.map(|started| Threads {
        stack: stacks.number(session.sites.relative(started.frames(), true)),
        name: None,
        count: started.unchecked(),
    });
    let threads = threads.collect();
    let mut schedule = session.uses.schedule.clone();
    schedule.extend(session.owned.met.iter().map(|&(site, count)| ScheduleDependence {
        what: ScheduleDependent::ThreadLocal,
        place: None,
        stack: Some(stacks.number(session.sites.stack(site))),
        other: None,
        call: None,
        count,
    }));
    let unseen = session.unseen.iter().map(|unseen| dagsan_findings::Unseen {
        what: unseen.what.to_string_lossy().into_owned(),
        stack: stacks.number(session.sites.stack(unseen.site)),
        count: unseen.count,
    });
    let mut unseen: Vec<_> = unseen.collect();
    let of_all = [
        (&WITHOUT_HOOKS, "files that were linked, and not compiled with dagsan"),
        (&PIECE_WAITED_FOR, "what a taskwait orders behind a `single nowait` that another thread has got"),
        (
            &CANCELLED,
            "iterations, sections and tasks that `cancel` has left out, which depends on the schedule",
        ),
        (&UNTOLD_SECTIONS, "where sections begin of which one thread has run several: use more threads"),
    ];
    for (_, what) in of_all.into_iter().filter(|(is_so, _)| is_so.get()) {
        let stack = stacks.number(Stack::default());
        unseen.push(dagsan_findings::Unseen { what: what.to_owned(), stack, count: 1 });
    }
    schedule.extend(meetings(session, &mut stacks));
    let tasks = session.found.tasks.values().map(|task| {
        let call = session.found.calls.get(&task.number);
        let stack = call.map(|&call| stacks.number(session.sites.whole_stack(call)));
        Task { stack, ..task.clone() }
    });
    let tasks = tasks.collect();
    let end = session.stopped.clone().or_else(|| session.deadlock.clone()).unwrap_or(end);
    let ordered = session.options.engine.supports(Construct::Atomic);
    let stats = detector.stats();
    Findings {
        version: VERSION,
        process: process(),
        engine: session.options.engine.name.to_owned(),
        end,
        code: None,
        races,
        dropped_races: detector.dropped_races(),
        tasks,
        stacks: stacks.all,
        uses: Uses {
            atomics: session.uses.atomics && session.sync.acquired() > 0,
            locks: session.uses.locks && !ordered,
            lock_order: session.stream.dependent_sections() > 0
                && detector.acquired().is_none_or(|all| all > session.sync.acquired()),
            unlocked_early: session.stream.structure().unlocked_early(),
            forks: start::forks(),
            turns_lost: turns::lost(),
            odd_sizes_unseen: !cfg!(feature = "pass"),
            unseen,
            schedule,
            ..session.uses.clone()
        },
        threads,
        graphs: detector.around().map_or_else(Vec::new, |around| around.all().map(neighbourhood).collect()),
        stats: Stats {
            tasks: u64::from(session.stream.structure().task_count()) + session.tiny.contracted(),
            strands: stats
                .strands
                .wrapping_add(session.tiny.strands())
                .wrapping_add(session.stream.left_out()),
            checks: stats.checks,
            queries: stats.queries,
            order_memory: order_memory as u64,
            access_memory: access_memory as u64,
            milliseconds: session.started.elapsed().as_millis() as u64,
            marks: counts::counted(),
        },
    }
}

/// What is around a race, in the words of the findings.
fn neighbourhood(around: &Neighbourhood) -> dagsan_findings::Neighbourhood {
    let way = |way: &Vec<PathStep>| way.iter().map(step).collect();
    dagsan_findings::Neighbourhood {
        start: around.start.0,
        down: [way(&around.down[0]), way(&around.down[1])],
        up: around.up.as_ref().map(|up| [way(&up[0]), way(&up[1])]),
    }
}

fn step(step: &PathStep) -> dagsan_findings::PathStep {
    let why = match step.kind {
        EdgeKind::Continue => Order::Continue,
        EdgeKind::Spawn => Order::Spawn,
        EdgeKind::Join => Order::Join,
        EdgeKind::Promise => Order::Promise,
        EdgeKind::Release => Order::Release,
        EdgeKind::Isolation => Order::Isolation,
    };
    dagsan_findings::PathStep { why, task: step.task.0, left_out: step.left_out }
}

/// Atomic operations whose order shows, each place once.
fn meetings(session: &Session, stacks: &mut Stacks) -> Vec<ScheduleDependence> {
    let sites = &session.sites;
    let mut known = FxHashSet::default();
    let mut all = Vec::new();
    for (meeting, &call) in session.stream.consumer().meetings().iter().zip(&session.found.meetings) {
        let (first, second) = (meeting.first, meeting.second);
        for ((site, _), (other, others)) in [(first, second), (second, first)] {
            let what = match (sites.use_of(site), sites.use_of(other)) {
                (Use::Value, _) if others == AccessKind::Write => ScheduleDependent::Value,
                (Use::PerhapsValue, _) if others == AccessKind::Write => ScheduleDependent::PerhapsValue,
                (Use::Sets, Use::Sets) => ScheduleDependent::Store,
                _ => continue,
            };
            if known.insert(site) {
                all.push(ScheduleDependence {
                    what,
                    place: None,
                    stack: Some(stacks.number(sites.stack(site))),
                    other: Some(stacks.number(sites.stack(other))),
                    call: call.map(|call| stacks.number(sites.whole_stack(call))),
                    count: 1,
                });
            }
        }
    }
    all
}

fn process() -> Process {
    Process {
        executable: std::env::current_exe().unwrap_or_default(),
        arguments: std::env::args_os()
            .skip(1)
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect(),
        directory: std::env::current_dir().unwrap_or_default(),
        id: std::process::id(),
    }
}

/// Call stacks, each once.
#[derive(Default)]
struct Stacks {
    all: Vec<Stack>,
    numbers: FxHashMap<Stack, usize>,
}

impl Stacks {
    fn number(&mut self, stack: Stack) -> usize {
        let next = self.all.len();
        let number = *self.numbers.entry(stack.clone()).or_insert(next);
        if number == next {
            self.all.push(stack);
        }
        number
    }
}
