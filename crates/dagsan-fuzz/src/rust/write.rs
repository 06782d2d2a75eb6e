//! A batch of programs as a crate.
//!
//! Every body is a function, which the functions of `support.rs` call: so the generic code of dagsan-task is compiled once
//! and not for every task, and a batch of hundreds takes seconds. The main task runs in a finish only if the program
//! has asyncs, futures or other finishes; the body of a task is a procedure only if it spawns or syncs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use dagsan_core::{AccessKind, Bytes, LockMode};

use super::nest::{Form, Nest, is_procedure};
use super::{Layout, Region, Said};
use crate::program::{Program, Stmt};

const SUPPORT: &str = include_str!("batch/support.rs");
const MAIN: &str = "\
//! Random programs. The argument is the number of the one to run.

// No batch needs everything, and no body needs all that it is given.
#![allow(dead_code, unused_imports, unused_variables)]

mod programs;
mod support;

fn main() -> std::process::ExitCode {
    support::main(programs::PROGRAMS)
}
";

/// Writes the crate, which runs the programs with the dagsan-task at `task`. Files that would be the same are left alone.
pub fn write_batch(directory: &Path, task: &Path, programs: &[(&Said, &Layout)]) -> io::Result<()> {
    let manifest = format!(
        "[package]\nname = \"batch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\ndagsan-task = {{ path = {:?} }}\nrayon = \"1\"\n\n[workspace]\n",
        task.display().to_string(),
    );
    fs::create_dir_all(directory.join("src"))?;
    let files = [
        ("Cargo.toml", manifest),
        ("src/main.rs", MAIN.to_owned()),
        ("src/support.rs", SUPPORT.to_owned()),
        ("src/programs.rs", rust(programs)),
    ];
    for (name, text) in files {
        let path = directory.join(name);
        if fs::read_to_string(&path).ok().as_deref() != Some(&text) {
            fs::write(&path, text)?;
        }
    }
    Ok(())
}

/// The programs, as a module.
fn rust(programs: &[(&Said, &Layout)]) -> String {
    let mut text = String::from(
        "//! The programs of this batch.\n\nuse std::sync::Mutex;\nuse std::sync::atomic::AtomicU64;\n\nuse crate::support::*;\n\n",
    );
    text += "pub const PROGRAMS: &[Program] = &[\n";
    for (number, (said, layout)) in programs.iter().enumerate() {
        let sizes = Sizes::of(&said.program);
        let finish = said
            .program
            .walk()
            .any(|stmt| matches!(stmt, Stmt::Async(_) | Stmt::Finish(_) | Stmt::Future(..)));
        let main = Task { name: format!("p{number}_0"), procedure: is_procedure(&said.program.body) };
        _ = writeln!(
            text,
            "    Program {{ arena: {}, pages: {}, heap: {}, promises: {}, futures: {}, locks: {}, syncs: {}, finish: {finish}, \
             main: {} }},",
            layout.size(Region::Arena),
            layout.size(Region::Pages),
            number % 2 == 1,
            sizes.promises,
            sizes.futures,
            sizes.locks,
            sizes.syncs,
            main.value(),
        );
    }
    text += "];\n";
    for (number, (said, layout)) in programs.iter().enumerate() {
        let shared = said.program.walk().filter_map(|stmt| match stmt {
            Stmt::Lock(name, LockMode::Shared) => Some(*name),
            _ => None,
        });
        let nest = Nest::of(said);
        let mut writer = Writer {
            number,
            layout,
            nest,
            shared: shared.collect(),
            own: Own::of(&said.program),
            bodies: Vec::new(),
            text: &mut text,
        };
        writer.program(&said.program);
    }
    text
}

/// Names that only one piece of code uses: what they stand for can be on its stack, and means nothing to others.
#[derive(Debug, Default)]
struct Own {
    /// Locks that are taken in one place, which runs once.
    locks: BTreeSet<u32>,
    /// Objects that one body alone releases and acquires.
    syncs: BTreeSet<u32>,
}

impl Own {
    fn of(program: &Program) -> Own {
        let mut taken: BTreeMap<u32, u32> = BTreeMap::new();
        let mut used: BTreeMap<u32, u32> = BTreeMap::new();
        let bodies = program.walk().filter_map(Stmt::body).chain([&program.body]);
        for body in bodies {
            let names: BTreeSet<u32> = body.iter().filter_map(sync_of).collect();
            names.into_iter().for_each(|name| *used.entry(name).or_default() += 1);
            for stmt in body {
                if let Stmt::Lock(name, _) = stmt {
                    *taken.entry(*name).or_default() += 1;
                }
            }
        }
        let once = |names: BTreeMap<u32, u32>| names.into_iter().filter(|(_, count)| *count == 1);
        Own {
            locks: once(taken).map(|(name, _)| name).collect(),
            syncs: once(used).map(|(name, _)| name).collect(),
        }
    }
}

fn sync_of(stmt: &Stmt) -> Option<u32> {
    match stmt {
        Stmt::Release(name, _) | Stmt::Acquire(name) => Some(*name),
        _ => None,
    }
}

fn uses_sync(body: &[Stmt], name: u32) -> bool {
    body.iter().any(|stmt| sync_of(stmt) == Some(name))
}

/// How many names of each kind there are, up to the largest.
#[derive(Default)]
struct Sizes {
    promises: u32,
    futures: u32,
    locks: u32,
    syncs: u32,
}

impl Sizes {
    fn of(program: &Program) -> Sizes {
        let mut sizes = Sizes::default();
        for stmt in program.walk() {
            let (size, name) = match stmt {
                Stmt::Set(name) | Stmt::Get(name) => (&mut sizes.promises, name),
                Stmt::Future(name, _) | Stmt::GetFuture(name) => (&mut sizes.futures, name),
                Stmt::Lock(name, _) | Stmt::Unlock(name) => (&mut sizes.locks, name),
                Stmt::Release(name, _) | Stmt::Acquire(name) => (&mut sizes.syncs, name),
                _ => continue,
            };
            *size = (*size).max(name + 1);
        }
        sizes
    }
}

/// A function that is the body of a task.
struct Task {
    name: String,
    procedure: bool,
}

impl Task {
    /// Its value of the type `Body`.
    fn value(&self) -> String {
        let kind = if self.procedure { "Procedure" } else { "Plain" };
        format!("Body::{kind}({})", self.name)
    }
}

/// A body that is to be written.
struct Pending<'p> {
    name: String,
    body: &'p [Stmt],
    procedure: bool,
}

struct Writer<'p, 't> {
    number: usize,
    layout: &'p Layout,
    nest: Nest,
    /// The locks that are also held in shared mode.
    shared: BTreeSet<u32>,
    own: Own,
    bodies: Vec<Pending<'p>>,
    text: &'t mut String,
}

impl<'p> Writer<'p, '_> {
    fn program(&mut self, program: &'p Program) {
        _ = self.task(&program.body);
        let mut next = 0;
        while next < self.bodies.len() {
            let Pending { name, body, procedure } = &self.bodies[next];
            let (name, body, procedure) = (name.clone(), *body, *procedure);
            let parameter = if procedure { "p: &Procedure" } else { "" };
            _ = writeln!(self.text, "\nfn {name}(m: &'static Memory, s: Scope, {parameter}) {{");
            for sync in self.own.syncs.iter().filter(|&&sync| uses_sync(body, sync)) {
                _ = writeln!(self.text, "    let sync_{sync} = AtomicU64::new(1);");
            }
            self.body(body, procedure);
            _ = writeln!(self.text, "}}");
            next += 1;
        }
    }

    fn function(&mut self, body: &'p [Stmt], procedure: bool) -> String {
        let name = format!("p{}_{}", self.number, self.bodies.len());
        self.bodies.push(Pending { name: name.clone(), body, procedure });
        name
    }

    /// The body of a task, as a value of the type `Body`.
    fn task(&mut self, body: &'p [Stmt]) -> String {
        let procedure = is_procedure(body);
        Task { name: self.function(body, procedure), procedure }.value()
    }

    fn body(&mut self, mut body: &'p [Stmt], procedure: bool) {
        while let Some((stmt, mut rest)) = body.split_first() {
            let half = match stmt {
                Stmt::Spawn(spawned) => self.nest.join(spawned, rest).map(|half| (spawned, half)),
                _ => None,
            };
            if let Some((spawned, half)) = half {
                let second;
                (second, rest) = rest.split_at(half);
                let (first, second) = (self.task(spawned), self.function(second, true));
                _ = writeln!(self.text, "    m.join(s, p, {first}, {second});");
            } else {
                self.stmt(stmt, rest.first(), procedure);
            }
            body = rest;
        }
    }

    fn stmt(&mut self, stmt: &'p Stmt, next: Option<&Stmt>, procedure: bool) {
        let line = match stmt {
            Stmt::Read { bytes, site } => self.access("read", *bytes, site.number()),
            Stmt::Write { bytes, site } => self.access("write", *bytes, site.number()),
            Stmt::Atomic { kind, bytes, .. } => {
                let name = if *kind == AccessKind::Read { "atomic_load" } else { "atomic_store" };
                format!("m.{name}_{}({})", bytes.len(), self.place(*bytes))
            }
            Stmt::Free { bytes, .. } => {
                let (start, size) = self.layout.pages_of(*bytes);
                format!("m.free({start}, {size})")
            }
            Stmt::Async(body) => format!("m.spawn_async(s, {})", self.task(body)),
            Stmt::Future(name, body) => format!("m.future(s, {name}, {})", self.task(body)),
            Stmt::Spawn(body) => format!("m.spawn(s, p, {})", self.task(body)),
            Stmt::Finish(body) => {
                let name = match self.nest.finish(body) {
                    Form::Task => "finish",
                    Form::AtOnce => "scope_elsewhere",
                    Form::Late => "scope",
                };
                let body = self.function(body, procedure);
                if procedure { format!("m.{name}_in(p, {body})") } else { format!("m.{name}({body})") }
            }
            Stmt::Detached(body) => format!("m.detach({})", self.task(body)),
            Stmt::Call(body) => format!("m.call(s, {})", self.function(body, true)),
            Stmt::Isolated(body) => format!("m.isolated(s, {})", self.function(body, false)),
            Stmt::Sync => "p.sync()".to_owned(),
            Stmt::GetFuture(name) => format!("m.get_future({name})"),
            Stmt::Set(name) => format!("m.set({name})"),
            Stmt::Get(name) => format!("m.get({name})"),
            Stmt::Lock(name, LockMode::Exclusive) if self.own.locks.contains(name) => {
                format!("let own_{name} = Mutex::new(()); let lock_{name} = own_lock(&own_{name})")
            }
            Stmt::Lock(name, LockMode::Shared) => format!("let lock_{name} = m.shared({name})"),
            Stmt::Lock(name, LockMode::Exclusive) if self.shared.contains(name) => {
                format!("let lock_{name} = m.exclusive({name})")
            }
            Stmt::Lock(name, LockMode::Exclusive) => format!("let lock_{name} = m.mutex({name})"),
            Stmt::Unlock(name) => format!("drop(lock_{name})"),
            Stmt::Release(name, false) => format!("store({})", self.word(*name)),
            Stmt::Release(name, true) => format!("update({})", self.word(*name)),
            // One operation for both.
            Stmt::Acquire(name) if next == Some(&Stmt::Release(*name, true)) => {
                format!("acquire_update({})", self.word(*name))
            }
            Stmt::Acquire(name) => format!("load({})", self.word(*name)),
            Stmt::Post(..) | Stmt::Await(_) | Stmt::Ewait(_) => return,
        };
        _ = writeln!(self.text, "    {line};");
    }

    /// The word of a synchronisation object.
    fn word(&self, name: u32) -> String {
        if self.own.syncs.contains(&name) { format!("&sync_{name}") } else { format!("m.sync({name})") }
    }

    fn place(&self, bytes: Bytes) -> String {
        match self.layout.place(bytes.start()) {
            (Region::Arena, at) => format!("m.arena({at})"),
            (Region::Pages, at) => format!("m.pages({at})"),
        }
    }

    /// A word where that is possible, otherwise an array; for some a loop, or a copy. Some words are accessed in the
    /// function itself, with its hooks inlined; the others, which take less time to compile, by a call.
    fn access(&self, what: &str, bytes: Bytes, site: u32) -> String {
        let (_, at) = self.layout.place(bytes.start());
        let (place, len) = (self.place(bytes), bytes.len());
        match (len, site % 8) {
            (1 | 2 | 4 | 8 | 16, 4) if at % len == 0 => format!("{what}_here::<u{}>({place})", len * 8),
            (1 | 2 | 4 | 8 | 16, 2..8) if at % len == 0 => format!("{what}::<u{}>({place})", len * 8),
            (2 | 4 | 8 | 16, 2..8) => format!("{what}_unaligned::<u{}>({place})", len * 8),
            (3 | 5 | 6 | 7 | 9..=15, 3) => format!("{what}_value::<{len}>({place})"),
            (_, 0) => format!("{what}_each::<{len}>({place})"),
            (_, 1) => format!("{what}_slice::<{len}>({place})"),
            _ => format!("{what}_unaligned::<[u8; {len}]>({place})"),
        }
    }
}
