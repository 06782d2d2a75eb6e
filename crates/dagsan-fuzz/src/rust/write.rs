//! Programs as crates: a batch of them as Rust, or the crate that interprets them and the text of each.
//!
//! In Rust every body is a function, which the functions of `support.rs` call: so the generic code of dagsan-task is compiled once
//! and not for every task, and a batch of hundreds takes seconds.

use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use super::lower::{Body, Lowered, lower};
use super::op::{Form, OWN, Op, Place, Start, Word};
use super::{Layout, Said};

const SUPPORT: &str = include_str!("batch/support.rs");
const OPS: &str = include_str!("batch/op.rs");
const INTERPRET: &str = include_str!("batch/interpret.rs");
const MAIN: &str = "\
//! Random programs, of which a process runs one.

// No batch needs everything, and no body needs all that it is given.
#![allow(dead_code, unused_imports, unused_variables)]
#![cfg_attr(dagsan, feature(sanitize))]

mod op;
mod programs;
mod support;

fn main() -> std::process::ExitCode {
    support::main(programs::program())
}
";

/// Writes a crate with the programs as Rust, for the dagsan-task at `task`. The argument of a process is the number of the program.
pub fn write_batch(directory: &Path, task: &Path, programs: &[(&Said, &Layout)]) -> io::Result<()> {
    write_crate(directory, task, &rust(programs))
}

/// Writes the crate that interprets programs: see [`interpreted`].
pub fn write_interpreter(directory: &Path, task: &Path) -> io::Result<()> {
    write_crate(directory, task, INTERPRET)
}

/// The text of a program for the standard input of the crate that interprets it.
pub fn interpreted(said: &Said, layout: &Layout) -> String {
    let Lowered { sizes, bodies } = lower(said, layout);
    let mut text = format!("{sizes}\n");
    for Body { procedure, ops } in bodies {
        _ = writeln!(text, "{}", Start::Body { procedure });
        ops.iter().for_each(|op| _ = writeln!(text, "{op}"));
    }
    text
}

/// Files that would be the same are left alone.
fn write_crate(directory: &Path, task: &Path, programs: &str) -> io::Result<()> {
    let manifest = format!(
        "[package]\nname = \"batch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\ndagsan-task = {{ path = {:?} }}\nrayon = \"1\"\n\n[workspace]\n",
        task.display().to_string(),
    );
    fs::create_dir_all(directory.join("src"))?;
    let files = [
        ("Cargo.toml", manifest.as_str()),
        ("src/main.rs", MAIN),
        ("src/op.rs", OPS),
        ("src/support.rs", SUPPORT),
        ("src/programs.rs", programs),
    ];
    for (name, text) in files {
        let path = directory.join(name);
        if fs::read_to_string(&path).ok().as_deref() != Some(text) {
            fs::write(&path, text)?;
        }
    }
    Ok(())
}

/// What the module of programs begins with.
const START: &str = "\
//! The programs of this batch.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use crate::op::Sizes;
use crate::support::*;

pub type Code = fn(&'static Memory, Scope, Here);

pub fn run(code: Code, memory: &'static Memory, scope: Scope, here: Here) {
    code(memory, scope, here);
}

/// The program whose number is the argument.
pub fn program() -> Result<(Sizes, Body), String> {
    let number = std::env::args().nth(1).and_then(|number| number.parse::<usize>().ok());
    let program = number.and_then(|number| PROGRAMS.get(number));
    program.copied().ok_or_else(|| format!(\"the argument is the number of a program, below {}\", PROGRAMS.len()))
}

";

/// The programs, as a module.
fn rust(programs: &[(&Said, &Layout)]) -> String {
    let programs: Vec<Lowered> = programs.iter().map(|(said, layout)| lower(said, layout)).collect();
    let mut text = format!("{START}const PROGRAMS: &[(Sizes, Body)] = &[\n");
    for (program, Lowered { sizes, bodies }) in programs.iter().enumerate() {
        _ = writeln!(text, "    ({sizes:?}, {}),", Writer { program, bodies }.task(0));
    }
    text += "];\n";
    for (program, Lowered { bodies, .. }) in programs.iter().enumerate() {
        let writer = Writer { program, bodies };
        for (number, body) in bodies.iter().enumerate() {
            _ = writeln!(text, "\nfn {}(m: &'static Memory, s: Scope, p: Here) {{", writer.function(number));
            for slot in own_words(body) {
                _ = writeln!(text, "    let word_{slot} = AtomicU64::new(1);");
            }
            body.ops.iter().for_each(|op| _ = writeln!(text, "    {};", writer.op(op)));
            text += "}\n";
        }
    }
    text
}

/// The atomics on the stack of the body.
fn own_words(body: &Body) -> impl Iterator<Item = usize> {
    let uses = |op: &Op, slot| match op {
        Op::Store { word } | Op::Update { word } | Op::Load { word } | Op::AcquireUpdate { word } => {
            *word == Word::Own(slot)
        }
        _ => false,
    };
    (0..OWN).filter(move |&slot| body.ops.iter().any(|op| uses(op, slot)))
}

struct Writer<'b> {
    /// Its number.
    program: usize,
    bodies: &'b [Body],
}

impl Writer<'_> {
    fn function(&self, body: usize) -> String {
        format!("p{}_{body}", self.program)
    }

    /// A value of the type `Body`.
    fn task(&self, body: usize) -> String {
        let kind = if self.bodies[body].procedure { "Procedure" } else { "Plain" };
        format!("Body::{kind}({})", self.function(body))
    }

    fn op(&self, op: &Op) -> String {
        match *op {
            Op::Read { form, place, len } => access("read", form, place, len),
            Op::Write { form, place, len } => access("write", form, place, len),
            Op::AtomicLoad { place, len } => format!("m.atomic_load_{len}({})", at(place)),
            Op::AtomicStore { place, len } => format!("m.atomic_store_{len}({})", at(place)),
            Op::Free { at, size } => format!("m.free({at}, {size})"),
            Op::Async { body } => format!("m.spawn_async(s, {})", self.task(body)),
            Op::Future { name, body } => format!("m.future(s, {name}, {})", self.task(body)),
            Op::Spawn { body } => format!("m.spawn(s, p, {})", self.task(body)),
            Op::Join { first, second } => {
                format!("m.join(s, p, {}, {})", self.task(first), self.function(second))
            }
            Op::Finish { body } => format!("m.finish(p, {})", self.function(body)),
            Op::Scope { body } => format!("m.scope(p, {})", self.function(body)),
            Op::ScopeElsewhere { body } => format!("m.scope_elsewhere(p, {})", self.function(body)),
            Op::Detach { body } => format!("m.detach({})", self.task(body)),
            Op::Call { body } => format!("m.call(s, {})", self.function(body)),
            Op::Isolated { body } => format!("m.isolated(s, {})", self.function(body)),
            Op::Sync => "p.sync()".to_owned(),
            Op::GetFuture { name } => format!("m.get_future({name})"),
            Op::Set { name } => format!("m.set({name})"),
            Op::Get { name } => format!("m.get({name})"),
            Op::OwnLock { name, .. } => {
                format!("let own_{name} = Mutex::new(()); let lock_{name} = own_lock(&own_{name})")
            }
            Op::Mutex { name } => format!("let lock_{name} = m.mutex({name})"),
            Op::Exclusive { name } => format!("let lock_{name} = m.exclusive({name})"),
            Op::Shared { name } => format!("let lock_{name} = m.shared({name})"),
            Op::Unlock { name } => format!("drop(lock_{name})"),
            Op::Store { word } => format!("store({})", self::word(word)),
            Op::Update { word } => format!("update({})", self::word(word)),
            Op::Load { word } => format!("load({})", self::word(word)),
            Op::AcquireUpdate { word } => format!("acquire_update({})", self::word(word)),
            Op::Tell { number } => format!("tell({number})"),
            Op::Yield => "std::thread::yield_now()".to_owned(),
            Op::ThreadScope { body } => format!("m.thread_scope(p, {})", self.function(body)),
            Op::Scoped { body } => format!("m.scoped(s, {})", self.task(body)),
            Op::Thread { name, body } => format!("m.thread({name}, {})", self.task(body)),
            Op::JoinThread { name } => format!("m.join_thread({name})"),
            Op::DetachThread { body } => format!("m.detach_thread({})", self.task(body)),
            Op::Notify { name } => format!("m.notify({name})"),
            Op::Wait { name, number } => format!("m.wait({name}, {number})"),
            Op::Send { name } => format!("m.send({name})"),
            Op::Receive { name, number } => format!("m.receive({name}, {number})"),
        }
    }
}

fn word(word: Word) -> String {
    match word {
        Word::Own(slot) => format!("&word_{slot}"),
        Word::Shared(name) => format!("m.sync({name})"),
    }
}

fn at(place: Place) -> String {
    match place {
        Place::Arena(at) => format!("m.arena({at})"),
        Place::Pages(at) => format!("m.pages({at})"),
    }
}

fn access(what: &str, form: Form, place: Place, len: usize) -> String {
    let (place, bits) = (at(place), len * 8);
    match form {
        Form::Word => format!("{what}::<u{bits}>({place})"),
        Form::Here => format!("{what}_here::<u{bits}>({place})"),
        Form::Unaligned => format!("{what}_unaligned::<u{bits}>({place})"),
        Form::Value => format!("{what}_value::<{len}>({place})"),
        Form::Each => format!("{what}_each::<{len}>({place})"),
        Form::Slice => format!("{what}_slice({place}, {len})"),
        Form::Array => format!("{what}_unaligned::<[u8; {len}]>({place})"),
    }
}
