//! Makes a failing program small. A build takes seconds, so candidates are tried many at a time.
//!
//! The candidates of a round are all programs that one edit of the shrinker makes of the smallest that fails so far. If
//! several fail in the same way, their removals are tried together, all or a part of them; if that fails too, it is the
//! next one, otherwise the smallest candidate is. If no candidate fails, the program is shrunk.

use std::collections::BTreeSet;
use std::mem::discriminant;
use std::ops::Range;

use anyhow::Result;
use dagsan_core::Bytes;
use dagsan_fuzz::rust::{Said, say, say_joins, say_threads};
use dagsan_fuzz::{Program, Stmt};

use super::batch::Builder;
use super::case::{Case, Failure, What};

/// About how many statements go into one build.
const ROUND: usize = 5000;

/// The smallest case found that fails as `failure` says, and how it does.
pub fn shrink(builder: &Builder, case: &Case, mut failure: Failure) -> Result<(Case, Failure)> {
    let mut best = Case { runs: vec![failure.run], ..Case::new(case.name.clone(), None, case.said.clone())? };
    while let Some((smaller, how)) = smaller(builder, &best, &failure)? {
        println!("  {} statements", smaller.said.program.walk().count());
        (best, failure) = (smaller, how);
    }
    Ok((best, failure))
}

fn smaller(builder: &Builder, best: &Case, failure: &Failure) -> Result<Option<(Case, Failure)>> {
    let mut all = candidates(&best.said);
    all.sort_by_key(size);
    while !all.is_empty() {
        let mut statements = 0;
        let is_over = |candidate: &Said| {
            statements += candidate.program.walk().count();
            statements > ROUND
        };
        let end = all.iter().position(is_over).map_or(all.len(), |at| at.max(1));
        let rest = all.split_off(end);
        let mut failing = failing(builder, best, failure, all)?;
        if !failing.is_empty() {
            let removals: Vec<_> =
                failing.iter().filter_map(|(case, _)| removed(&best.said, &case.said)).collect();
            let parts = [removals.len(), removals.len() * 3 / 4, removals.len() / 2, removals.len() / 4];
            let together =
                parts.into_iter().filter(|&part| part > 1).map(|part| without(&best.said, &removals[..part]));
            let together = self::failing(builder, best, failure, together.collect())?;
            let smallest = together.into_iter().next();
            return Ok(Some(smallest.unwrap_or_else(|| failing.swap_remove(0))));
        }
        all = rest;
    }
    Ok(None)
}

/// Those of the candidates that fail in the same way, in the same order.
fn failing(
    builder: &Builder,
    best: &Case,
    failure: &Failure,
    all: Vec<Said>,
) -> Result<Vec<(Case, Failure)>> {
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let case = |said| Ok(Case { runs: vec![failure.run], ..Case::new(best.name.clone(), None, said)? });
    let cases: Vec<Case> = all.into_iter().map(case).collect::<Result<_>>()?;
    let failures = builder.build(&cases)?.run(&cases, 1, || {})?;
    let failing = cases.into_iter().zip(failures).filter_map(|(case, how)| Some((case, how?)));
    Ok(failing.filter(|(_, how)| is_same(&how.what, &failure.what)).collect())
}

/// Which statements of `best`, numbered in text order, are not in `candidate`, if that is all that differs: a run of
/// statements with their bodies is also a run in text order.
fn removed(best: &Said, candidate: &Said) -> Option<Range<usize>> {
    let heads = |said: &Said| -> Vec<String> { said.program.walk().map(head).collect() };
    let (best, candidate) = (heads(best), heads(candidate));
    let gone = best.len().checked_sub(candidate.len()).filter(|&gone| gone > 0)?;
    let start = best.iter().zip(&candidate).take_while(|(a, b)| a == b).count();
    (best[start + gone..] == candidate[start..]).then_some(start..start + gone)
}

/// A statement without its body and its site.
fn head(stmt: &Stmt) -> String {
    let mut stmt = stmt.clone();
    if let Some(body) = stmt.body_mut() {
        body.clear();
    }
    Program { body: vec![stmt] }.to_string()
}

/// The program without these statements and their bodies.
fn without(said: &Said, removed: &[Range<usize>]) -> Said {
    fn filter(body: &[Stmt], removed: &[Range<usize>], next: &mut usize) -> Vec<Stmt> {
        let mut kept = Vec::new();
        for stmt in body {
            let number = *next;
            *next += 1;
            let mut stmt = stmt.clone();
            if let Some(inner) = stmt.body_mut() {
                *inner = filter(inner, removed, next);
            }
            if !removed.iter().any(|range| range.contains(&number)) {
                kept.push(stmt);
            }
        }
        kept
    }
    let program = Program { body: filter(&said.program.body, removed, &mut 0) };
    again(&program, said)
}

/// The program, said as that one was. Its handles go through promises already, if they must.
fn again(program: &Program, said: &Said) -> Said {
    let say = match (said.threads, said.is_joins()) {
        (true, _) => say_threads,
        (_, true) => say_joins,
        _ => say,
    };
    say(program, true, said.nest)
}

/// Every program that one edit makes of this one.
fn candidates(said: &Said) -> Vec<Said> {
    let mut all: Vec<Said> = Vec::new();
    let mut known = BTreeSet::from([said.program.to_string()]);
    dagsan_fuzz::shrink(&said.program, &mut |candidate| {
        let candidate = again(candidate, said);
        if size(&candidate) < size(said) && known.insert(candidate.program.to_string()) {
            all.push(candidate);
        }
        false
    });
    all
}

/// Statements first, then what they touch.
fn size(said: &Said) -> (usize, u64, u64) {
    let ranges = || said.program.walk().filter_map(Stmt::bytes);
    (said.program.walk().count(), ranges().map(Bytes::len).sum(), ranges().map(Bytes::start).sum())
}

/// A program without a handle that it needs was not a good edit.
fn is_same(a: &What, b: &What) -> bool {
    let lost_handle = matches!(a, What::Ending(how) if how.contains("before its handle"));
    discriminant(a) == discriminant(b) && !lost_handle
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Said {
        say(&Program::parse(text).unwrap(), true, 0)
    }

    #[test]
    fn removals_are_found_and_made_together() {
        let best = said("w 0+1; async { r 0+1; sync; w 1+1 } sync; r 2+1");
        let [a, b] = [
            said("w 0+1; async { r 0+1; w 1+1 } sync; r 2+1"),
            said("w 0+1; async { r 0+1; sync; w 1+1 } sync"),
        ];
        let removals = [removed(&best, &a).unwrap(), removed(&best, &b).unwrap()];
        assert_eq!(removals, [3..4, 6..7]);
        assert_eq!(without(&best, &removals), said("w 0+1; async { r 0+1; w 1+1 } sync"));
        assert_eq!(removed(&best, &said("w 0+1; sync; r 2+1")), Some(1..5));
        assert_eq!(removed(&best, &best), None);
        assert_eq!(removed(&best, &said("w 4+1; async { r 0+1; w 1+1 } sync; r 2+1")), None);
    }
}
