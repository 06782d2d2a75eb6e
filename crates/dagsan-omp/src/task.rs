//! Tasks: what is known of each, and how long.
//!
//! A task is one piece of memory: what this crate knows of it, then what clang knows, then what the program keeps in it. It is given back when nobody asks for it
//! any more: neither itself, nor a list of its parent's, nor a dependence.

use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr;

use dagsan_rt::team::{self, Inside, Locks, Order, Unwaited};

use crate::depend::Depends;
use crate::group::Group;
use crate::lock::Shared;
use crate::member::{self, Member, Team};
use crate::pool;
use crate::refuse::Ident;

/// What clang knows of a task: the first words of it.
#[repr(C)]
pub struct Known {
    pub shareds: *mut c_void,
    pub entry: Option<unsafe extern "C-unwind" fn(i32, *mut Known) -> i32>,
    pub part: i32,
    pub data: [*mut c_void; 2],
}

/// A task. If it is explicit, [`Known`] and what the program keeps in it follow.
pub struct Task {
    pub handle: team::Task,
    pub team: *mut Team,
    pub parent: *mut Task,
    pub is_final: bool,
    /// Has it run to its end?
    pub over: bool,
    /// Is it part of the task that has created it?
    pub included: bool,
    /// Does it go on where it was, when it has returned?
    pub again: bool,
    /// Was it created in a piece of work that has ended?
    pub of_piece: bool,
    /// The locks that its parent held when it was created.
    pub under: Locks,
    /// How many children have not ended.
    pub children: usize,
    /// Children that a `taskwait` would join, and whether there are others.
    pub joinable: Vec<*mut Task>,
    pub unwaited: Unwaited,
    /// Does its handle say who it is, to those who join it?
    pub known: bool,
    /// Does it take part in a reduction, whose end joins it?
    pub takes_part: bool,
    /// The innermost `taskgroup` that it was created in, and the one that it is in.
    pub group: *mut Group,
    pub inner_group: *mut Group,
    /// Who has a pointer to it: itself until it is over, its parent's list, dependences.
    references: usize,
    /// `depend`: may siblings wait for it, or it for them?
    pub depends_on_siblings: bool,
    /// How many children hold it as their parent.
    linked: usize,
    /// How many tasks it has to wait for, those that it comes after, and those that wait for it.
    pub waits_for: usize,
    pub after: Vec<*mut Task>,
    pub before: Vec<*mut Task>,
    /// What it has to have alone while it runs.
    pub alone: Vec<Shared>,
    /// The dependences of its children.
    pub depends: Option<Box<Depends>>,
    /// `detach`: was the event fulfilled, and what came before that?
    pub detached: Option<Detached>,
    size: usize,
    shareds: usize,
    /// When it became other memory than before: see [`pool`].
    epoch: Option<u64>,
}

/// The state of an event.
pub struct Detached {
    pub fulfilled: bool,
    pub order: Option<Order>,
}

const FINAL: i32 = 2;
const DETACHABLE: i32 = 64;

/// Where [`Known`] is, from the start of a task.
const KNOWN: usize = size_of::<Task>().next_multiple_of(16);

fn layout(size: usize, shareds: usize) -> Layout {
    let bytes = KNOWN + size.next_multiple_of(16) + shareds;
    // A task whose size is beyond all reckoning could not be allocated either.
    Layout::from_size_align(bytes, 16).unwrap_or(Layout::new::<Task>())
}

impl Task {
    fn new(team: *mut Team, parent: *mut Task, is_final: bool) -> Task {
        // SAFETY: the team lives.
        let handle = unsafe { (*team).encountering };
        Task {
            handle,
            team,
            parent,
            is_final,
            over: false,
            included: false,
            again: false,
            of_piece: false,
            under: Locks::default(),
            children: 0,
            joinable: Vec::new(),
            unwaited: Unwaited::default(),
            known: true,
            takes_part: false,
            group: ptr::null_mut(),
            inner_group: ptr::null_mut(),
            references: 1,
            depends_on_siblings: false,
            linked: 0,
            waits_for: 0,
            after: Vec::new(),
            before: Vec::new(),
            alone: Vec::new(),
            depends: None,
            detached: None,
            size: 0,
            shareds: 0,
            epoch: None,
        }
    }

    /// An implicit task.
    pub fn implicit(team: *mut Team, is_final: bool) -> *mut Task {
        Task::place(Task::new(team, ptr::null_mut(), is_final), 0, 0)
    }

    /// A task in memory of its own, with room for what clang knows.
    fn place(task: Task, size: usize, shareds: usize) -> *mut Task {
        let (at, epoch) = pool::take(layout(size, shareds));
        let at = at.cast::<Task>();
        // SAFETY: the layout has room for the task at least, and is that of what follows.
        unsafe { at.write(Task { size, shareds, epoch, ..task }) };
        at
    }

    /// What the program keeps in it is other memory than before.
    ///
    /// # Safety
    ///
    /// It lives, and nobody knows it yet.
    unsafe fn is_new(task: *mut Task, inside: &Inside) {
        // SAFETY: the caller's promise.
        unsafe {
            // All of the piece: the next task in it may be larger than this one, and smaller than the one before.
            let whole = pool::rounded(layout((*task).size, (*task).shareds)).size();
            let (start, size) = (Task::known(task).addr(), whole - KNOWN);
            // Memory that comes from the heap may have been anybody's.
            (*task).epoch = Some(team::reused(inside, start, size, (*task).epoch.unwrap_or(u64::MAX)));
        }
    }

    /// What clang knows of it.
    pub fn known(task: *mut Task) -> *mut Known {
        task.wrapping_byte_add(KNOWN).cast()
    }

    /// The task of what clang knows.
    pub fn of(known: *mut Known) -> *mut Task {
        known.wrapping_byte_sub(KNOWN).cast()
    }

    /// Somebody has a pointer to it.
    ///
    /// # Safety
    ///
    /// It lives.
    pub unsafe fn hold(task: *mut Task) -> *mut Task {
        // SAFETY: the caller's promise; whoever calls has the turn.
        unsafe { (*task).references += 1 };
        task
    }

    /// A child holds its parent.
    ///
    /// # Safety
    ///
    /// It lives.
    unsafe fn link(parent: *mut Task) {
        // SAFETY: the caller's promise.
        unsafe { (*Task::hold(parent)).linked += 1 };
    }

    /// A task that is over holds its parent no longer, unless it has descendants that are not: these are asked whom they descend from.
    ///
    /// # Safety
    ///
    /// It lives.
    pub unsafe fn unlink(task: *mut Task, inside: Option<&Inside>) {
        let (mut task, mut held) = (task, None);
        // SAFETY: the caller's promise; parents are held until they are let go.
        unsafe {
            while (*task).over && (*task).linked == 0 && !(*task).parent.is_null() {
                let parent = (*task).parent;
                (*parent).linked -= 1;
                if let Some(held) = held.replace(parent) {
                    Task::let_go(held, inside);
                }
                task = parent;
            }
            if let Some(held) = held {
                Task::let_go(held, inside);
            }
        }
    }

    /// Somebody has it no longer.
    ///
    /// # Safety
    ///
    /// It was held.
    pub unsafe fn let_go(task: *mut Task, inside: Option<&Inside>) {
        // Who holds nobody any more may be the last who was held by another, and so on: no recursion, chains may be long.
        let (mut left, mut next) = (Vec::new(), Some(task));
        while let Some(task) = next.take().or_else(|| left.pop()) {
            // SAFETY: the caller's promise, and for the others that of those who held them; whoever calls has the turn.
            unsafe {
                (*task).references -= 1;
                if (*task).references > 0 {
                    continue;
                }
                let owned = ptr::read(task);
                pool::give_back(task.cast(), layout(owned.size, owned.shareds), owned.epoch);
                left.extend(owned.joinable);
                left.extend(owned.depends.into_iter().flat_map(|depends| depends.into_held()));
                let Some(inside) = inside else { continue };
                if !owned.parent.is_null() && !owned.included && owned.known {
                    team::forget(inside, owned.handle);
                }
                if let Some(order) = owned.detached.and_then(|detached| detached.order) {
                    team::drop_order(inside, order);
                }
            }
        }
    }

    /// The task that it is to the detector: itself, or the one that it is part of.
    ///
    /// # Safety
    ///
    /// It lives, as its ancestors do that have not ended.
    pub unsafe fn that_is_one(task: *mut Task) -> *mut Task {
        let mut task = task;
        // SAFETY: the caller's promise; a task that is part of another has a parent, which has not ended.
        unsafe {
            while (*task).included && !(*task).parent.is_null() {
                task = (*task).parent;
            }
        }
        task
    }

    /// Is it `ancestor`, or has that created it, or a task that has?
    ///
    /// # Safety
    ///
    /// It lives, as its ancestors do that have not ended.
    pub unsafe fn descends_from(task: *const Task, ancestor: *const Task) -> bool {
        let mut task = task;
        while !task.is_null() {
            if task == ancestor {
                return true;
            }
            // SAFETY: a task is held by its children.
            task = unsafe { (*task).parent };
        }
        false
    }
}

/// Allocates a task.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_omp_task_alloc(
    _: *const Ident,
    _: i32,
    flags: i32,
    size: usize,
    shareds: usize,
    entry: Option<unsafe extern "C-unwind" fn(i32, *mut Known) -> i32>,
) -> *mut Known {
    alloc(flags, size, shareds, entry, team::frame())
}

/// Allocates a task of `target nowait`: it runs on the host.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_omp_target_task_alloc(
    _: *const Ident,
    _: i32,
    flags: i32,
    size: usize,
    shareds: usize,
    entry: Option<unsafe extern "C-unwind" fn(i32, *mut Known) -> i32>,
    _device: i64,
) -> *mut Known {
    alloc(flags, size, shareds, entry, team::frame())
}

fn alloc(
    flags: i32,
    size: usize,
    shareds: usize,
    entry: Option<unsafe extern "C-unwind" fn(i32, *mut Known) -> i32>,
    frame: usize,
) -> *mut Known {
    member::has_tasks(frame);
    member::with(|member, region, inside| {
        member.alone.clear();
        let parent = member.task;
        // SAFETY: the running task lives.
        let is_final = flags & FINAL != 0 || unsafe { (*parent).is_final };
        let mut task = Task::new(region, parent, is_final);
        if flags & DETACHABLE != 0 {
            task.detached = Some(Detached { fulfilled: false, order: inside.and_then(team::order) });
        }
        let task = Task::place(task, size, shareds);
        let known = Task::known(task);
        if let Some(inside) = inside {
            // SAFETY: it was just made.
            unsafe { Task::is_new(task, inside) };
        }
        // SAFETY: there is room for it, and the parent lives until its children are gone.
        unsafe {
            Task::link(parent);
            let shared = known.wrapping_byte_add(size.next_multiple_of(16)).cast();
            let shareds = if shareds > 0 { shared } else { ptr::null_mut() };
            known.write(Known { shareds, entry, part: 0, data: [ptr::null_mut(); 2] });
        }
        known
    })
}

/// A copy of a task that has not started, for a loop of tasks.
///
/// # Safety
///
/// It lives.
pub unsafe fn copy(
    member: &Member,
    region: &mut Team,
    original: *mut Task,
    inside: Option<&Inside>,
) -> *mut Task {
    // SAFETY: the caller's promise; the copy has as much room.
    unsafe {
        let Task { size, shareds, is_final, .. } = *original;
        let task = Task::place(Task::new(region, member.task, is_final), size, shareds);
        Task::link(member.task);
        let (from, to) = (Task::known(original), Task::known(task));
        let bytes = size.next_multiple_of(16) + shareds;
        if let Some(inside) = inside {
            Task::is_new(task, inside);
        }
        ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast(), bytes);
        if shareds > 0 {
            (*to).shareds = to.wrapping_byte_add(size.next_multiple_of(16)).cast();
        }
        task
    }
}

/// Drops a task that has not started.
///
/// # Safety
///
/// It lives, and nobody else knows it.
pub unsafe fn discard(task: *mut Task, inside: Option<&Inside>) {
    // SAFETY: the caller's promise.
    unsafe {
        (*task).included = true;
        (*task).over = true;
        Task::unlink(task, inside);
        Task::let_go(task, inside);
    }
}

/// `affinity`: a hint.
#[unsafe(no_mangle)]
pub extern "C" fn __kmpc_omp_reg_task_with_affinity(
    _: *const Ident,
    _: i32,
    _: *mut Known,
    _: i32,
    _: *mut c_void,
) -> i32 {
    0
}
