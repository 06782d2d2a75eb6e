//! Tasks of a team of threads, for a runtime of OpenMP: what `dagsan-omp` calls.
//!
//! ```text
//!   the encountering task   finish ─┬─ implicit task 0 ─┬─ finish end = barrier, finish ─┬─ … ─┬─ finish end
//!                                   ├─ implicit task 1 ─┤                               ├─ … ─┤
//!                                   ├─ piece, explicit …┤                               └─ … ─┘
//! ```
//!
//! Between two barriers each thread of a team runs an implicit task, started by the task that has encountered the region; a barrier is the end of a finish.
//! So regions and barriers are series-parallel, and behind the last barrier nothing is parallel any more. Threads take turns (`turns`), and are hired
//! once: an idle one gets the next task that there is for it.
//!
//! **Pieces.** While a thread runs a piece of work that another one might have got, the running task is another one in the stream, started by the
//! encountering task, too ([`begin_piece`]). Its memory of its own is still that of the thread (`nest`).
//!
//! Everything here is called by a thread that has the turn.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use dagsan_core::contract::Opened;
use dagsan_core::{Bytes, Event, LockId, LockMode, SyncId, TaskId};
use dagsan_findings as findings;

use crate::scopes;
pub use crate::session::Inside;
use crate::session::{self, Session};
pub use crate::start::frame;
use crate::sync::holding::HeldNow;
use crate::tasks::{Handle, Shadow, Stack};
use crate::threads;
pub use crate::turns::Seat;
use crate::{exit, faults, start, sync, turns};

/// A task of a team.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    pub(crate) handle: Handle,
    pub(crate) shadow: Shadow,
    /// The task whose child it is, and the one whose child its shadow is.
    pub(crate) parents: [Option<TaskId>; 2],
}

impl Task {
    /// The main task.
    pub fn main() -> Task {
        Task { handle: Handle::MAIN, shadow: Shadow::Itself, parents: [None; 2] }
    }

    /// What it is in the order of threads, if it has done anything there.
    pub(crate) fn in_order_of_threads(self) -> Option<TaskId> {
        match self.shadow {
            Shadow::Itself => Some(self.handle.task()),
            Shadow::Due(_) => None,
            Shadow::Other(shadow) => Some(shadow),
        }
    }
}

/// What a task is in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What a thread of a team does between two barriers.
    Implicit,
    /// What a `task` construct has created: a child of the running task.
    Explicit,
    /// The same where the running task is several to the program, of which a `taskwait` means one; and if others than the parent wait for it.
    Loose,
    /// What any thread of a team may have got: a `single`, a section, a chunk.
    Piece,
}

impl Kind {
    pub(crate) fn name(self) -> findings::TaskKind {
        match self {
            Kind::Implicit => findings::TaskKind::Team,
            Kind::Explicit | Kind::Loose => findings::TaskKind::Task,
            Kind::Piece => findings::TaskKind::Piece,
        }
    }
}

/// Enters the runtime, if this process is checked; with the turn, if the thread takes turns.
pub fn enter() -> Option<Inside> {
    if !start::is_on() {
        return None;
    }
    let inside = Inside::enter()?;
    while turns::is_seated() && !turns::is_mine_inside(&inside) {
        std::thread::yield_now();
    }
    Some(inside)
}

/// Does something for the program in the middle of the runtime.
pub fn outside<R>(inside: &Inside, action: impl FnOnce() -> R) -> R {
    inside.leave_for(action)
}

/// The running task opens a finish, from a function with this frame. Is the thread checked? Whatever the answer is, [`close`] comes later.
pub fn open(frame: usize) -> bool {
    scopes::open_scope(frame, Opened::Finish);
    let Some(inside) = turns::is_mine().then(Inside::enter).flatten() else { return false };
    let task = session::with_inside(&inside, |session| {
        session.keep();
        session.tasks.handle()
    });
    if let Some(task) = task {
        turns::sit(&inside, task);
    }
    task.is_some()
}

/// Has this thread checked from here on, if it can be: it is about to start tasks outside of any region.
pub fn watch(frame: usize) -> bool {
    if !turns::is_mine() {
        open(frame);
        close(frame);
    }
    turns::is_mine()
}

/// The running task closes its finish: all that was started in it has ended.
pub fn close(frame: usize) {
    scopes::close_scope(frame, Opened::Finish);
}

/// The running task, as others may have to know it that it starts.
pub fn current(inside: &Inside) -> Task {
    let both = |session: &mut Session| {
        session.shadow();
        (session.tasks.handle(), session.tasks.shadow())
    };
    let (handle, shadow) = session::with_inside(inside, both).unwrap_or((Handle::MAIN, Shadow::Itself));
    Task { handle, shadow, parents: [None; 2] }
}

/// The running task, to be resumed.
pub fn running(inside: &Inside) -> Task {
    let handle = session::with_inside(inside, |session| session.tasks.handle()).unwrap_or(Handle::MAIN);
    Task { handle, ..Task::main() }
}

/// The running task starts a child, which runs at once, on the present stack, below the function with this frame that was called to do so.
pub fn start_here(inside: &Inside, frame: usize) {
    session::called_inside(inside, frame, |session| session.start_here(frame));
}

/// The child that was started so ends, and its parent goes on. Whoever joins it has to know this of it, or nothing but that there was such a child ([`Unwaited`]);
/// `by_others` if somebody else than its parent will, too ([`will_be_joined`]).
pub fn end_here(inside: &Inside, parent: Task, by_others: bool, frame: usize) -> Option<Task> {
    session::called_inside(inside, frame, |session| session.end_here(parent, by_others)).flatten()
}

/// Children of which nothing else is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwaited {
    /// Are there some?
    pub own: bool,
    /// Are there some of pieces that are over?
    pub of_pieces: bool,
}

/// The encountering task, which is the running one, closes its finish and opens the next.
pub fn barrier(inside: &Inside, frame: usize) {
    session::called_inside(inside, frame, |session| {
        let task = session.told();
        session.event(Event::FinishEnd { task });
        session.event(Event::FinishBegin { task });
    });
}

/// `parent`, or the running task for it, starts a task, which does not run yet. `call` is the frame of the function that was called to do so.
pub fn start(inside: &Inside, parent: Task, kind: Kind, frame: usize, call: usize) -> Task {
    let started = session::called_inside(inside, frame, |session| session.start(parent, kind, call));
    started.unwrap_or(parent)
}

/// A task that was started runs from here on, on the present stack, below a function with this frame.
pub fn run(inside: &Inside, task: Task, frame: usize) {
    session::called_inside(inside, frame, |session| {
        session.set_stack(task.handle, frame + RETURN);
        session.resume(task.handle);
    });
}

/// The running task, which was started and given to this thread, begins below a function with this frame.
pub fn begin(inside: &Inside, frame: usize) {
    let low = threads::stack().low;
    session::called_inside(inside, frame, |session| {
        let stack = Stack { low, high: frame + RETURN };
        session.begin_on(stack);
        session.tasks.begin_on(stack);
        session.tasks.own_heap(true);
        session.tasks.be_of_team();
    });
}

/// The return address, and the frame pointer of the caller.
pub(crate) const RETURN: usize = 16;

/// The running task goes on, as that of another thread, or of this one.
pub fn resume(inside: &Inside, task: Task) {
    session::with_inside(inside, |session| session.resume(task.handle));
}

/// The running task ends.
pub fn end(inside: &Inside, frame: usize) {
    session::called_inside(inside, frame, |session| {
        for left in session.tiny.take_left(session.tasks.slot()) {
            session.future_drop(Handle::of_future(left));
        }
        session.task_end();
    });
}

/// Nobody knows these frames of the present stack any more: from that of one function up to that of another.
pub fn left(inside: &Inside, low: usize, high: usize) {
    session::with_inside(inside, |session| {
        if session.options.hygiene.stacks && low < high && session.stopped.is_none() {
            session.forget_words(low..high);
            session.erase(low, high - low);
        }
    });
}

/// Somebody else than its parent will join the running task, which must be known to the stream for that.
pub fn will_be_joined(inside: &Inside, frame: usize) {
    session::called_inside(inside, frame, Session::tell);
}

/// The running task comes after one that has ended.
pub fn join(inside: &Inside, task: Task, frame: usize) {
    session::called_inside(inside, frame, |session| session.get(task));
}

/// The running task comes after these, which have ended: all that it has started as children since it did this last, and others.
pub fn join_all(inside: &Inside, tasks: impl Iterator<Item = Task>, others: Unwaited, frame: usize) {
    session::called_inside(inside, frame, |session| session.get_all(tasks, others));
}

/// Nobody will join the task any more.
pub fn forget(inside: &Inside, task: Task) {
    session::with_inside(inside, |session| {
        session.future_drop(task.handle);
        if let Shadow::Other(shadow) = task.shadow {
            session.future_drop(Handle::of_future(shadow));
        }
    });
}

/// What a thread was before it got a piece.
#[derive(Debug)]
pub struct Before {
    pub(crate) task: TaskId,
    pub(crate) shadow: Shadow,
    pub(crate) own_heap: bool,
    /// Where the frames of the piece begin.
    pub(crate) top: usize,
}

/// The running task gets a piece of work of its team, whose encountering task this is. Blocks that are allocated there may be for everybody.
pub fn begin_piece(inside: &Inside, encountering: Task, shares: bool, frame: usize) -> Option<Before> {
    session::called_inside(inside, frame, |session| session.begin_piece(encountering, shares, frame))
        .flatten()
}

/// It is done with the piece.
pub fn end_piece(inside: &Inside, before: Before, frame: usize) {
    session::called_inside(inside, frame, |session| session.end_piece(&before));
}

/// Locks that a task held at some time.
#[derive(Debug, Clone, Default)]
pub struct Locks(Vec<HeldNow>);

impl Locks {
    /// Were there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These and others.
    pub fn and(mut self, others: &Locks) -> Locks {
        self.0.extend_from_slice(&others.0);
        self
    }
}

/// Those of the running task.
pub fn locks(inside: &Inside) -> Locks {
    Locks(session::with_inside(inside, Session::held_now).unwrap_or_default())
}

/// The running task, which is about to end, holds them no longer: the thread's next task does.
pub fn hand_over(inside: &Inside, frame: usize) -> Locks {
    Locks(session::called_inside(inside, frame, Session::hand_over).unwrap_or_default())
}

/// The running task holds from here on what the thread's last one has held.
pub fn take_over(inside: &Inside, locks: Locks, frame: usize) {
    if !locks.is_empty() {
        session::called_inside(inside, frame, |session| session.take_over(locks.0));
    }
}

/// The running task waits for a child, which is about to begin, and has held these locks since before it has created it: the child is under them.
pub fn put_under(inside: &Inside, child: Task, locks: &Locks, frame: usize) {
    session::called_inside(inside, frame, |session| {
        let own = session.tasks.of_handle(child.handle);
        let shadow = child.in_order_of_threads().filter(|&shadow| shadow != own);
        session.put_under([Some(own), shadow].into_iter().flatten(), &locks.0);
    });
}

/// Has one of these locks been held since?
pub fn is_held_since(inside: &Inside, locks: &Locks) -> bool {
    session::with_inside(inside, |session| session.is_held_since(&locks.0)).unwrap_or_default()
}

/// Something that orders tasks: what was done before a release comes before what follows an acquire.
#[derive(Debug, Clone, Copy)]
pub struct Order(SyncId);

/// A new one.
pub fn order(inside: &Inside) -> Option<Order> {
    session::with_inside(inside, |session| Order(session.sync.new_order()))
}

/// It is of no use any more.
pub fn drop_order(inside: &Inside, order: Order) {
    session::with_inside(inside, |session| session.sync.drop_order(order.0));
}

/// What the running task has done comes before what follows an acquire.
pub fn release(inside: &Inside, order: Order, frame: usize) {
    session::called_inside(inside, frame, |session| {
        let task = session.told();
        let keep = session.sync.keeps_order(order.0);
        session.event(Event::Release { task, sync: order.0, keep });
    });
}

/// What the running task does comes after all that was released.
pub fn acquire(inside: &Inside, order: Order, frame: usize) {
    session::called_inside(inside, frame, |session| {
        let task = session.told();
        session.event(Event::Acquire { task, sync: order.0 });
    });
}

/// A fence between threads, with release and acquire order.
pub fn fence(inside: &Inside, frame: usize) {
    session::called_inside(inside, frame, |session| session.fence(sync::Order::BOTH));
}

/// What follows excludes what others do under the same number, and is in no order with it.
pub fn exclude(inside: &Inside, number: u32, frame: usize) {
    session::called_inside(inside, frame, |session| {
        let task = session.told();
        session.event(Event::Lock { task, lock: LockId::of_worker(number), mode: LockMode::Exclusive });
    });
}

/// It excludes no longer.
pub fn include(inside: &Inside, number: u32, frame: usize) {
    session::called_inside(inside, frame, |session| {
        let task = session.told();
        session.event(Event::Unlock { task, lock: LockId::of_worker(number) });
    });
}

/// The runtime has allocated memory for the program, or for a lock: it is no longer what was there before.
pub fn allocated(inside: &Inside, start: usize, size: usize) {
    session::with_inside(inside, |session| {
        session.forget_words(start..start + size);
        session.erase(start, size);
    });
}

/// The same of memory that this said it of before, when it has returned this number. Returns the next.
pub fn reused(inside: &Inside, start: usize, size: usize, epoch: u64) -> u64 {
    let Ok(bytes) = Bytes::new(start as u64, size as u64) else { return epoch };
    let reused = session::with_inside(inside, |session| {
        session.forget_words(start..start + size);
        session.reused(bytes, epoch)
    });
    reused.unwrap_or(epoch)
}

/// Hooks may run from here on: to be called before all constructors.
pub extern "C" fn hooks_may_run() {
    start::reserve();
}

/// All code of the program has hooks: threads that it starts are tasks, whichever code does.
pub fn all_code_has_hooks() {
    threads::all_have_hooks();
    faults::prepare();
}

/// But for some files, which were compiled without them: the verdict says so.
pub fn some_has_not() {
    exit::some_code_has_no_hooks();
}

/// A thread has run several sections, and the program does not say where each begins: the verdict says so.
pub fn sections_are_not_told() {
    exit::sections_are_not_told();
}

/// The program has cancelled something: the verdict says so.
pub fn cancels() {
    exit::cancels();
}

/// A taskwait has waited for tasks of a piece of work that another thread may get in another run: the verdict says so.
pub fn waits_for_tasks_of_piece() {
    exit::waits_for_tasks_of_piece();
}

/// This thread waits until somebody wakes the address; `why` ends the sentence "waits for …".
pub fn wait(inside: &Inside, address: usize, why: &'static str) {
    wait_until(inside, address, why, None);
}

/// The same, but not beyond that time. A thread that takes no turns does not wait long.
pub fn wait_until(inside: &Inside, address: usize, why: &'static str, until: Option<Instant>) {
    if turns::is_seated() {
        turns::wait_for(inside, address, why, until);
    } else {
        std::thread::sleep(SHORT);
    }
}

const SHORT: Duration = Duration::from_micros(50);

/// Whoever waits for the address goes on.
pub fn wake(inside: &Inside, address: usize) {
    turns::wake(inside, address, usize::MAX);
}

/// So many of them do.
pub fn wake_some(inside: &Inside, address: usize, most: usize) {
    turns::wake(inside, address, most);
}

/// Whoever is ready goes first.
pub fn yield_now(inside: &Inside) {
    if turns::is_seated() {
        turns::yield_now(inside);
    }
}

/// A new thread, which runs `entry`, and the task with it. None if there can be no more threads.
pub fn hire(inside: &Inside, task: Task, entry: extern "C" fn(usize), argument: usize) -> Option<Seat> {
    threads::hire(inside, task.handle, entry, argument)
}

/// This thread has nothing to do until it is given a task.
pub fn idle(inside: &Inside) {
    turns::idle(inside);
}

/// The thread of that seat, which waits or is idle, has this task next.
pub fn give(inside: &Inside, seat: Seat, task: Task) {
    turns::give(inside, seat, task.handle);
}

/// The seat of this thread.
pub fn seat() -> Seat {
    turns::seat()
}

/// The stack of this thread below a function with this frame is that of a thread of a team, and so are its thread-local variables.
pub fn own_stack(inside: &Inside, frame: usize) {
    let low = threads::stack().low;
    session::with_inside(inside, |session| {
        session.nest.stack(low..frame);
        session.nest.stack(session.thread_locals.clone());
    });
}

/// Frames of this thread below that address are those of a region: its own, also if it is in a piece of another one. Returns what [`end_own_frames`] is to be told, if anything
/// changes.
pub fn begin_own_frames(inside: &Inside, top: usize) -> Option<usize> {
    let changes = session::with_inside(inside, |session| session.begin_own_zone(top));
    (changes == Some(true)).then_some(top)
}

/// The region is over.
pub fn end_own_frames(inside: &Inside, top: usize) {
    session::with_inside(inside, |session| session.end_own_zone(top));
}

/// Is little left of the stack of this thread, below a function with this frame?
pub fn is_deep(frame: usize) -> bool {
    let Stack { low, high } = threads::stack();
    frame.saturating_sub(low) < (high - low) / 2
}

/// Where the stack of this thread begins.
pub fn stack_top() -> usize {
    threads::stack().high
}

/// The program cannot go on: says why, and what was found so far.
pub fn refuse(text: &str) -> ! {
    static SAID: OnceLock<()> = OnceLock::new();
    if SAID.set(()).is_ok() {
        exit::refuse(text);
    }
    std::process::exit(2)
}
