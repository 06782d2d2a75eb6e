//! How many accesses and marks were executed: counted by the program itself, if it was compiled for that (`counts` in
//! `dagsan-pass`).
//!
//! The program counts without atomic operations. What threads beside that of the tasks do may get lost.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use dagsan_findings::Marks;

use crate::counted::{COUNTED, Counted};

/// The code of `dagsan-pass` writes it, as words.
#[unsafe(export_name = "__dagsan_counts")]
static COUNTS: [AtomicU64; COUNTED] = [const { AtomicU64::new(0) }; COUNTED];

/// The numbers, if anything was counted.
pub fn counted() -> Option<Marks> {
    // Relaxed: a number is of this or of an earlier moment, and nothing depends on it.
    let of = |what: Counted| COUNTS[what as usize].load(Relaxed);
    let marks = Marks {
        in_place: of(Counted::InPlace),
        covered: of(Counted::Covered),
        merged: of(Counted::Merged),
        sunk: of(Counted::Sunk),
        other: of(Counted::Other),
        in_line: of(Counted::InLine),
        ranges: of(Counted::Range),
    };
    (marks != Marks::default()).then_some(marks)
}
