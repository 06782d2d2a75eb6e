//! The operations of one task, until it ends, must wait, or creates another.

use std::fmt::Write;

use dagsan_core::{AccessKind, Event, TaskId};

use super::memory::parts;
use super::state::{Frame, NONE, Running, Wait};
use super::tasks::{Outcome, Pause};
use super::{Machine, Stop, fail};
use crate::compile::op::{Op, Piece, Reg};
use crate::hir::StartKind;

/// How many words the frames of one task may take.
const MAX_STACK: usize = 1 << 24;
/// How deep calls may be nested.
const MAX_FRAMES: usize = 1 << 20;
/// How much a program may print.
const MAX_OUTPUT: usize = 1 << 26;

impl Machine<'_, '_> {
    /// Runs `task`. Afterwards `running.pc` is after the operation that ended it, or that failed, or at the
    /// one to be repeated.
    pub(super) fn execute(&mut self, task: u32, running: &mut Running) -> Result<Pause, Stop> {
        // In variables of their own, which the loop can keep in the processor's registers.
        let mut stack = std::mem::take(&mut running.stack);
        let mut pc = running.pc as usize;
        let result = self.operations(task, running, &mut stack, &mut pc);
        running.stack = stack;
        running.pc = pc as u32;
        result
    }

    fn operations(
        &mut self,
        task: u32,
        running: &mut Running,
        stack: &mut Vec<i64>,
        at: &mut usize,
    ) -> Result<Pause, Stop> {
        let code = self.code;
        let ops = &code.ops[..];
        let mut base = running.base as usize;
        let mut pc = *at;
        let mut steps = self.steps;
        let limit = self.limits.steps;

        macro_rules! reg {
            ($reg:expr) => {
                stack[base + $reg as usize]
            };
        }
        // Leaves, with everything that was in variables written back.
        macro_rules! leave {
            ($result:expr) => {{
                *at = pc;
                self.steps = steps;
                running.base = base as u32;
                return $result;
            }};
        }
        macro_rules! attempt {
            ($result:expr) => {
                match $result {
                    Ok(value) => value,
                    Err(stop) => leave!(Err(stop)),
                }
            };
        }
        // What may have to wait: if so, the operation will be repeated.
        macro_rules! wait_for {
            ($outcome:expr) => {
                match attempt!($outcome) {
                    Outcome::Done(value) => value,
                    Outcome::MustWait(wait) => {
                        pc -= 1;
                        leave!(Ok(Pause::Blocked(wait)))
                    }
                }
            };
        }
        macro_rules! arithmetic {
            ($d:expr, $value:expr) => {
                match $value {
                    Some(value) => reg!($d) = value,
                    None => leave!(fail("overflow: the result does not fit into 64 bits")),
                }
            };
        }
        // Every loop comes by here.
        macro_rules! jump {
            ($target:expr) => {{
                pc = $target as usize;
                if steps > limit {
                    leave!(self.too_long());
                }
            }};
        }

        loop {
            let op = ops[pc];
            pc += 1;
            steps += 1;
            match op {
                Op::Int(d, value) => reg!(d) = i64::from(value),
                Op::Constant(d, number) => reg!(d) = code.constants[number as usize],
                Op::Move(d, a) => reg!(d) = reg!(a),
                Op::Fixed(d, number) => reg!(d) = self.state.fixed[number as usize],
                Op::Fix(number, a) => self.state.fixed[number as usize] = reg!(a),
                Op::Add(d, a, b) => arithmetic!(d, reg!(a).checked_add(reg!(b))),
                Op::Sub(d, a, b) => arithmetic!(d, reg!(a).checked_sub(reg!(b))),
                Op::Mul(d, a, b) => arithmetic!(d, reg!(a).checked_mul(reg!(b))),
                Op::Div(d, a, b) => {
                    if reg!(b) == 0 {
                        leave!(fail("division by zero"));
                    }
                    arithmetic!(d, reg!(a).checked_div(reg!(b)));
                }
                Op::Rem(d, a, b) => {
                    if reg!(b) == 0 {
                        leave!(fail("division by zero: there is no remainder"));
                    }
                    arithmetic!(d, reg!(a).checked_rem(reg!(b)));
                }
                Op::AddInt(d, a, value) => arithmetic!(d, reg!(a).checked_add(i64::from(value))),
                Op::MulInt(d, a, value) => arithmetic!(d, reg!(a).checked_mul(i64::from(value))),
                Op::Neg(d, a) => arithmetic!(d, reg!(a).checked_neg()),
                Op::Not(d, a) => reg!(d) = reg!(a) ^ 1,
                Op::Eq(d, a, b) => reg!(d) = i64::from(reg!(a) == reg!(b)),
                Op::Ne(d, a, b) => reg!(d) = i64::from(reg!(a) != reg!(b)),
                Op::Lt(d, a, b) => reg!(d) = i64::from(reg!(a) < reg!(b)),
                Op::Le(d, a, b) => reg!(d) = i64::from(reg!(a) <= reg!(b)),

                Op::Jump(to) => jump!(to),
                Op::JumpIf(a, to) => {
                    if reg!(a) != 0 {
                        jump!(to);
                    }
                }
                Op::JumpUnless(a, to) => {
                    if reg!(a) == 0 {
                        jump!(to);
                    }
                }
                Op::JumpEq(a, b, to) => {
                    if reg!(a) == reg!(b) {
                        jump!(to);
                    }
                }
                Op::JumpNe(a, b, to) => {
                    if reg!(a) != reg!(b) {
                        jump!(to);
                    }
                }
                Op::JumpLt(a, b, to) => {
                    if reg!(a) < reg!(b) {
                        jump!(to);
                    }
                }
                Op::JumpLe(a, b, to) => {
                    if reg!(a) <= reg!(b) {
                        jump!(to);
                    }
                }
                Op::Next(a, b, to) => {
                    // It was less than b: it has a successor.
                    let next = reg!(a) + 1;
                    if next < reg!(b) {
                        reg!(a) = next;
                        jump!(to);
                    }
                }

                Op::Load(d, a, i) => {
                    let cell = attempt!(self.cell(reg!(a), reg!(i)));
                    reg!(d) = self.state.cells[cell];
                }
                Op::LoadCheck(d, a, i, access) => {
                    let cell = attempt!(self.cell(reg!(a), reg!(i)));
                    self.trace.access(cell as u32, AccessKind::Read, access);
                    reg!(d) = self.state.cells[cell];
                }
                Op::Store(a, i, s) => {
                    let cell = attempt!(self.cell(reg!(a), reg!(i)));
                    self.state.cells[cell] = reg!(s);
                }
                Op::StoreCheck(a, i, s, access) => {
                    let cell = attempt!(self.cell(reg!(a), reg!(i)));
                    self.trace.access(cell as u32, AccessKind::Write, access);
                    self.state.cells[cell] = reg!(s);
                }
                Op::Read(d, cell) => reg!(d) = self.state.cells[cell as usize],
                Op::ReadCheck(d, cell, access) => {
                    self.trace.access(cell, AccessKind::Read, access);
                    reg!(d) = self.state.cells[cell as usize];
                }
                Op::Write(s, cell) => self.state.cells[cell as usize] = reg!(s),
                Op::WriteCheck(s, cell, access) => {
                    self.trace.access(cell, AccessKind::Write, access);
                    self.state.cells[cell as usize] = reg!(s);
                }
                Op::Check(cell, access) => {
                    let write = self.hir.accesses[access.index()].write;
                    let kind = if write { AccessKind::Write } else { AccessKind::Read };
                    self.trace.access(cell, kind, access);
                }
                Op::Summary(number) => self.summary(&code.summaries[number as usize], stack, base),
                Op::Count(access) => {
                    if self.gate.is_some()
                        && let Some(cell) = attempt!(self.cell_of(ops[pc], &stack[base..]))
                        && self.at_gate(task, access, cell)
                    {
                        pc -= 1;
                        leave!(Ok(Pause::Blocked(Wait::Gate)));
                    }
                    self.count(access);
                }
                Op::Len(d, a) => {
                    if reg!(a) == 0 {
                        leave!(fail("this reference is null"));
                    }
                    reg!(d) = parts(reg!(a)).1 as i64;
                }
                Op::New(d, len, maker) => reg!(d) = attempt!(self.new_array(reg!(len), maker)),

                Op::Call(function, first) => {
                    let function = &code.functions[function as usize];
                    let callee = base + first as usize;
                    let needed = callee + function.registers as usize;
                    if needed > MAX_STACK || running.frames.len() >= MAX_FRAMES {
                        leave!(fail(format!("recursion is too deep: {} calls", running.frames.len())));
                    }
                    if needed > stack.len() {
                        stack.resize(needed, 0);
                    }
                    let (return_to, caller_base) = (pc as u32, base as u32);
                    running.frames.push(Frame { return_to, caller_base, spawned: NONE });
                    base = callee;
                    jump!(function.entry);
                }
                Op::Return(_) | Op::ReturnNothing => {
                    let result = match op {
                        Op::Return(a) => reg!(a),
                        _ => 0,
                    };
                    let frame = running.frames.pop().expect("a running task is in a frame");
                    if frame.return_to == NONE {
                        leave!(Ok(Pause::Ended(result)));
                    }
                    reg!(0) = result;
                    base = frame.caller_base as usize;
                    pc = frame.return_to as usize;
                }
                Op::FrameBegin => attempt!(self.event(Event::FrameBegin { task: TaskId(task) })),
                Op::FrameEnd => attempt!(self.event(Event::FrameEnd { task: TaskId(task) })),

                Op::Start(d, first, site) => {
                    let child =
                        attempt!(self.start_with(task, running, site, &stack[base + first as usize..], None));
                    if code.starts[site as usize].kind == StartKind::Future {
                        reg!(d) = i64::from(child) + 1;
                    }
                    leave!(Ok(Pause::Started(child)));
                }
                Op::Post(region, first, site) => {
                    let region = Some(reg!(region));
                    let args = &stack[base + first as usize..];
                    let child = attempt!(self.start_with(task, running, site, args, region));
                    leave!(Ok(Pause::Started(child)));
                }
                Op::FinishBegin => attempt!(self.finish_begin(task, running)),
                Op::FinishEnd => {
                    wait_for!(self.finish_end(task, running));
                    self.note_quiescence(running, stack, base, pc);
                }
                Op::Sync => {
                    wait_for!(self.sync(task, running));
                    self.note_quiescence(running, stack, base, pc);
                }
                Op::IsolatedBegin => wait_for!(self.isolated_begin(task, running)),
                Op::IsolatedEnd => attempt!(self.isolated_end(task, running)),
                Op::NewPromise(d, maker) => reg!(d) = attempt!(self.new_promise(task, maker, None)),
                Op::NewPromises(d, len, maker) => {
                    reg!(d) = attempt!(self.new_promises(task, reg!(len), maker));
                }
                Op::Set(promise, value) => attempt!(self.set(task, reg!(promise), reg!(value))),
                Op::GetPromise(d, promise) => {
                    reg!(d) = wait_for!(self.get_promise(task, running, reg!(promise)));
                }
                Op::GetFuture(d, future) => {
                    reg!(d) = wait_for!(self.get_future(task, running, reg!(future)));
                }
                Op::NewRegion(d) => reg!(d) = attempt!(self.new_region(task)),
                Op::Await(region) => {
                    wait_for!(self.await_region(task, running, reg!(region)));
                    self.note_quiescence(running, stack, base, pc);
                }
                Op::Ewait(region) => wait_for!(self.ewait(task, running, reg!(region))),
                Op::Handle => {
                    let waiting = running.joined.last_mut().expect("an await stands before this");
                    match waiting.pop() {
                        None => _ = running.joined.pop(),
                        Some((handler, result)) => {
                            let handler = code.handlers[handler as usize];
                            reg!(handler.value) = result;
                            running.handler_returns.push(pc as u32 - 1);
                            pc = handler.entry as usize;
                        }
                    }
                }
                Op::Handled => {
                    pc = running.handler_returns.pop().expect("a handler was entered") as usize;
                }

                Op::Print(first, number) => {
                    let values = &stack[base + first as usize..];
                    attempt!(self.print(&code.prints[number as usize], values));
                }
                Op::Assert(a) => {
                    if reg!(a) == 0 {
                        leave!(fail("assertion failed"));
                    }
                }
            }
        }
    }

    /// If a join has made the program quiescent and there is a scheduler, it will want to know the state.
    fn note_quiescence(&mut self, running: &Running, stack: &[i64], base: usize, pc: usize) {
        if self.trace.take_quiesced() && self.scheduled {
            self.quiescent = Some(self.digest(running, stack, base, pc));
        }
    }

    #[cold]
    fn too_long(&self) -> Result<Pause, Stop> {
        fail(format!("the program did not end within {} steps", self.limits.steps))
    }

    fn event(&mut self, event: Event) -> Result<(), Stop> {
        Ok(self.trace.event(event)?)
    }

    fn start_with(
        &mut self,
        task: u32,
        running: &mut Running,
        site: u32,
        registers: &[i64],
        region: Option<i64>,
    ) -> Result<u32, Stop> {
        let args = self.code.starts[site as usize].args as usize;
        self.start(task, running, site, &registers[..args], region)
    }

    fn print(&mut self, pieces: &[Piece], values: &[i64]) -> Result<(), Stop> {
        let mut values = values.iter();
        let out = &mut self.state.output;
        for (number, piece) in pieces.iter().enumerate() {
            if number > 0 {
                out.push(' ');
            }
            let written = match piece {
                Piece::Text(text) => out.write_str(text),
                Piece::Int => values.next().map_or(Ok(()), |value| write!(out, "{value}")),
                Piece::Bool => values.next().map_or(Ok(()), |value| write!(out, "{}", *value != 0)),
            };
            debug_assert!(written.is_ok(), "writing to a string cannot fail");
        }
        out.push('\n');
        if out.len() > MAX_OUTPUT {
            return fail("out of memory: the program prints too much");
        }
        Ok(())
    }
}

/// Registers are numbered by 16 bits, so that an operation is small.
const _: () = assert!(size_of::<Reg>() == 2);
