//! DagSan as the OpenMP runtime: what code that clang has compiled with `-fopenmp` calls.
//!
//! ```text
//!   #pragma omp …  ─ clang ─►  __kmpc_*, omp_*  ─► this crate ─► dagsan-rt::team ─► events of tasks
//!                                                     └─ threads of a team take turns (dagsan-rt::turns)
//! ```
//!
//! A parallel region is a team of *virtual threads*: real ones, of which one runs at a time. So everything here is done by one thread after the other, and
//! state that threads share is plain (`member` says whose it is). Who waits gives its turn away, and whoever it waits for wakes it.
//!
//! What the specification orders is told to the detector; what it leaves open is parallel, however this runtime has done it: explicit tasks run at
//! once where they are created, and are parallel to what follows; a `single` is run by whoever comes first, and is parallel to what the
//! others do; a loop whose schedule is open is dealt out in the smallest chunks.
//!
//! | file | constructs |
//! |---|---|
//! | `member` | teams, their threads, and what each is doing |
//! | `fork`, `call` | parallel regions; the variable arguments of their functions |
//! | `barrier` | barriers, and the ends of regions |
//! | `single` | single, copyprivate, master, masked, sections |
//! | `static_loop`, `dispatch` | loops with a fixed schedule, and all others |
//! | `ordered` | ordered, doacross |
//! | `lock`, `critical` | the locks of the API; critical, reductions |
//! | `task`, `run`, `depend`, `group`, `taskloop` | explicit tasks |
//! | `atomic` | atomic operations on what has no instruction |
//! | `pthread` | mutexes, condition variables and the like beside OpenMP |
//! | `api`, `memory` | `omp_*` |
//! | `refuse` | what is not there |

mod api;
mod atomic;
mod barrier;
mod call;
mod cancel;
mod critical;
mod depend;
mod dispatch;
mod fork;
mod group;
mod lock;
mod member;
mod memory;
mod ordered;
mod pool;
mod pthread;
mod refuse;
mod run;
mod single;
mod static_loop;
mod task;
mod taskloop;

/// Shared libraries have hooks, too, and their constructors come before those of the program.
#[used]
#[unsafe(link_section = ".preinit_array")]
static FIRST: extern "C" fn() = dagsan_rt::team::hooks_may_run;

/// All code of the program has hooks, whoever starts threads: also in constructors.
#[used]
#[unsafe(link_section = ".init_array.00001")]
static START: extern "C" fn() = start;

unsafe extern "C" {
    /// Of `strings.c`.
    fn __dagsan_has_code_without_hooks() -> std::ffi::c_int;
}

extern "C" fn start() {
    dagsan_rt::team::all_code_has_hooks();
    // SAFETY: says what was linked.
    if unsafe { __dagsan_has_code_without_hooks() } != 0 {
        dagsan_rt::team::some_has_not();
    }
}
