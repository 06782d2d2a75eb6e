//! Programs as C: a batch in one file, of which a process runs the one whose number is its argument, or a file that interprets any program, and
//! the text of each. The text has a line for each operation: see `interpret.c`.

use std::fmt::Write as _;

use dagsan_core::{AccessKind, Bytes};

use super::code::{Op, codes};
use super::tree::{Clauses, Depend, Lock, Program, Share, Use};
use crate::program;
use crate::rust::{Layout, Region};

const SUPPORT: &str = include_str!("support.h");
const INTERPRET: &str = include_str!("interpret.c");

/// How an access is made. The numbers are those of `interpret.c`.
#[derive(Clone, Copy)]
enum Form {
    Word,
    Packed,
    Each,
    Copy,
    Atomic,
}

impl Form {
    fn of(at: u64, len: u64, site: u32, atomic: bool) -> Form {
        match (len, site % 8) {
            _ if atomic => Form::Atomic,
            (1 | 2 | 4 | 8, 1..8) if at.is_multiple_of(len) => Form::Word,
            (2 | 4 | 8, 2..8) => Form::Packed,
            (_, 0 | 5) => Form::Each,
            _ => Form::Copy,
        }
    }
}

/// How many bytes the arena of the interpreter has.
const ARENA: u64 = 1 << 16;

/// The file that interprets programs.
pub fn write_interpreter() -> String {
    format!("#define ARENA {ARENA}\n{SUPPORT}\n{INTERPRET}")
}

/// The text of a program for the standard input of what interprets it.
pub fn interpreted(program: &Program) -> String {
    let (codes, layout) = (codes(program), place(program));
    debug_assert!(layout.size(Region::Arena) <= ARENA);
    let mut text = format!("{}\n", codes.len());
    for ops in &codes {
        _ = writeln!(text, "{}", ops.len());
        for (number, op) in ops.iter().enumerate() {
            let (kind, [a, b, c, d], end, depend) = numbers(op, number, ops, &layout);
            _ = write!(text, "{kind} {a} {b} {c} {d} {end} {}", depend.len());
            for Depend { how, on } in depend {
                _ = write!(text, " {} {on}", *how as u32);
            }
            text += "\n";
        }
    }
    text
}

/// An operation as `interpret.c` has it.
fn numbers<'o>(op: &'o Op, at: usize, ops: &[Op], layout: &Layout) -> (u32, [u64; 4], usize, &'o [Depend]) {
    let none: &[Depend] = &[];
    let said = |clauses: &Clauses| {
        u64::from(clauses.undeferred) | u64::from(clauses.is_final) << 1 | u64::from(clauses.untied) << 2
    };
    match op {
        Op::Access { kind, bytes, site, atomic } => {
            let ((_, place), len) = (layout.place(bytes.start()), bytes.len());
            let form = Form::of(place, len, site.number(), *atomic);
            (0, [form as u64, place, len, u64::from(*kind == AccessKind::Write)], 0, none)
        }
        Op::Begin | Op::Join => (1, [0; 4], 0, none),
        Op::End => (2, [0; 4], 0, none),
        Op::Create { code, clauses } => (3, [said(clauses), *code as u64, 0, 0], 0, &clauses.depend),
        Op::Include { clauses, .. } => {
            (4, [said(clauses), 0, 0, 0], end_of_include(ops, at), &clauses.depend)
        }
        Op::Included => (5, [0; 4], 0, none),
        Op::Taskwait(depend) => (6, [0; 4], 0, depend),
        Op::Group => (7, [0; 4], 0, none),
        Op::Grouped => (8, [0; 4], 0, none),
        Op::Take(lock) => (9, [u64::from(lock.0), 0, 0, 0], 0, none),
        Op::Give(_) => (10, [0; 4], 0, none),
        Op::Fork { code, threads } => (11, [u64::from(*threads), *code as u64, 0, 0], 0, none),
        Op::Piece { end, nowait } => (12, [u64::from(*nowait), 0, 0, 0], *end, none),
        Op::PieceDone => (13, [0; 4], 0, none),
        Op::Masked { thread, end } => (14, [u64::from(*thread), 0, 0, 0], *end, none),
        Op::MaskedDone => (15, [0; 4], 0, none),
        Op::Deal { how, nowait, chunks, end } => {
            (17, [kind(*how), (*chunks).into(), how.iterations().into(), u64::from(*nowait)], *end, none)
        }
        Op::Chunk { end, .. } => (18, [0; 4], *end, none),
        Op::ChunkDone(_) => (19, [0; 4], 0, none),
        Op::Dealt(_) => (20, [0; 4], 0, none),
        Op::Taskloop { first, count, nogroup } => {
            (21, [*first as u64, (*count).into(), u64::from(*nogroup), 0], 0, none)
        }
        Op::Looped { .. } => (22, [0; 4], 0, none),
        Op::Pass { of_piece } => (16, [u64::from(*of_piece), 0, 0, 0], 0, none),
    }
}

/// How work is dealt out, as `interpret.c` has it.
fn kind(how: Share) -> u64 {
    match how {
        Share::Static => 0,
        Share::StaticChunk(_) => 1,
        Share::Dynamic(_) => 2,
        Share::Guided => 3,
        Share::Sections => 4,
    }
}

/// The number of the operation behind a task that is part of another.
fn end_of_include(ops: &[Op], start: usize) -> usize {
    let mut depth = 0;
    let is_end = |op: &Op| {
        match op {
            Op::Include { .. } => depth += 1,
            Op::Included => depth -= 1,
            _ => {}
        }
        depth == 0
    };
    ops[start..].iter().position(is_end).map_or(ops.len(), |at| start + at + 1)
}

/// Where the bytes of a program are in its arena.
pub fn place(program: &Program) -> Layout {
    let body = program.ranges().into_iter().map(program::Stmt::read).collect();
    Layout::new(&program::Program { body })
}

/// How many bytes the arena has that these programs need.
fn arena_size(programs: &[&Program]) -> u64 {
    let sizes = programs.iter().map(|program| place(program).size(Region::Arena));
    sizes.max().unwrap_or(0).max(64)
}

/// A file with the programs.
pub fn write_batch(programs: &[&Program]) -> String {
    let mut text = format!("#define ARENA {}\n{SUPPORT}", arena_size(programs));
    for (number, program) in programs.iter().enumerate() {
        let codes = codes(program);
        text += "\n";
        for code in 0..codes.len() {
            _ = writeln!(text, "static void p{number}_{code}(int);");
        }
        let (layout, criticals, later) = (place(program), 0, vec![0]);
        let mut writer =
            Writer { number, codes: &codes, layout, text: &mut text, depth: 1, criticals, later };
        while let Some(code) = writer.later.pop() {
            writer.line_at(0, &format!("\nstatic void p{number}_{code}(int me) {{"));
            writer.code(code);
            writer.line_at(0, "}");
        }
    }
    text += "\nstatic void (*const programs[])(int) = {";
    for number in 0..programs.len() {
        _ = write!(text, "p{number}_0, ");
    }
    text += "};\n\nint main(int count, char **arguments) {\n    start();\n    programs[count > 1 ? atoi(arguments[1]) : 0](0);\n    tell();\n    return 0;\n}\n";
    text
}

struct Writer<'w> {
    /// Of the program.
    number: usize,
    codes: &'w [Vec<Op>],
    layout: Layout,
    text: &'w mut String,
    depth: usize,
    /// How many critical sections are around, and the tasks that have functions of their own.
    criticals: u32,
    later: Vec<usize>,
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        self.line_at(self.depth, line);
    }

    fn line_at(&mut self, depth: usize, line: &str) {
        // Deep ones would be mostly blanks.
        let indent = if line.starts_with('#') { 0 } else { depth.min(20) * 4 };
        _ = writeln!(self.text, "{:indent$}{line}", "");
    }

    fn open(&mut self, line: &str) {
        self.line(line);
        self.depth += 1;
    }

    fn close(&mut self, line: &str) {
        self.depth -= 1;
        self.line(line);
    }

    fn code(&mut self, code: usize) {
        let codes = self.codes;
        for (number, op) in codes[code].iter().enumerate() {
            self.op(number, op);
        }
    }

    fn op(&mut self, number: usize, op: &Op) {
        let did = format!("did(me, {number});");
        match op {
            Op::Access { kind, bytes, site, atomic } => self.access(*kind, *bytes, site.number(), *atomic),
            Op::Begin | Op::End | Op::Join => self.line(&did),
            Op::Create { code, clauses } => {
                self.open("{");
                self.line(&format!("int task = make(me, {number}, 1);"));
                self.line(&format!("#pragma omp task firstprivate(task){}", self::clauses(clauses)));
                self.open("{");
                // clang takes a section of a name in one of the same for a mistake, also if it is another task's.
                if self.criticals > 0 {
                    self.line(&format!("p{}_{code}(task);", self.number));
                    self.later.push(*code);
                } else {
                    self.line("int me = task;");
                    self.code(*code);
                }
                self.close("}");
                self.close("}");
            }
            Op::Include { clauses, .. } => {
                self.line(&format!("#pragma omp task firstprivate(me){}", self::clauses(clauses)));
                self.open("{");
                self.line(&did);
            }
            Op::Included | Op::PieceDone => {
                self.line(&did);
                self.close("}");
            }
            Op::Taskwait(list) => {
                self.line(&format!("#pragma omp taskwait{}", depend(list)));
                self.line(&did);
            }
            Op::Group => {
                self.line(&did);
                self.line("#pragma omp taskgroup");
                self.open("{");
            }
            Op::Grouped => {
                self.close("}");
                self.line(&did);
            }
            Op::Take(Lock(name)) => {
                match Lock(*name).is_object() {
                    true => self.line(&format!("omp_set_lock(&locks[{name}]);")),
                    false => self.line(&format!("#pragma omp critical(c{name})")),
                }
                self.criticals += u32::from(!Lock(*name).is_object());
                self.open("{");
                self.line(&did);
            }
            Op::Give(Lock(name)) => {
                self.line(&did);
                self.close("}");
                self.criticals -= u32::from(!Lock(*name).is_object());
                if Lock(*name).is_object() {
                    self.line(&format!("omp_unset_lock(&locks[{name}]);"));
                }
            }
            Op::Fork { code, threads } => {
                self.open("{");
                self.line(&format!("int team = make(me, {number}, {threads});"));
                self.line(&format!("#pragma omp parallel num_threads({threads}) firstprivate(team)"));
                self.open("{");
                self.line("int me = team + omp_get_thread_num();");
                self.code(*code);
                self.close("}");
                self.close("}");
            }
            Op::Piece { nowait, .. } => {
                self.line(if *nowait { "#pragma omp single nowait" } else { "#pragma omp single" });
                self.open("{");
                self.line(&did);
            }
            Op::Masked { thread, .. } => {
                self.line(&format!("#pragma omp masked filter({thread})"));
                self.open("{");
            }
            Op::MaskedDone => self.close("}"),
            Op::Deal { how, nowait, chunks, .. } => {
                let nowait = if *nowait { " nowait" } else { "" };
                if *how == Share::Sections {
                    self.line(&format!("#pragma omp sections{nowait}"));
                    return self.open("{");
                }
                let schedule = match how {
                    Share::StaticChunk(length) => format!("static, {length}"),
                    Share::Dynamic(length) => format!("dynamic, {length}"),
                    Share::Guided => "guided".to_owned(),
                    Share::Static | Share::Sections => "static".to_owned(),
                };
                self.line(&format!("#pragma omp for schedule({schedule}){nowait}"));
                let iterations = chunks * how.iterations();
                self.open(&format!("for (int i = 0; i < {iterations}; i++) switch (i) {{"));
            }
            Op::Chunk { number, how, .. } => {
                match how {
                    Share::Sections => self.line("#pragma omp section"),
                    how => self.line(&format!("case {}:", number * how.iterations())),
                }
                self.open("{");
                self.line(&did);
            }
            Op::ChunkDone(how) => {
                self.line(&did);
                self.close(if *how == Share::Sections { "}" } else { "} break;" });
            }
            Op::Dealt(_) => self.close("}"),
            Op::Taskloop { first, count, nogroup } => {
                self.open("{");
                self.line(&format!("int tasks = make(me, {number}, {count});"));
                let nogroup = if *nogroup { " nogroup" } else { "" };
                self.line(&format!("#pragma omp taskloop num_tasks({count}){nogroup}"));
                self.open(&format!("for (int i = 0; i < {count}; i++) switch (i) {{"));
                for task in 0..*count {
                    let code = first + task as usize;
                    self.line(&format!("case {task}: p{}_{code}(tasks + i); break;", self.number));
                    self.later.push(code);
                }
                self.close("}");
                self.close("}");
            }
            Op::Looped { .. } => self.line(&did),
            Op::Pass { of_piece } => {
                if !of_piece {
                    self.line("#pragma omp barrier");
                }
                self.line(&did);
            }
        }
    }

    fn access(&mut self, kind: AccessKind, bytes: Bytes, site: u32, atomic: bool) {
        let (_, at) = self.layout.place(bytes.start());
        let len = bytes.len();
        let (what, bits) = (if kind == AccessKind::Read { "READ" } else { "WRITE" }, len * 8);
        let line = match Form::of(at, len, site, atomic) {
            Form::Word => format!("{what}(uint{bits}_t, {at});"),
            Form::Packed => format!("{what}_PACKED(packed_{len}, {at});"),
            Form::Each => format!("{what}_EACH({at}, {len});"),
            Form::Copy if kind == AccessKind::Read => format!("READ_COPY({at}, {len});"),
            Form::Copy => format!("WRITE_SET({at}, {len});"),
            Form::Atomic => format!("{what}_ATOMIC(uint{bits}_t, {at});"),
        };
        self.line(&line);
    }
}

fn clauses(clauses: &Clauses) -> String {
    let mut text = String::new();
    for (is_said, clause) in
        [(clauses.undeferred, " if(0)"), (clauses.is_final, " final(1)"), (clauses.untied, " untied")]
    {
        text += if is_said { clause } else { "" };
    }
    text + &depend(&clauses.depend)
}

fn depend(list: &[Depend]) -> String {
    let mut text = String::new();
    for Depend { how, on } in list {
        _ = write!(text, " depend({}: d[{on}])", Use::name(*how));
    }
    text
}
