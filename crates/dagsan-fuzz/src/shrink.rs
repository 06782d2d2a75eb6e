//! Makes a failing program small.
//!
//! Greedy, to a fixed point: remove runs of statements (whole bodies first, then halves, down to single
//! statements), put the body of a block in the block's place, make accesses plain and locks exclusive,
//! shorten byte ranges, move the addresses down. Each change is kept if the program still fails. Unless the tries run out, no
//! single statement can be removed from the result. It is not the smallest failing program: a change
//! that needs two edits at once is not found.

use dagsan_core::{AccessKind, Bytes, LINE_BYTES, LockMode};

use crate::program::{Program, Stmt};

/// How many programs are tried at most.
const MAX_TRIES: u32 = 50_000;

/// The smallest program found, starting from `program`, for which `still_fails` holds. Sites are
/// numbered anew in every program tried. If `program` itself does not fail it is returned as it is.
pub fn shrink(program: &Program, still_fails: &mut dyn FnMut(&Program) -> bool) -> Program {
    let mut shrinker = Shrinker { best: program.clone(), still_fails, tries: MAX_TRIES };
    loop {
        let mut changed = false;
        changed |= shrinker.remove_statements();
        changed |= shrinker.unwrap_blocks();
        changed |= shrinker.simplify_statements();
        changed |= shrinker.shorten_ranges();
        changed |= shrinker.lower_addresses();
        if !changed || shrinker.tries == 0 {
            return shrinker.best;
        }
    }
}

struct Shrinker<'f> {
    best: Program,
    still_fails: &'f mut dyn FnMut(&Program) -> bool,
    tries: u32,
}

impl Shrinker<'_> {
    /// Keeps `best` with `edit` applied if it still fails. `edit` says whether it changed anything.
    fn attempt(&mut self, edit: impl FnOnce(&mut Program) -> bool) -> bool {
        if self.tries == 0 {
            return false;
        }
        let mut candidate = self.best.clone();
        if !edit(&mut candidate) {
            return false;
        }
        candidate.number_sites();
        self.tries -= 1;
        let fails = (self.still_fails)(&candidate);
        if fails {
            self.best = candidate;
        }
        fails
    }

    fn remove_statements(&mut self) -> bool {
        let mut changed = false;
        // A change to a body leaves it, and those before it, in their places among the bodies.
        let mut at = 0;
        while let Some(path) = nth_body(&self.best, at) {
            let mut chunk = body_len(&self.best, &path);
            while chunk > 0 {
                // From the back: later statements depend on earlier ones.
                let mut end = body_len(&self.best, &path);
                while end > 0 {
                    let start = end.saturating_sub(chunk);
                    changed |= self.attempt(|program| {
                        body_at(program, &path).is_some_and(|body| body.drain(start..end).len() > 0)
                    });
                    end = start;
                }
                chunk /= 2;
            }
            at += 1;
        }
        changed
    }

    fn unwrap_blocks(&mut self) -> bool {
        let mut changed = false;
        let mut at = 0;
        while let Some(path) = nth_body(&self.best, at) {
            for index in (0..body_len(&self.best, &path)).rev() {
                changed |= self.attempt(|program| {
                    let Some(body) = body_at(program, &path) else { return false };
                    let Some(inner) = body[index].body_mut().map(std::mem::take) else { return false };
                    body.splice(index..=index, inner);
                    true
                });
            }
            at += 1;
        }
        changed
    }

    fn simplify_statements(&mut self) -> bool {
        let count = self.best.walk().count();
        (0..count).fold(false, |changed, at| changed | self.attempt(|program| simplify(program, at)))
    }

    fn shorten_ranges(&mut self) -> bool {
        let mut changed = false;
        let mut at = 0;
        while let Some(mut bytes) = self.best.walk().filter_map(Stmt::bytes).nth(at) {
            // First to one byte, at either end; then by halves for as long as that works.
            while let Some(shorter) =
                shorter(bytes).into_iter().find(|&to| self.attempt(|program| set_bytes(program, at, to)))
            {
                changed = true;
                bytes = shorter;
            }
            at += 1;
        }
        changed
    }

    /// Moves all addresses together: ranges that overlap stay so.
    fn lower_addresses(&mut self) -> bool {
        let mut lines: Vec<u64> =
            self.best.walk().filter_map(Stmt::bytes).flat_map(|b| b.lines().map(|(line, _)| line)).collect();
        lines.sort_unstable();
        lines.dedup();
        let Some(&first) = lines.first() else { return false };
        // The lines that are touched become the first ones, or at least all go down by as much.
        let dense = |line: u64| lines.binary_search(&line).map_or(line, |rank| rank as u64);
        let mut changed = self.attempt(|program| move_lines(program, dense));
        if !changed {
            changed = self.attempt(|program| move_lines(program, |line| line - first));
        }
        let lowest = self.best.walk().filter_map(Stmt::bytes).map(Bytes::start).min().unwrap_or(0);
        changed |= self.attempt(|program| move_all(program, |start| start - lowest));
        changed
    }
}

/// Ways to make a range shorter, the shortest first.
fn shorter(bytes: Bytes) -> Vec<Bytes> {
    let (start, len) = (bytes.start(), bytes.len());
    if len <= 1 {
        return Vec::new();
    }
    let half = len / 2;
    let ways = [(start, 1), (bytes.end() - 1, 1), (start, half), (start + half, len - half)];
    ways.into_iter().filter_map(|(start, len)| Bytes::new(start, len).ok()).collect()
}

/// Puts a plainer statement in the place of the one of that number in text order, if there is one.
fn simplify(program: &mut Program, statement: usize) -> bool {
    let (mut next, mut changed) = (0, false);
    program.for_each_mut(|stmt| {
        let plainer = match *stmt {
            Stmt::Atomic { kind: AccessKind::Read, bytes, .. } => Some(Stmt::read(bytes)),
            Stmt::Atomic { kind: AccessKind::Write, bytes, .. } => Some(Stmt::write(bytes)),
            Stmt::Lock(name, LockMode::Shared) => Some(Stmt::Lock(name, LockMode::Exclusive)),
            Stmt::Release(name, true) => Some(Stmt::Release(name, false)),
            _ => None,
        };
        if let (true, Some(plainer)) = (next == statement, plainer) {
            *stmt = plainer;
            changed = true;
        }
        next += 1;
    });
    changed
}

/// Gives the access of that number in text order other bytes.
fn set_bytes(program: &mut Program, access: usize, to: Bytes) -> bool {
    let (mut next, mut changed) = (0, false);
    program.for_each_mut(|stmt| {
        if let Some(bytes) = stmt.bytes_mut() {
            if next == access {
                changed = *bytes != to;
                *bytes = to;
            }
            next += 1;
        }
    });
    changed
}

fn move_lines(program: &mut Program, to: impl Fn(u64) -> u64) -> bool {
    move_all(program, |start| to(start / LINE_BYTES) * LINE_BYTES + start % LINE_BYTES)
}

fn move_all(program: &mut Program, to: impl Fn(u64) -> u64) -> bool {
    let mut changed = false;
    program.for_each_mut(|stmt| {
        if let Some(bytes) = stmt.bytes_mut()
            && let Ok(moved) = Bytes::new(to(bytes.start()), bytes.len())
        {
            changed |= *bytes != moved;
            *bytes = moved;
        }
    });
    changed
}

/// The path to the body of that number, in text order: the index of each block on the way.
fn nth_body(program: &Program, number: usize) -> Option<Vec<usize>> {
    let mut path = Vec::new();
    let mut open = vec![program.body.iter().enumerate()];
    let mut left = number;
    while left > 0 {
        match open.last_mut()?.next() {
            None => {
                open.pop();
                path.pop();
            }
            Some((index, stmt)) => {
                if let Some(body) = stmt.body() {
                    open.push(body.iter().enumerate());
                    path.push(index);
                    left -= 1;
                }
            }
        }
    }
    Some(path)
}

fn body_at<'p>(program: &'p mut Program, path: &[usize]) -> Option<&'p mut Vec<Stmt>> {
    path.iter().try_fold(&mut program.body, |body, &index| body.get_mut(index)?.body_mut())
}

fn body_len(program: &Program, path: &[usize]) -> usize {
    let body = path.iter().try_fold(&program.body, |body, &index| body.get(index)?.body());
    body.map_or(0, Vec::len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Ignore, Size, generate, run};
    use dagsan_core::Stream;

    fn check(text: &str, mut fails: impl FnMut(&Program) -> bool, expected: &str) {
        let program = Program::parse(text).unwrap();
        assert!(fails(&program));
        assert_eq!(shrink(&program, &mut fails).to_string(), expected);
    }

    fn touches(program: &Program, address: u64) -> bool {
        program.walk().filter_map(Stmt::bytes).any(|b| b.start() <= address && address < b.end())
    }

    #[test]
    fn all_goes_if_nothing_is_needed() {
        check("w 1+1 async { r 2+1 finish { } } sync", |_| true, "");
    }

    #[test]
    fn nothing_goes_if_all_is_needed() {
        let text = "w 0x1+1\nasync { r 0x2+1 }\nsync\n";
        check(text, |program| program.to_string() == text, text);
        let program = Program::parse(text).unwrap();
        assert_eq!(shrink(&program, &mut |_| false), program);
    }

    #[test]
    fn what_is_needed_is_dug_out() {
        let sets = |program: &Program| program.walk().any(|stmt| *stmt == Stmt::Set(3));
        check("sync async { finish { r 1+1; async { w 4+4; set p3; get p3 } } } w 1+1", sets, "set p3\n");
        let two = |program: &Program| program.walk().filter(|stmt| stmt.creates_task()).count() >= 2;
        check("async { spawn { w 1+1 } } post r0 { } future f1 { }", two, "async {\n  spawn { }\n}\n");
    }

    #[test]
    fn ranges_and_addresses_shrink() {
        let touched = |program: &Program| touches(program, 0x46);
        check("w 0x40+100", touched, "w 0x46+1\n");
        // Two that overlap, wherever they are.
        let overlap = |program: &Program| {
            let all: Vec<Bytes> = program.walk().filter_map(Stmt::bytes).collect();
            all.len() == 2 && all[0].start().max(all[1].start()) < all[0].end().min(all[1].end())
        };
        check("w 0x7f42+8 async { r 0x7f48+16 }", overlap, "w 0x0+1\nr 0x0+1\n");
        let two_lines = |program: &Program| {
            let mut starts: Vec<u64> =
                program.walk().filter_map(Stmt::bytes).map(|b| b.start() / 64).collect();
            starts.dedup();
            starts.len() == 2
        };
        check("w 0x1010+4 w 0x9020+4", two_lines, "w 0x0+1\nw 0x50+1\n");
    }

    #[test]
    fn what_need_not_be_special_is_plain() {
        let locks = |program: &Program| program.walk().any(|stmt| matches!(stmt, Stmt::Lock(..)));
        check("share l2; ar 0+1; update s0", locks, "lock l2\n");
        let all = |program: &Program| program.walk().count() == 3;
        check("share l2; aw 0+1; update s0", all, "lock l2\nw 0x0+1\nstore s0\n");
        let atomic = |program: &Program| program.walk().any(|stmt| matches!(stmt, Stmt::Atomic { .. }));
        check("lock l2; aw 0+1; store s0", atomic, "aw 0x0+1\n");
    }

    #[test]
    fn no_single_statement_can_be_removed_from_the_result() {
        let mut rng = fastrand::Rng::with_seed(14);
        for _ in 0..40 {
            let size = Size::pick(&mut rng);
            let program = generate(Class::All, &mut rng, size);
            let mut tasks_and_gets = |program: &Program| {
                let gets = program.walk().filter(|stmt| matches!(stmt, Stmt::Get(_))).count();
                let ends = run(program, &mut Stream::new(Ignore)).is_ok_and(|outcome| !outcome.deadlock);
                ends && gets >= 1 && program.task_count() >= 2
            };
            if !tasks_and_gets(&program) {
                continue;
            }
            let small = shrink(&program, &mut tasks_and_gets);
            assert!(tasks_and_gets(&small));
            // A task, a set and a get of the same promise.
            assert_eq!(small.walk().count(), 3, "{small}");
            assert_eq!(Program::parse(&small.to_string()), Ok(small));
        }
    }

    #[test]
    fn the_number_of_tries_is_bounded() {
        let body = vec![Stmt::read(Bytes::new(0, 64).unwrap()); 3000];
        let mut tries = 0u32;
        // Progress is slow.
        shrink(&Program { body }, &mut |_| {
            tries += 1;
            tries.is_multiple_of(1000)
        });
        assert!(tries <= MAX_TRIES);
    }
}
