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

use std::num::NonZero;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use dagsan_core::contract::Opened;
use dagsan_core::{Construct, Event, LockId, LockMode, SyncId, TaskId, TaskKind};
use dagsan_findings as findings;

pub use crate::session::Inside;
use crate::session::{self, Session};
use crate::sites;
pub use crate::start::frame;
use crate::sync::holding::HeldNow;
use crate::tasks::{Birth, Handle, Stack};
use crate::threads;
pub use crate::turns::Seat;
use crate::{exit, faults, start, sync, turns};

/// A task of a team.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    handle: Handle,
    shadow: Option<TaskId>,
    /// The task whose child it is, and the one whose child its shadow is.
    parents: [Option<TaskId>; 2],
}

impl Task {
    /// The main task.
    pub fn main() -> Task {
        Task { handle: Handle::MAIN, shadow: None, parents: [None; 2] }
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
    fn name(self) -> findings::TaskKind {
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
    session::open_scope(frame, Opened::Finish);
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
    session::close_scope(frame, Opened::Finish);
}

/// The running task.
pub fn current(inside: &Inside) -> Task {
    let both = |session: &mut Session| (session.tasks.handle(), session.tasks.shadow());
    let (handle, shadow) = session::with_inside(inside, both).unwrap_or((Handle::MAIN, None));
    Task { handle, shadow, parents: [None; 2] }
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
const RETURN: usize = 16;

/// The running task goes on, as that of another thread, or of this one.
pub fn resume(inside: &Inside, task: Task) {
    session::with_inside(inside, |session| session.resume(task.handle));
}

/// The running task ends.
pub fn end(inside: &Inside, frame: usize) {
    session::called_inside(inside, frame, Session::task_end);
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

/// The running task comes after one that has ended.
pub fn join(inside: &Inside, task: Task, frame: usize) {
    session::called_inside(inside, frame, |session| session.get(task));
}

/// The running task comes after these, which have ended: all that it has started as children since it did this last, and others.
pub fn join_all(inside: &Inside, tasks: impl Iterator<Item = Task>, frame: usize) {
    session::called_inside(inside, frame, |session| session.get_all(tasks));
}

/// Nobody will join the task any more.
pub fn forget(inside: &Inside, task: Task) {
    session::with_inside(inside, |session| {
        session.future_drop(task.handle);
        if let Some(shadow) = task.shadow {
            session.future_drop(Handle::of_future(shadow));
        }
    });
}

/// What a thread was before it got a piece.
#[derive(Debug)]
pub struct Before {
    task: TaskId,
    shadow: Option<TaskId>,
    own_heap: bool,
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
        session.put_under([Some(own), child.shadow].into_iter().flatten(), &locks.0);
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
        session.event(Event::Release { task, sync: order.0, keep: true });
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

impl Session {
    /// The number of the code that has called the function of this frame, as that of a stack.
    fn code_of_call(&mut self, frame: usize) -> Option<NonZero<u32>> {
        let stack = self.tasks.stack();
        let mut frames = [0; 1];
        let count = sites::walk(frame, stack.low, usize::MAX, &mut frames);
        NonZero::new(self.sites.stack_number(&frames[..count]))
    }

    fn start(&mut self, parent: Task, kind: Kind, call: usize) -> Task {
        self.tell();
        let call = self.code_of_call(call);
        let knows_children = || self.options.engine.supports(Construct::Child);
        let of_finish = match kind {
            Kind::Explicit if knows_children() => TaskKind::Child,
            Kind::Explicit | Kind::Loose => TaskKind::Future,
            Kind::Implicit | Kind::Piece => TaskKind::Async,
        };
        self.deliver_before_spawn();
        let birth = Birth { name: kind.name(), place: None, call };
        let running = self.tasks.handle();
        let by = self.tasks.of_handle(parent.handle);
        let child = self.born(by, of_finish, birth);
        // The shadow of a piece is the thread's own task, which has children that nobody waits for in a piece.
        let of_shadow = match of_finish {
            TaskKind::Child if self.tasks.is_piece() => TaskKind::Future,
            other => other,
        };
        let shadow = parent.shadow.map(|parent| self.born(parent, of_shadow, birth));
        self.tasks.mark();
        let handle = self.tasks.spawn(child, of_finish, Stack::default());
        self.tasks.set_shadow(shadow);
        self.shared.spawn(of_finish, self.tasks.slot());
        self.tasks.resume(running);
        self.shared.turn(self.tasks.slot());
        let child_of = |kind, parent: Option<TaskId>| parent.filter(|_| kind == TaskKind::Child);
        let parents = [child_of(of_finish, Some(by)), child_of(of_shadow, parent.shadow)];
        Task { handle, shadow, parents }
    }

    /// The stream hears of a task.
    pub(crate) fn born(&mut self, parent: TaskId, kind: TaskKind, birth: Birth) -> TaskId {
        let child = TaskId(self.stream.structure().task_count());
        self.event_of_other(Event::Spawn { parent, child, kind });
        if self.stopped.is_none() {
            if self.tasks.want_collection()
                && let Some(remembered) = self.stream.consumer().remembered_tasks()
            {
                self.tasks.collect(remembered);
            }
            self.tasks.born(parent, birth);
        }
        child
    }

    fn get(&mut self, future: Task) {
        let task = self.told();
        let own = future.handle.task();
        let other = future.shadow.unwrap_or(own);
        self.event(Event::FutureGet { task, future: own });
        match self.tasks.shadow() {
            Some(shadow) => self.event_of_other(Event::FutureGet { task: shadow, future: other }),
            None if other != own => self.event(Event::FutureGet { task, future: other }),
            None => {}
        }
    }

    /// Children of the running task, and of its shadow, are joined by a sync, the others one by one.
    fn get_all(&mut self, futures: impl Iterator<Item = Task>) {
        let (task, shadow) = (self.told(), self.tasks.shadow());
        let (mut by_task, mut by_shadow) = (false, false);
        for future in futures {
            let own = future.handle.task();
            let other = future.shadow.unwrap_or(own);
            let [parent, of_shadow] = future.parents;
            if parent == Some(task) {
                by_task = true;
            } else {
                self.event(Event::FutureGet { task, future: own });
            }
            match shadow {
                Some(_) if of_shadow == shadow => by_shadow = true,
                Some(shadow) => self.event_of_other(Event::FutureGet { task: shadow, future: other }),
                None if other != own => self.event(Event::FutureGet { task, future: other }),
                None => {}
            }
        }
        if by_task {
            self.event(Event::Sync { task });
        }
        if let Some(shadow) = shadow.filter(|_| by_shadow) {
            self.event_of_other(Event::Sync { task: shadow });
        }
    }

    fn begin_piece(&mut self, encountering: Task, shares: bool, frame: usize) -> Option<Before> {
        let task = self.told();
        if self.stopped.is_some() {
            return None;
        }
        self.deliver();
        self.fresh.end_strand();
        let locks = self.hand_over();
        let call = self.code_of_call(frame);
        let by = self.tasks.of_handle(encountering.handle);
        let piece = self.born(by, TaskKind::Async, Birth { name: Kind::Piece.name(), place: None, call });
        let shadow = self.tasks.shadow();
        let own_heap = self.tasks.own_heap(!shares);
        self.tasks.is_told(self.tasks.slot(), piece);
        self.tasks.set_shadow(Some(shadow.unwrap_or(task)));
        self.tasks.set_piece(true);
        self.tasks.mark();
        self.take_over(locks);
        Some(Before { task, shadow, own_heap })
    }

    fn end_piece(&mut self, before: &Before) {
        let piece = self.told();
        self.deliver();
        self.fresh.end_strand();
        let locks = self.hand_over();
        self.event_of_other(Event::TaskEnd { task: piece });
        self.sync.task_ended(piece);
        self.tasks.is_told(self.tasks.slot(), before.task);
        self.tasks.set_piece(false);
        self.tasks.set_shadow(before.shadow);
        self.tasks.own_heap(before.own_heap);
        self.tasks.mark();
        self.take_over(locks);
    }
}
