//! What one thread of a team does: single, copyprivate, master, masked. Sections, of which each thread may get any.

use std::ffi::{c_int, c_void};

use dagsan_rt::team::{self, Before, Inside, Unwaited};

use crate::barrier;
use crate::depend::Depends;
use crate::member::{self, Member, Team};
use crate::refuse::Ident;
use crate::task::Task;

/// A thread is in a piece of work: what it was before. Tasks that are created there depend on no others elsewhere, since another thread might have
/// created them. But a `taskwait` behind it waits for them, and what this thread then does comes after them: a program may have a thread do so that knows
/// that it was the one. The verdict says what that leaves open.
pub struct Piece {
    before: Before,
    joinable: Vec<*mut Task>,
    unwaited: Unwaited,
    depends: Option<Box<Depends>>,
}

/// This thread gets a piece of work that others might have got. It is for everybody, or one of many.
pub fn begin_piece(member: &mut Member, region: &Team, inside: Option<&Inside>, shares: bool, frame: usize) {
    if let Some(inside) = inside.filter(|_| region.size > 1 && region.checked && member.piece.is_none()) {
        member.piece = team::begin_piece(inside, region.encountering, shares, frame).map(|before| {
            // SAFETY: the running task lives, and this thread runs it.
            let task = unsafe { &mut *member.task };
            let (joinable, unwaited) =
                (std::mem::take(&mut task.joinable), std::mem::take(&mut task.unwaited));
            Piece { before, joinable, unwaited, depends: task.depends.take() }
        });
    }
}

/// It is done with its piece, if it has one.
pub fn end_piece(member: &mut Member, inside: Option<&Inside>, frame: usize) {
    if let Some((piece, inside)) = member.piece.take().zip(inside) {
        let Piece { before, joinable, unwaited, depends } = piece;
        // SAFETY: the running task lives, and this thread runs it; tasks that were created in the piece are held by its lists.
        unsafe {
            let task = &mut *member.task;
            let created = std::mem::replace(&mut task.joinable, joinable);
            created.iter().for_each(|&child| (*child).of_piece = true);
            task.joinable.extend(created);
            let of_piece = std::mem::replace(&mut task.unwaited, unwaited);
            task.unwaited.of_pieces |= of_piece.own || of_piece.of_pieces;
            if let Some(depends) = std::mem::replace(&mut task.depends, depends) {
                depends.into_held().for_each(|task| Task::let_go(task, Some(inside)));
            }
        }
        team::end_piece(inside, before, frame);
    }
}

/// A section begins: `dagsan-pass` has the program say so. One that the same thread has run before has ended.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_section() {
    let frame = team::frame();
    member::with(|member, region, inside| {
        member.sections = 0;
        end_piece(member, inside, frame);
        begin_piece(member, region, inside, false, frame);
    });
}

/// `#pragma omp single`: whoever comes first.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_single(_: *const Ident, _: i32) -> c_int {
    let frame = team::frame();
    member::with(|member, region, inside| {
        let mine = member.singles == region.singles;
        member.singles += 1;
        if mine {
            region.singles += 1;
            begin_piece(member, region, inside, true, frame);
        }
        c_int::from(mine)
    })
}

/// Its end, for the thread that has run it.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_end_single(_: *const Ident, _: i32) {
    let frame = team::frame();
    member::with(|member, _, inside| end_piece(member, inside, frame));
}

/// `copyprivate`: all threads get what the one has that has run the `single`.
///
/// # Safety
///
/// As clang calls it.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn __kmpc_copyprivate(
    _: *const Ident,
    _: i32,
    _: usize,
    data: *mut c_void,
    copy: unsafe extern "C" fn(*mut c_void, *mut c_void),
    did_it: i32,
) {
    let frame = team::frame();
    if did_it != 0 {
        member::with(|_, region, _| region.copied = data);
    }
    barrier::barrier(frame);
    if did_it == 0 {
        let from = member::with(|_, region, _| region.copied);
        // SAFETY: the caller's promise.
        unsafe { copy(data, from) };
    }
    barrier::barrier(frame);
}

/// `#pragma omp master`: thread 0.
#[unsafe(no_mangle)]
pub extern "C" fn __kmpc_master(_: *const Ident, _: i32) -> c_int {
    member::with(|member, _, _| c_int::from(member.number == 0))
}

/// Its end.
#[unsafe(no_mangle)]
pub extern "C" fn __kmpc_end_master(_: *const Ident, _: i32) {}

/// `#pragma omp masked`: the thread of that number.
#[unsafe(no_mangle)]
pub extern "C" fn __kmpc_masked(_: *const Ident, _: i32, filter: i32) -> c_int {
    member::with(|member, _, _| c_int::from(member.number as i32 == filter))
}

/// Its end.
#[unsafe(no_mangle)]
pub extern "C" fn __kmpc_end_masked(_: *const Ident, _: i32) {}
