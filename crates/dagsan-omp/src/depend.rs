//! `depend`: which sibling tasks come before which.
//!
//! For each address, in the order of creation: the last task that has it alone (`out`, `inout`) or the last set of tasks that have it together, and the
//! readers since.
//!
//! ```text
//!   in              comes after the writers
//!   out, inout      comes after writers and readers
//!   mutexinoutset   comes after readers and earlier writers, one of the set at a time, in any order
//!   inoutset        the same, together
//! ```

use rustc_hash::FxHashMap;

use dagsan_rt::team::{self, Inside};

use crate::lock::{Shared, Word};
use crate::member;
use crate::refuse::Ident;
use crate::run;
use crate::task::{Known, Task};

/// A dependence, as clang tells it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dependence {
    base: usize,
    length: usize,
    flags: u8,
}

/// What a task has to do with an address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    In,
    Out,
    Mutex,
    Set,
}

const OUT: u8 = 3;
const ALL_MEMORY: u8 = 0x80;

impl Dependence {
    fn meaning(&self) -> Use {
        match self.flags {
            1 => Use::In,
            4 => Use::Mutex,
            8 => Use::Set,
            _ => Use::Out,
        }
    }
}

#[derive(Default)]
struct Address {
    /// The last that have written, and how.
    writers: Vec<*mut Task>,
    kind: Option<Use>,
    /// Those that came before the set of writers, if it is one.
    before: Vec<*mut Task>,
    readers: Vec<*mut Task>,
    /// What tasks of a `mutexinoutset` take.
    word: Option<Shared>,
}

/// The dependences among the children of a task.
#[derive(Default)]
pub struct Depends {
    addresses: FxHashMap<usize, Address>,
    /// The last task that depended on all memory, and those since.
    all: Option<*mut Task>,
    since: Vec<*mut Task>,
}

impl Depends {
    /// The tasks that it holds, to be let go.
    pub fn into_held(self) -> impl Iterator<Item = *mut Task> {
        let tasks = self.addresses.into_values().flat_map(|Address { writers, before, readers, .. }| {
            writers.into_iter().chain(before).chain(readers)
        });
        tasks.chain(self.all).chain(self.since)
    }

    /// The tasks that come before one with these dependences, each perhaps more than once; `task` is entered, if it is one. What it
    /// has to have alone.
    ///
    /// # Safety
    ///
    /// The task lives.
    unsafe fn add(
        &mut self,
        task: Option<*mut Task>,
        list: &[Dependence],
        inside: Option<&Inside>,
    ) -> (Vec<*mut Task>, Vec<Shared>) {
        let (mut after, mut alone) = (Vec::new(), Vec::new());
        // SAFETY: the caller's promise; the others are held by this.
        unsafe {
            let held = |list: &[*mut Task]| list.iter().map(|&task| Task::hold(task)).collect::<Vec<_>>();
            let everything = list.iter().any(|dependence| dependence.flags & ALL_MEMORY != 0);
            if everything {
                let others = self.addresses.values().flat_map(|known| {
                    known.writers.iter().chain(&known.before).chain(&known.readers).copied()
                });
                let others: Vec<_> = others.chain(self.all).chain(self.since.iter().copied()).collect();
                after.extend(held(&others));
            } else if let Some(all) = self.all {
                after.push(Task::hold(all));
            }
            for dependence in list.iter().filter(|dependence| dependence.flags & ALL_MEMORY == 0) {
                let known = self.addresses.entry(dependence.base).or_default();
                let meaning = dependence.meaning();
                let joins_set = known.readers.is_empty()
                    && known.kind == Some(meaning)
                    && matches!(meaning, Use::Mutex | Use::Set);
                match meaning {
                    Use::In => after.extend(held(&known.writers)),
                    _ if joins_set => after.extend(held(&known.before)),
                    _ => {
                        after.extend(held(&known.writers));
                        after.extend(held(&known.readers));
                    }
                }
                if meaning == Use::Mutex {
                    let word = known.word.get_or_insert_with(|| {
                        let word = Shared::default();
                        if let Some(inside) = inside {
                            team::allocated(inside, word.as_ptr().addr(), size_of::<Word>());
                        }
                        word
                    });
                    alone.push(word.clone());
                }
                let Some(task) = task else { continue };
                match meaning {
                    Use::In => known.readers.push(Task::hold(task)),
                    _ if joins_set => known.writers.push(Task::hold(task)),
                    _ => {
                        for old in std::mem::take(&mut known.before) {
                            Task::let_go(old, inside);
                        }
                        known.before.append(&mut known.writers);
                        known.before.append(&mut known.readers);
                        if meaning == Use::Out {
                            for old in std::mem::take(&mut known.before) {
                                Task::let_go(old, inside);
                            }
                        }
                        known.writers.push(Task::hold(task));
                        known.kind = Some(meaning);
                    }
                }
            }
            if let Some(task) = task {
                if everything {
                    for old in
                        self.all.replace(Task::hold(task)).into_iter().chain(std::mem::take(&mut self.since))
                    {
                        Task::let_go(old, inside);
                    }
                } else if self.all.is_some() {
                    self.since.push(Task::hold(task));
                }
            }
        }
        // In one order everywhere, so that no two tasks wait for each other.
        alone.sort_unstable_by_key(|word| word.as_ptr());
        (after, alone)
    }
}

/// The dependences of a task, one for each address. Who is said to have two of them comes after all others, and before them.
///
/// # Safety
///
/// As clang passes them.
unsafe fn list(
    count: i32,
    first: *const Dependence,
    count2: i32,
    second: *const Dependence,
) -> Vec<Dependence> {
    let part = |count: i32, list: *const Dependence| {
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: the caller's promise.
        (0..count).map(move |number| unsafe { *list.add(number) })
    };
    let mut all: Vec<Dependence> = Vec::new();
    for dependence in part(count, first).chain(part(count2, second)) {
        let same = |known: &&mut Dependence| known.base == dependence.base && known.flags & ALL_MEMORY == 0;
        match all.iter_mut().find(same).filter(|_| dependence.flags & ALL_MEMORY == 0) {
            Some(known) if known.meaning() != dependence.meaning() => known.flags = OUT,
            Some(_) => {}
            None => all.push(dependence),
        }
    }
    all
}

/// `#pragma omp task depend(…)`.
///
/// # Safety
///
/// As clang calls it.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C-unwind" fn __kmpc_omp_task_with_deps(
    _: *const Ident,
    _: i32,
    known: *mut Known,
    count: i32,
    first: *const Dependence,
    count2: i32,
    second: *const Dependence,
) -> i32 {
    let (frame, task) = (team::frame(), Task::of(known));
    member::with(|member, _, inside| {
        // SAFETY: the caller's promise; the running task lives.
        unsafe {
            let parent = member.task;
            if (*parent).is_final {
                return;
            }
            let dependences = list(count, first, count2, second);
            let depends = (*parent).depends.get_or_insert_default();
            let (after, alone) = depends.add(Some(task), &dependences, inside);
            for &other in after.iter().filter(|&&other| !(*other).over) {
                (*other).before.push(task);
                (*task).waits_for += 1;
            }
            ((*task).after, (*task).alone) = (after, alone);
            (*task).depends_on_siblings = true;
        }
    });
    // SAFETY: the caller's promise.
    unsafe { run::create(task, frame) };
    0
}

/// Waits for tasks that have these dependences: `taskwait depend(…)`, and undeferred tasks, which are next and may have to be alone.
///
/// # Safety
///
/// As clang calls it.
unsafe fn wait(dependences: impl FnOnce() -> Vec<Dependence>, frame: usize) {
    let member = member::this();
    let Some(inside) = team::enter() else { return };
    // SAFETY: the caller's promise; this thread's member and the task that it runs.
    unsafe {
        let Some(depends) = &mut (*(*member).task).depends else { return };
        let (after, alone) = depends.add(None, &dependences(), Some(&inside));
        for other in after {
            run::wait_for(&inside, member, other, frame);
            Task::let_go(other, Some(&inside));
        }
        // Unless another task is allocated first, this was for an undeferred one, which begins next.
        (*member).alone = alone;
    }
}

/// Before an undeferred task with dependences.
///
/// # Safety
///
/// As clang calls it.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C-unwind" fn __kmpc_omp_wait_deps(
    _: *const Ident,
    _: i32,
    count: i32,
    first: *const Dependence,
    count2: i32,
    second: *const Dependence,
) {
    let frame = team::frame();
    // SAFETY: the caller's promise.
    unsafe { wait(|| list(count, first, count2, second), frame) };
}

/// `#pragma omp taskwait depend(…)`.
///
/// # Safety
///
/// As clang calls it.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C-unwind" fn __kmpc_omp_taskwait_deps_51(
    _: *const Ident,
    _: i32,
    count: i32,
    first: *const Dependence,
    count2: i32,
    second: *const Dependence,
    _: i32,
) {
    let frame = team::frame();
    // SAFETY: the caller's promise.
    unsafe { wait(|| list(count, first, count2, second), frame) };
}
