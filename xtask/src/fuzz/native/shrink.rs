//! Makes a failing program small. A build takes seconds, so candidates are tried many at a time.
//!
//! The candidates of a round are all programs that one edit of the shrinker makes of the smallest that fails so far. The
//! smallest of those that fail in the same way is the next one; if none does, the program is shrunk.

use std::collections::BTreeSet;
use std::mem::discriminant;

use anyhow::Result;
use dagsan_core::Bytes;
use dagsan_fuzz::Stmt;
use dagsan_fuzz::rust::{Said, say};

use super::batch::Builder;
use super::case::{Case, Failure, What};

/// About how many statements go into one build.
const ROUND: usize = 5000;

/// The smallest case found that fails as `failure` says, and how it does.
pub fn shrink(builder: &Builder, case: &Case, mut failure: Failure) -> Result<(Case, Failure)> {
    let mut best =
        Case { engines: vec![failure.engine], ..Case::new(case.name.clone(), None, case.said.clone())? };
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
        let cases: Result<Vec<Case>> = all
            .into_iter()
            .map(|said| {
                Ok(Case { engines: vec![failure.engine], ..Case::new(best.name.clone(), None, said)? })
            })
            .collect();
        let cases = cases?;
        let failures = builder.build(&cases)?.run(&cases, 1, || {})?;
        let mut failing = cases.into_iter().zip(failures).filter_map(|(case, how)| Some((case, how?)));
        if let Some(found) = failing.find(|(_, how)| is_same(&how.what, &failure.what)) {
            return Ok(Some(found));
        }
        all = rest;
    }
    Ok(None)
}

/// Every program that one edit makes of this one.
fn candidates(said: &Said) -> Vec<Said> {
    let mut all: Vec<Said> = Vec::new();
    let mut known = BTreeSet::from([said.program.to_string()]);
    dagsan_fuzz::shrink(&said.program, &mut |candidate| {
        // Its handles go through promises already, if they must.
        let candidate = say(candidate, true);
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
