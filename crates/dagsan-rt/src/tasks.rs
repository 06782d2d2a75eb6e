//! The tasks of the program: which one runs, on which stack, and who created whom.

mod team;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::Range;
use std::panic::Location as Place;

use dagsan_core::contract::Opened;
use dagsan_core::{RECENT, Table, TaskId, TaskKind};
use dagsan_findings as findings;
use rustc_hash::FxHashSet;

/// What a task runtime holds of a task: its number, and its place among those that live.
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

    fn slot(self) -> usize {
        (self.0 >> 32) as usize
    }

    /// If the task has ended: has the stream never heard of it?
    pub fn was_contracted(self) -> bool {
        self.task() == PENDING
    }

    /// The handle of the task in that place, which runs, or was the last to end.
    pub fn of_place(tasks: &Tasks, slot: u32) -> Handle {
        Handle::new(slot, tasks.number_of(slot))
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

/// How a task was created.
#[derive(Debug, Clone, Copy)]
pub struct Birth {
    pub name: findings::TaskKind,
    /// Not known of a thread, whose call stack is.
    pub place: Option<&'static Place<'static>>,
    /// The code that has created it, as the number of a stack, if the place is not known.
    pub call: Option<NonZero<u32>>,
}

/// Where a task comes from, in 24 bytes: there may be millions.
#[derive(Debug, Clone, Copy)]
struct Parentage {
    parent: u32,
    kind: findings::TaskKind,
    place: Option<&'static Place<'static>>,
    call: Option<NonZero<u32>>,
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
            PENDING => self.live[handle.slot()].task,
            known => known,
        }
    }

    /// The stream has heard of the task, by this number.
    pub fn is_told(&mut self, slot: u32, task: TaskId) {
        self.live[slot as usize].task = task;
    }

    /// How the task of that number was created, if anybody can still speak of it.
    pub fn birth(&self, task: TaskId) -> Option<Birth> {
        let Parentage { kind: name, place, call, .. } = *self.births.get(task.0)?;
        Some(Birth { name, place, call })
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
        Handle::new(self.current, self.current())
    }

    /// The part of its stack that nobody else knows.
    pub fn private(&self) -> Range<usize> {
        let live = self.running();
        live.stack.low..live.mark
    }

    /// The next mark will be here, where the program's frames end.
    #[inline]
    pub fn begin_below(&mut self, address: usize) {
        self.below = address;
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
        let live = &mut self.live[self.current as usize];
        live.mark = here;
        live.lowest = live.lowest.min(here);
    }

    /// The stream has heard of the next task.
    #[inline]
    pub fn born(&mut self, parent: TaskId, birth: Birth) {
        let Birth { name: kind, place, call } = birth;
        self.births.push(Parentage { parent: parent.0, kind, place, call });
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
        Handle::new(self.current, child)
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
        let live = &mut self.live[task.slot()];
        (live.stack, live.base, live.mark, live.lowest) = (Stack { low, high }, base, high, high);
        had
    }

    /// The running task, which has not run yet, is on this stack.
    pub fn begin_on(&mut self, stack: Stack) {
        let live = &mut self.live[self.current as usize];
        (live.stack, live.base, live.mark, live.lowest) = (stack, stack.high, stack.high, stack.high);
    }

    /// Is the running task the one that its thread began with?
    pub fn is_thread(&self) -> bool {
        let birth = self.births.get(self.current().0);
        birth.is_some_and(|birth| birth.kind == findings::TaskKind::Thread)
    }

    /// The thread that a task is on, by the task that the thread began with.
    pub fn thread_of(&self, mut task: u32) -> u32 {
        while let Some(birth) = self.births.get(task)
            && birth.kind != findings::TaskKind::Thread
        {
            task = birth.parent;
        }
        task
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
    }

    /// Has it touched this line? It may say yes of one that it has not.
    pub fn has_touched(&self, line: u64) -> bool {
        self.running().touched & bit_of(line) != 0
    }

    /// The running task, which had not touched it, has come to a line of thread-local variables. These words were in it.
    pub fn came_to(&mut self, line: u64, words: Words) {
        self.came_to.push(CameTo { slot: self.current, line, words });
    }

    /// The lines that it has come to, and what was in them.
    pub fn found_in_variables(&self) -> impl Iterator<Item = (u64, Words)> {
        let mine = self.came_to.iter().filter(|came_to| came_to.slot == self.current);
        mine.map(|&CameTo { line, words, .. }| (line, words))
    }

    /// Does `task` run?
    #[inline]
    pub fn is(&self, task: Handle) -> bool {
        self.current as usize == task.slot()
    }

    /// `task` runs.
    #[inline]
    pub fn resume(&mut self, task: Handle) {
        self.go_on(task.slot() as u32);
    }

    /// All tasks but the main one have ended, and nobody will ask for them; the next one will be `next`.
    pub fn forget(&mut self, next: u32) {
        self.births.clear(next);
    }

    /// Are there many births that may be of no use any more?
    #[inline]
    pub fn want_collection(&self) -> bool {
        self.births.wants_collection(RECENT)
    }

    /// Forgets all births but those of `spoken_of`, of tasks that live, and of their ancestors.
    pub fn collect(&mut self, spoken_of: impl Iterator<Item = TaskId>) {
        let mut kept = FxHashSet::default();
        let living = self.live.iter().map(|live| live.task);
        for task in spoken_of.chain(living) {
            let mut task = task.0;
            while let Some(birth) = self.births.get(task)
                && kept.insert(task)
            {
                task = birth.parent;
            }
        }
        self.births.retain(|task, _| kept.contains(&task));
    }

    /// Whose stack the address is in: a living task's, the main task's included.
    pub fn of_stack(&self, address: usize) -> Option<TaskId> {
        let lives = |(slot, live): (usize, &Live)| {
            let here = (live.stack.low..live.stack.high).contains(&address);
            (here && !self.free.contains(&(slot as u32))).then_some(live.task)
        };
        self.live.iter().enumerate().find_map(lives)
    }

    /// Is it known how it was created?
    pub fn is_known(&self, task: u32) -> bool {
        task == 0 || self.births.get(task).is_some()
    }

    /// Enters the task and its ancestors, to be spoken of. Returns the eldest but for the main one.
    pub fn mention(
        &self,
        mut task: u32,
        into: &mut BTreeMap<u32, findings::Task>,
        calls: &mut BTreeMap<u32, u32>,
    ) -> Option<u32> {
        let mut eldest = None;
        loop {
            let birth = self.births.get(task);
            let (parent, kind, created) = match birth {
                Some(birth) => (Some(birth.parent), birth.kind, birth.place.map(place)),
                None => (None, findings::TaskKind::Main, None),
            };
            into.entry(task).or_insert(findings::Task { number: task, parent, kind, created, stack: None });
            if let Some(call) = birth.and_then(|birth| birth.call) {
                calls.entry(task).or_insert(call.get());
            }
            let Some(parent) = parent else { return eldest };
            eldest = Some(task);
            task = parent;
        }
    }
}

/// The bit that stands for a line.
#[inline]
pub fn bit_of(line: u64) -> u64 {
    1 << (line % 64)
}

/// A place in the words of the findings.
pub fn place(place: &Place<'_>) -> findings::Place {
    findings::Place { file: place.file().to_owned(), line: place.line(), column: place.column() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn births_are_kept_for_those_who_are_spoken_of_and_their_ancestors() {
        let mut tasks = Tasks::new();
        let birth = Birth { name: findings::TaskKind::Async, place: Some(Place::caller()), call: None };
        for child in 1..9 {
            let parent = TaskId(child / 2);
            tasks.born(parent, birth);
            tasks.spawn(TaskId(child), TaskKind::Async, Stack::default());
            tasks.end();
        }
        tasks.live.truncate(1);
        tasks.collect([TaskId(6)].into_iter());
        let mut mentioned = BTreeMap::new();
        tasks.mention(6, &mut mentioned, &mut BTreeMap::new());
        let parents: Vec<_> = mentioned.values().map(|task| (task.number, task.parent)).collect();
        assert_eq!(parents, [(0, None), (1, Some(0)), (3, Some(1)), (6, Some(3))]);
        assert_eq!(tasks.births.iter().map(|(task, _)| task).collect::<Vec<_>>(), [1, 3, 6]);
    }
}
