//! The tasks of the program: which one runs, on which stack, and who created whom.

mod births;
mod part;
mod team;

use std::ops::Range;

use dagsan_core::contract::Opened;
use dagsan_core::{Table, TaskId, TaskKind};

use births::Parentage;
pub use births::{Birth, place};
pub use part::Stood;

/// What a task runtime holds of a task: its number, and its place among those that live.
///
/// ```text
///   [ 0      place │ number ]      of the root
///   [ 1 part place │ number ]      of a part of the program that runs ahead (`part`)
///     1  11    20      32
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Handle(u64);

impl Handle {
    fn new(slot: u32, task: TaskId) -> Handle {
        Handle(u64::from(slot) << 32 | u64::from(task.0))
    }

    /// The main task.
    pub const MAIN: Handle = Handle(0);

    /// A future that nobody will resume.
    pub fn of_future(task: TaskId) -> Handle {
        Handle::new(u32::MAX, task)
    }

    /// The task.
    pub fn task(self) -> TaskId {
        TaskId(self.0 as u32)
    }

    /// Its place, with the part that it is in.
    fn place(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// If the task has ended: has the stream never heard of it?
    pub fn was_contracted(self) -> bool {
        self.task() == PENDING
    }

    /// The handle of the task in that place, which runs, or was the last to end.
    pub fn of_place(tasks: &Tasks, slot: u32) -> Handle {
        Handle::new(tasks.part | slot, tasks.number_of(slot))
    }
}

/// The number of a task that the stream has not heard of (`tiny`).
pub const PENDING: TaskId = TaskId(u32::MAX);

/// A stack in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Stack {
    pub low: usize,
    pub high: usize,
}

/// A task that has not ended.
#[derive(Debug, Clone, Copy)]
struct Live {
    task: TaskId,
    stack: Stack,
    /// Where the whole stack begins. It may be that of another task, which waits.
    base: usize,
    /// Its stack pointer when its strand began: see `session`.
    mark: usize,
    /// The lowest mark so far.
    lowest: usize,
    /// The number of the innermost finish around what it does; 0 if there is none.
    finish: u32,
    /// The lines of thread-local variables that it has touched since it started a task in a scope that is still open,
    /// each by a bit that it may share with others.
    touched: u64,
    shadow: Shadow,
    /// Is it a piece of work that any thread may get?
    is_piece: bool,
    /// Are blocks that it allocates its thread's own?
    own_heap: bool,
    /// Is it what a thread of a team does itself? Then thread-local variables are in its order, and others may have their addresses.
    of_team: bool,
    /// No other task has it, told or not.
    name: u64,
}

/// The same task in the order of threads (`nest`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shadow {
    /// Itself.
    Itself,
    /// Another one, which has done nothing so far. So it need not be there; the place of who has started the task and waits for it.
    Due(u32),
    /// Another one.
    Other(TaskId),
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Tasks {
    /// The main task is the first.
    live: Vec<Live>,
    free: Vec<u32>,
    current: u32,
    /// Where the next strand begins, if that is known better than by the stack pointer; else 0.
    below: usize,
    /// The births since the last quiescent point, but for those of tasks that nobody can speak of any more.
    births: Table<Parentage>,
    /// The scopes that are open.
    scopes: Vec<Scope>,
    /// What tasks that live have come to find in thread-local variables.
    came_to: Vec<CameTo>,
    /// The finish that was opened last.
    last_finish: u32,
    /// The name of the task that was started last.
    last_name: u64,
    /// What places begin with.
    part: u32,
    /// Places that tasks had in parts, and have here.
    moved: Vec<(u32, u32)>,
    /// While a part is told: the lines of thread-local variables that its tasks have touched, and what they have come to find there.
    lent: (u64, Vec<CameTo>),
    /// Of a part: the same, of all its tasks so far.
    found: (u64, Vec<CameTo>),
}

/// An open scope: who opened it, and what held for that task before.
#[derive(Debug, Clone, Copy)]
struct Scope {
    slot: u32,
    touched: u64,
    finish: u32,
}

/// A line of thread-local variables, as it was when a task came to it, by the words in it. As long as it counts as touched.
#[derive(Debug, Clone, Copy)]
struct CameTo {
    slot: u32,
    line: u64,
    words: Words,
}

/// The words of a line.
pub type Words = [usize; 8];

impl Tasks {
    /// The main task.
    pub fn new() -> Tasks {
        let stack = Stack::default();
        let main = Live {
            task: TaskId::MAIN,
            stack,
            base: 0,
            mark: 0,
            lowest: 0,
            finish: 0,
            touched: 0,
            shadow: Shadow::Itself,
            is_piece: false,
            own_heap: false,
            of_team: false,
            name: 0,
        };
        Tasks {
            live: vec![main],
            free: Vec::new(),
            current: 0,
            below: 0,
            births: Table::new(1),
            // With room, so that the program's heap is laid out as it would be without the runtime.
            scopes: Vec::with_capacity(1024),
            came_to: Vec::new(),
            last_finish: 0,
            last_name: 0,
            part: 0,
            moved: Vec::new(),
            lent: (0, Vec::new()),
            found: (0, Vec::new()),
        }
    }

    /// The stack of the thread that owns the session.
    pub fn set_main_stack(&mut self, stack: Stack) {
        let main = &mut self.live[0];
        (main.stack, main.base, main.mark, main.lowest) = (stack, stack.high, stack.low, stack.low);
        (main.touched, main.finish) = (0, 0);
        self.came_to.clear();
        self.scopes.clear();
        self.current = 0;
    }

    #[inline]
    fn running(&self) -> &Live {
        &self.live[self.current as usize]
    }

    /// The running task.
    #[inline]
    pub fn current(&self) -> TaskId {
        self.running().task
    }

    /// Its name, which no other task has or had, also while the stream has not heard of it.
    #[inline]
    pub fn name(&self) -> u64 {
        self.running().name
    }

    /// Is it the main task?
    #[inline]
    pub fn is_main(&self) -> bool {
        self.current == 0
    }

    /// Does any but the main task live?
    pub fn any_lives(&self) -> bool {
        self.live.len() - self.free.len() > 1
    }

    /// Its place among those that live.
    #[inline]
    pub fn slot(&self) -> u32 {
        self.current
    }

    /// The place that the next task will have.
    #[inline]
    pub fn next_slot(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.live.len() as u32)
    }

    /// The number of a task that lives.
    #[inline]
    pub fn number_of(&self, slot: u32) -> TaskId {
        self.live[slot as usize].task
    }

    /// The task that a handle stands for: a future, or one that lives.
    pub fn of_handle(&self, handle: Handle) -> TaskId {
        match handle.task() {
            known if known != PENDING && self.is_of_here(handle) => known,
            _ => self.number_of(self.slot_of(handle)),
        }
    }

    /// The stream has heard of the task, by this number.
    pub fn is_told(&mut self, slot: u32, task: TaskId) {
        self.live[slot as usize].task = task;
    }

    /// How many scopes the task there has opened that are not closed.
    pub fn open_scopes(&self, slot: u32) -> usize {
        self.scopes.iter().filter(|scope| scope.slot == slot).count()
    }

    /// The running task has no frames below this address from here on that anybody knows. The part where it had some.
    pub fn no_frames_below(&mut self, high: usize) -> Range<usize> {
        let running = &mut self.live[self.current as usize];
        let had = running.lowest.max(running.stack.low)..high;
        running.lowest = running.lowest.max(high);
        had
    }

    /// The innermost finish around the running task, by a number that no other has while it is open; 0 if there is none.
    pub fn innermost_finish(&self) -> u32 {
        self.running().finish
    }

    /// Its stack.
    pub fn stack(&self) -> Stack {
        self.running().stack
    }

    /// The same with the frames of those on it that wait.
    pub fn whole_stack(&self) -> Stack {
        let live = self.running();
        Stack { low: live.stack.low, high: live.base }
    }

    /// The running task, for a task runtime.
    #[inline]
    pub fn handle(&self) -> Handle {
        Handle::new(self.part | self.current, self.current())
    }

    /// The part of its stack that nobody else knows.
    pub fn private(&self) -> Range<usize> {
        let live = self.running();
        live.stack.low..live.mark
    }

    /// What its last strand has done to its stack is nobody's business: none of what it has started runs, and the stack goes with it.
    #[inline]
    pub fn hide_stack(&mut self) {
        let live = &mut self.live[self.current as usize];
        live.mark = live.stack.high;
    }

    /// The next mark will be here, where the program's frames end.
    #[inline]
    pub fn begin_below(&mut self, address: usize) {
        self.below = address;
    }

    /// A strand begins at this address.
    pub fn mark_at(&mut self, here: usize) {
        let live = &mut self.live[self.current as usize];
        live.mark = here;
        live.lowest = live.lowest.min(here);
    }

    /// A strand begins here.
    #[inline]
    pub fn mark(&mut self) {
        let mut here: usize;
        // SAFETY: reads the stack pointer. It is below the frames of the program, which called the runtime.
        unsafe { std::arch::asm!("mov {}, rsp", out(reg) here, options(nomem, nostack, preserves_flags)) };
        if self.below != 0 {
            here = self.below;
        }
        self.mark_at(here);
    }

    /// `child` is there, and runs. If its stack has no lowest address, it is below the frames of the running task.
    #[inline]
    pub fn spawn(&mut self, child: TaskId, kind: TaskKind, stack: Stack) -> Handle {
        self.last_name += 1;
        let running = &mut self.live[self.current as usize];
        running.touched = 0;
        if !self.came_to.is_empty() {
            let slot = self.current;
            self.came_to.retain(|line| line.slot != slot);
        }
        let (low, base) = match stack.low {
            0 => (running.stack.low, running.base),
            low => (low, stack.high),
        };
        let stack = Stack { low, high: stack.high };
        let finish = if kind == TaskKind::Detached { 0 } else { running.finish };
        let shadow = match running.shadow {
            Shadow::Itself => Shadow::Itself,
            Shadow::Due(_) | Shadow::Other(_) => Shadow::Due(self.current),
        };
        let live = Live {
            task: child,
            stack,
            base,
            mark: stack.high,
            lowest: stack.high,
            finish,
            touched: 0,
            shadow,
            is_piece: false,
            own_heap: false,
            of_team: false,
            name: self.last_name,
        };
        self.current = match self.free.pop() {
            Some(slot) => {
                self.live[slot as usize] = live;
                slot
            }
            None => {
                self.live.push(live);
                (self.live.len() - 1) as u32
            }
        };
        Handle::new(self.part | self.current, child)
    }

    /// The part of the running task's stack that others may have known.
    #[inline]
    pub fn used(&self) -> Range<usize> {
        let live = self.running();
        live.lowest..live.stack.high
    }

    /// The running task has ended.
    #[inline]
    pub fn end(&mut self) {
        if self.current != 0 {
            self.free.push(self.current);
        }
        if !self.came_to.is_empty() {
            let slot = self.current;
            self.came_to.retain(|line| line.slot != slot);
        }
    }

    /// The task there runs.
    #[inline]
    pub fn go_on(&mut self, slot: u32) {
        self.current = slot;
    }

    /// `task`, which has not run yet, will be on the stack of the running one, below `high`. The part of it where the
    /// running task had frames that others may have known.
    pub fn set_stack(&mut self, task: Handle, high: usize) -> Range<usize> {
        let Live { stack: Stack { low, .. }, base, .. } = *self.running();
        let had = self.no_frames_below(high);
        let slot = self.slot_of(task);
        let live = &mut self.live[slot as usize];
        (live.stack, live.base, live.mark, live.lowest) = (Stack { low, high }, base, high, high);
        had
    }

    /// The running task, which has not run yet, is on this stack.
    pub fn begin_on(&mut self, stack: Stack) {
        let live = &mut self.live[self.current as usize];
        (live.stack, live.base, live.mark, live.lowest) = (stack, stack.high, stack.high, stack.high);
    }

    /// The running task opens a scope.
    #[inline]
    pub fn open_scope(&mut self, opened: Opened) {
        let Live { touched, finish, .. } = *self.running();
        self.scopes.push(Scope { slot: self.current, touched, finish });
        if opened == Opened::Finish {
            // After four billion of them a number may come again. The old one is not open any more.
            self.last_finish = self.last_finish.checked_add(1).unwrap_or(1);
            self.live[self.current as usize].finish = self.last_finish;
        }
    }

    /// It closes its innermost one: what it has started there is over.
    #[inline]
    pub fn close_scope(&mut self) {
        // The last, unless tasks on other stacks have opened scopes meanwhile.
        if let Some(at) = self.scopes.iter().rposition(|scope| scope.slot == self.current) {
            let Scope { touched, finish, .. } = self.scopes.remove(at);
            let live = &mut self.live[self.current as usize];
            (live.touched, live.finish) = (touched, finish);
        }
    }

    /// Has the running task opened a scope that is not closed?
    pub fn has_open_scope(&self) -> bool {
        self.open_scopes(self.current) > 0
    }

    /// The running task has touched these lines of thread-local variables.
    #[inline]
    pub fn touch(&mut self, lines: u64) {
        self.live[self.current as usize].touched |= lines;
        if self.part != 0 {
            self.found.0 |= lines;
        }
    }

    /// Has it touched this line? It may say yes of one that it has not.
    pub fn has_touched(&self, line: u64) -> bool {
        (self.running().touched | self.lent.0) & bit_of(line) != 0
    }

    /// The running task, which had not touched it, has come to a line of thread-local variables. These words were in it.
    pub fn came_to(&mut self, line: u64, words: Words) {
        let came_to = CameTo { slot: self.current, line, words };
        self.came_to.push(came_to);
        if self.part != 0 {
            self.found.1.push(came_to);
        }
    }

    /// The lines that it has come to, and what was in them.
    pub fn found_in_variables(&self) -> impl Iterator<Item = (u64, Words)> {
        let mine = self.came_to.iter().filter(|came_to| came_to.slot == self.current);
        mine.chain(&self.lent.1).map(|&CameTo { line, words, .. }| (line, words))
    }

    /// Does `task` run?
    #[inline]
    pub fn is(&self, task: Handle) -> bool {
        self.current == self.slot_of(task)
    }

    /// `task` runs.
    #[inline]
    pub fn resume(&mut self, task: Handle) {
        self.go_on(self.slot_of(task));
    }

    /// Whose stack the address is in: a living task's, the main task's included.
    pub fn of_stack(&self, address: usize) -> Option<TaskId> {
        let lives = |(slot, live): (usize, &Live)| {
            let here = (live.stack.low..live.stack.high).contains(&address);
            (here && !self.free.contains(&(slot as u32))).then_some(live.task)
        };
        self.live.iter().enumerate().find_map(lives)
    }
}

/// The bit that stands for a line.
#[inline]
pub fn bit_of(line: u64) -> u64 {
    1 << (line % 64)
}
