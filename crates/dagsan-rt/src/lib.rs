//! DagSan inside the checked program.
//!
//! `cargo dagsan` has the compiler insert ThreadSanitizer's calls around every access, and links this crate in place of
//! ThreadSanitizer's runtime. The crate keeps the access set of the running strand, hears of tasks from the task
//! runtimes, hands both to the detector of dagsan-core, and writes what was found to a file when the program ends.
//!
//! ```text
//!   the program          this crate                                                    dagsan-core
//!   access   ──────────► hooks ─► (new bytes) miss ─► log, layout ──┐   (journal)
//!   memcpy, ==  ───────► ranges, pass ──────────────────────────────┤
//!   atomic operation ──► atomics ─► sync: locks, release/acquire ───┼─► session ─────► Stream ─► Detector
//!   malloc, free  ─────► heap ──────────────────────────────────────┤     │ strand ends: runs, then the event
//!   spawn, get, …  ────► events ─► tasks ───────────────────────────┘     └─► races ─► exit ─► findings file
//!   thread  ───────────► threads
//! ```
//!
//! This crate is compiled without instrumentation, and what it allocates passes by its own hooks. It is for Linux on
//! x86-64 with the GNU C library.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")))]
compile_error!("dagsan-rt is for x86_64-unknown-linux-gnu");

mod atomics;
mod blocks;
mod caches;
mod contention;
mod counted;
mod counts;
mod delays;
mod events;
mod exit;
mod faults;
mod fresh;
mod gains;
mod heap;
mod holder;
mod hooks;
mod image;
mod journal;
mod kept_ranges;
mod layout;
mod log;
mod mappings;
mod memory;
mod miss;
#[cfg(feature = "pass")]
mod miss_range;
mod nest;
mod offers;
mod options;
mod outbox;
mod owned;
mod part;
mod pass;
mod peek;
mod polls;
mod private;
mod promises;
mod quarantine;
mod races;
mod ranges;
mod reach;
mod recorder;
mod replay;
mod reserve;
mod scopes;
mod session;
mod shared;
mod sites;
mod start;
mod state;
mod sync;
mod system;
mod tables;
mod tasks;
pub mod team;
mod team_tasks;
mod texts;
mod thread_tasks;
mod threads;
mod tiny;
mod turns;
mod uses;
mod vacant;
mod waits;
mod watched;
mod withheld;
