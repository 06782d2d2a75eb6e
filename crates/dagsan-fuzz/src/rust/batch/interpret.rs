//! Programs that are interpreted: the text of one comes on standard input, and bodies do what it says. Compiled in the crate that is
//! written only.
//!
//! The text is read before any task runs, and tasks only read what came of it: it has no races of its own. The function that does so has
//! no hooks, so that a strand without accesses has none, but for those of unoptimised builds. Other than in programs that are
//! compiled, all accesses of a form come from one place in the code.

use std::io::Read as _;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, RwLockReadGuard, RwLockWriteGuard};

use crate::op::{Form, OWN, Op, Place, Sizes, Start, Word};
use crate::support::*;

struct Block {
    procedure: bool,
    ops: Vec<Op>,
}

/// A body, among all of its program.
#[derive(Clone, Copy)]
pub struct Code {
    blocks: &'static [Block],
    number: usize,
}

impl Code {
    fn other(self, number: usize) -> Code {
        Code { number, ..self }
    }

    /// Another one, as a task's.
    fn task(self, number: usize) -> Body {
        let code = self.other(number);
        if self.blocks[number].procedure { Body::Procedure(code) } else { Body::Plain(code) }
    }
}

/// The program of standard input.
pub fn program() -> Result<(Sizes, Body), String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| format!("cannot read the program: {error}"))?;
    let mut lines = text.lines();
    let sizes = lines.next().and_then(|line| line.parse().ok()).ok_or("the first line has no sizes")?;
    let mut blocks = Vec::<Block>::new();
    for line in lines {
        match (line.parse(), line.parse(), blocks.last_mut()) {
            (Ok(Start::Body { procedure }), ..) => blocks.push(Block { procedure, ops: Vec::new() }),
            (_, Ok(op), Some(block)) => block.ops.push(op),
            _ => return Err(format!("no operation: {line}")),
        }
    }
    let bodies = blocks.len();
    let leads_out = |op: &Op| bodies_of(op).into_iter().flatten().any(|body| body >= bodies);
    if bodies == 0 || blocks.iter().flat_map(|block| &block.ops).any(leads_out) {
        return Err("a body is missing".to_owned());
    }
    let main = Code { blocks: Vec::leak(blocks), number: 0 };
    Ok((sizes, main.task(0)))
}

/// The bodies that an operation names.
fn bodies_of(op: &Op) -> [Option<usize>; 2] {
    match *op {
        Op::Async { body } | Op::Future { body, .. } | Op::Spawn { body } | Op::Detach { body } => [Some(body), None],
        Op::Finish { body } | Op::Scope { body } | Op::ScopeElsewhere { body } => [Some(body), None],
        Op::Call { body } | Op::Isolated { body } => [Some(body), None],
        Op::ThreadScope { body } | Op::Scoped { body } => [Some(body), None],
        Op::Thread { body, .. } | Op::DetachThread { body } => [Some(body), None],
        Op::Join { first, second } => [Some(first), Some(second)],
        _ => [None, None],
    }
}

/// A lock that is held, to be given back.
enum Guard<'l> {
    Mutex(#[allow(dead_code)] MutexGuard<'l, ()>),
    Exclusive(#[allow(dead_code)] RwLockWriteGuard<'l, ()>),
    Shared(#[allow(dead_code)] RwLockReadGuard<'l, ()>),
}

/// A body that holds more locks at a time fails.
const HELD: usize = 32;

type Held<'l> = [Option<(usize, Guard<'l>)>; HELD];

#[inline(never)]
fn hold<'l>(held: &mut Held<'l>, name: usize, guard: Guard<'l>) {
    let free = held.iter_mut().find(|slot| slot.is_none()).expect("no body holds so many locks");
    *free = Some((name, guard));
}

/// Has hooks, which see it.
#[inline(never)]
fn give_back(held: &mut Held, name: usize) {
    let is_it = |slot: &&mut Option<(usize, Guard)>| slot.as_ref().is_some_and(|(held, _)| *held == name);
    if let Some(slot) = held.iter_mut().find(is_it) {
        *slot = None;
    }
}

/// Does what the body says.
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub fn run(code: Code, m: &'static Memory, s: Scope, p: Here) {
    let own_words = [const { AtomicU64::new(1) }; OWN];
    let own_locks = [const { Mutex::new(()) }; OWN];
    // Not on the heap: a free in a section would be delivered at once, and what came before it with it.
    let mut held: Held = [const { None }; HELD];
    let word = |word| match word {
        Word::Own(slot) => &own_words[slot],
        Word::Shared(name) => m.sync(name),
    };
    // SAFETY: the number is that of a body; the text was looked through.
    let block = unsafe { &*code.blocks.as_ptr().add(code.number) };
    let (ops, count) = (block.ops.as_ptr(), block.ops.len());
    let mut next = 0;
    while next < count {
        // SAFETY: there are so many. Not by an iterator, which has hooks where it is not inlined.
        let op = unsafe { &*ops.add(next) };
        next += 1;
        match *op {
            Op::Read { form, place, len } => read_as(form, at(m, place), len),
            Op::Write { form, place, len } => write_as(form, at(m, place), len),
            Op::AtomicLoad { place, len } => match len {
                1 => m.atomic_load_1(at(m, place)),
                2 => m.atomic_load_2(at(m, place)),
                4 => m.atomic_load_4(at(m, place)),
                _ => m.atomic_load_8(at(m, place)),
            },
            Op::AtomicStore { place, len } => match len {
                1 => m.atomic_store_1(at(m, place)),
                2 => m.atomic_store_2(at(m, place)),
                4 => m.atomic_store_4(at(m, place)),
                _ => m.atomic_store_8(at(m, place)),
            },
            Op::Free { at, size } => m.free(at, size),
            Op::Async { body } => m.spawn_async(s, code.task(body)),
            Op::Future { name, body } => m.future(s, name, code.task(body)),
            Op::Spawn { body } => m.spawn(s, p, code.task(body)),
            Op::Join { first, second } => m.join(s, p, code.task(first), code.other(second)),
            Op::Finish { body } => m.finish(p, code.other(body)),
            Op::Scope { body } => m.scope(p, code.other(body)),
            Op::ScopeElsewhere { body } => m.scope_elsewhere(p, code.other(body)),
            Op::Detach { body } => m.detach(code.task(body)),
            Op::Call { body } => m.call(s, code.other(body)),
            Op::Isolated { body } => m.isolated(s, code.other(body)),
            Op::Sync => p.sync(),
            Op::GetFuture { name } => m.get_future(name),
            Op::Set { name } => m.set(name),
            Op::Get { name } => m.get(name),
            Op::OwnLock { name, slot } => hold(&mut held, name, Guard::Mutex(own_lock(&own_locks[slot]))),
            Op::Mutex { name } => hold(&mut held, name, Guard::Mutex(m.mutex(name))),
            Op::Exclusive { name } => hold(&mut held, name, Guard::Exclusive(m.exclusive(name))),
            Op::Shared { name } => hold(&mut held, name, Guard::Shared(m.shared(name))),
            Op::Unlock { name } => give_back(&mut held, name),
            Op::Store { word: name } => store(word(name)),
            Op::Update { word: name } => update(word(name)),
            Op::Load { word: name } => load(word(name)),
            Op::AcquireUpdate { word: name } => acquire_update(word(name)),
            Op::Tell { number } => tell(number),
            Op::Yield => std::thread::yield_now(),
            Op::ThreadScope { body } => m.thread_scope(p, code.other(body)),
            Op::Scoped { body } => m.scoped(s, code.task(body)),
            Op::Thread { name, body } => m.thread(name, code.task(body)),
            Op::JoinThread { name } => m.join_thread(name),
            Op::DetachThread { body } => m.detach_thread(code.task(body)),
            Op::Notify { name } => m.notify(name),
            Op::Wait { name, number } => m.wait(name, number),
            Op::Send { name } => m.send(name),
            Op::Receive { name, number } => m.receive(name, number),
        }
    }
}

#[inline(always)]
fn at(m: &Memory, place: Place) -> *mut u8 {
    match place {
        Place::Arena(at) => m.arena(at),
        Place::Pages(at) => m.pages(at),
    }
}

#[inline(never)]
fn read_word(at: *mut u8, len: usize) {
    match len {
        1 => read_here::<u8>(at),
        2 => read_here::<u16>(at),
        4 => read_here::<u32>(at),
        8 => read_here::<u64>(at),
        _ => read_here::<u128>(at),
    }
}

#[inline(never)]
fn write_word(at: *mut u8, len: usize) {
    match len {
        1 => write_here::<u8>(at),
        2 => write_here::<u16>(at),
        4 => write_here::<u32>(at),
        8 => write_here::<u64>(at),
        _ => write_here::<u128>(at),
    }
}

/// Functions for every length that programs have. Others are accessed as slices.
macro_rules! by_length {
    ($name:ident: $here:ident $word:ident $unaligned:ident $value:ident $each:ident $slice:ident; $($len:literal)*) => {
        #[inline(never)]
        fn $name(form: Form, at: *mut u8, len: usize) {
            match (form, len) {
                (Form::Here, _) => $here(at, len),
                (Form::Word, 1) => $word::<u8>(at),
                (Form::Word, 2) => $word::<u16>(at),
                (Form::Word, 4) => $word::<u32>(at),
                (Form::Word, 8) => $word::<u64>(at),
                (Form::Word, 16) => $word::<u128>(at),
                (Form::Unaligned, 2) => $unaligned::<u16>(at),
                (Form::Unaligned, 4) => $unaligned::<u32>(at),
                (Form::Unaligned, 8) => $unaligned::<u64>(at),
                (Form::Unaligned, 16) => $unaligned::<u128>(at),
                $((Form::Value, $len) => $value::<$len>(at),
                (Form::Each, $len) => $each::<$len>(at),
                (Form::Array, $len) => $unaligned::<[u8; $len]>(at),)*
                _ => $slice(at, len),
            }
        }
    };
}

by_length! { read_as: read_word read read_unaligned read_value read_each read_slice; 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 24 32 48 64 100 }
by_length! { write_as: write_word write write_unaligned write_value write_each write_slice; 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 24 32 48 64 100 }
