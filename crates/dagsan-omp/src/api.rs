//! The functions that programs call by name, and the variables of the environment.

use std::cell::Cell;
use std::env;
use std::ffi::{c_double, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::time::Instant;

use crate::member::{self, Member};

/// So many threads a team has at least, unless somebody says otherwise: races between neighbours need two, and most mistakes with numbers show with four.
const THREADS: usize = 4;
/// No team has more.
const MOST: usize = 1024;
/// Regions inside of so many others have one thread: those of recursive programs would have too many.
const LEVELS: usize = 2;

const STATIC: i32 = 34;
const STATIC_CHUNKED: i32 = 33;
const DYNAMIC: i32 = 35;
const GUIDED: i32 = 36;
const AUTO: i32 = 38;

struct Environment {
    threads: usize,
    levels: usize,
    limit: usize,
    schedule: (i32, i64),
    cancellation: bool,
}

fn environment() -> &'static Environment {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let number = |name: &str| -> Option<usize> {
            let text = env::var(name).ok()?;
            text.split(',').next()?.trim().parse().ok().filter(|&number| number > 0)
        };
        let is_true = |name: &str| env::var(name).is_ok_and(|text| text.trim().eq_ignore_ascii_case("true"));
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        let levels = if is_true("OMP_NESTED") { Some(MOST) } else { None };
        Environment {
            threads: number("OMP_NUM_THREADS").unwrap_or(available.max(THREADS)),
            levels: number("OMP_MAX_ACTIVE_LEVELS").or(levels).unwrap_or(LEVELS),
            limit: number("OMP_THREAD_LIMIT").unwrap_or(MOST).min(MOST),
            schedule: env::var("OMP_SCHEDULE").map_or((DYNAMIC, 1), |text| parse_schedule(&text)),
            cancellation: is_true("OMP_CANCELLATION"),
        }
    })
}

fn parse_schedule(text: &str) -> (i32, i64) {
    let text = text.rsplit(':').next().unwrap_or(text);
    let (kind, chunk) = text.split_once(',').unwrap_or((text, "0"));
    let chunk = chunk.trim().parse().unwrap_or(0);
    match kind.trim().to_ascii_lowercase().as_str() {
        "static" if chunk > 0 => (STATIC_CHUNKED, chunk),
        "static" => (STATIC, 0),
        "guided" => (GUIDED, chunk.max(1)),
        "auto" => (AUTO, 1),
        _ => (DYNAMIC, chunk.max(1)),
    }
}

/// How many threads a region has, and how loops are dealt out, if the program does not say.
pub fn from_environment() -> (usize, (i32, i64)) {
    (environment().threads, environment().schedule)
}

/// How many threads a team may have.
pub fn limit() -> usize {
    environment().limit
}

/// Is a construct to be cancelled if the program says so?
pub fn cancellation() -> bool {
    environment().cancellation
}

thread_local! {
    static LEVELS_OF_THREAD: Cell<usize> = const { Cell::new(0) };
    static IN_TEAMS: Cell<bool> = const { Cell::new(false) };
}

/// How many regions with several threads may be in each other.
pub fn max_active_levels() -> usize {
    match LEVELS_OF_THREAD.get() {
        0 => environment().levels,
        levels => levels - 1,
    }
}

/// This thread is in a league of teams, or not.
pub fn set_teams(in_teams: bool) {
    IN_TEAMS.set(in_teams);
}

fn ask<R>(answer: impl FnOnce(&mut Member, &mut member::Team) -> R) -> R {
    member::with(|member, region, _| answer(member, region))
}

/// The member of this thread in the region of that level.
fn at_level(level: c_int) -> Option<*mut Member> {
    let mut member = member::this();
    // SAFETY: this thread's own, and those around it, up to the first of another thread.
    unsafe {
        loop {
            if (*(*member).team).level as c_int == level {
                return Some(member);
            }
            let outer = (*member).outer;
            if outer.is_null() {
                // The region was started by thread 0 of its team.
                let first = (*(*member).team).members.first().copied()?;
                let outer = (*first).outer;
                if first == member || outer.is_null() {
                    return None;
                }
                member = outer;
            } else {
                member = outer;
            }
        }
    }
}

macro_rules! api {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $body:block)*) => { $(
        /// As in the specification.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $type),*) $(-> $result)? $body
    )* };
}

fn started() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

api! {
    omp_get_thread_num() -> c_int { ask(|member, _| member.number as c_int) }
    omp_get_num_threads() -> c_int { ask(|_, region| region.size as c_int) }
    omp_get_max_threads() -> c_int { ask(|member, _| member.wanted.unwrap_or(member.threads) as c_int) }
    omp_set_num_threads(threads: c_int) {
        ask(|member, _| member.threads = usize::try_from(threads).unwrap_or(1).clamp(1, MOST));
    }
    omp_get_num_procs() -> c_int { environment().threads as c_int }
    omp_in_parallel() -> c_int { ask(|_, region| c_int::from(region.active_level > 0)) }
    omp_get_dynamic() -> c_int { 0 }
    omp_set_dynamic(_dynamic: c_int) {}
    omp_get_nested() -> c_int { c_int::from(max_active_levels() > 1) }
    omp_set_nested(nested: c_int) { LEVELS_OF_THREAD.set(if nested != 0 { MOST + 1 } else { 2 }) }
    omp_get_max_active_levels() -> c_int { max_active_levels() as c_int }
    omp_set_max_active_levels(levels: c_int) { LEVELS_OF_THREAD.set(usize::try_from(levels).unwrap_or(0).min(MOST) + 1) }
    omp_get_supported_active_levels() -> c_int { MOST as c_int }
    omp_get_level() -> c_int { ask(|_, region| region.level as c_int) }
    omp_get_active_level() -> c_int { ask(|_, region| region.active_level as c_int) }
    omp_get_thread_limit() -> c_int { limit() as c_int }
    omp_get_cancellation() -> c_int { c_int::from(cancellation()) }
    omp_in_final() -> c_int {
        // SAFETY: the running task lives.
        ask(|member, _| c_int::from(unsafe { (*member.task).is_final }))
    }
    omp_in_explicit_task() -> c_int {
        // SAFETY: the running task lives.
        ask(|member, _| c_int::from(!unsafe { (*member.task).parent }.is_null()))
    }
    omp_get_ancestor_thread_num(level: c_int) -> c_int {
        // SAFETY: a member around this thread's, which waits for this region.
        at_level(level).map_or(-1, |member| unsafe { (*member).number as c_int })
    }
    omp_get_team_size(level: c_int) -> c_int {
        // SAFETY: a member around this thread's, which waits for this region.
        at_level(level).map_or(-1, |member| unsafe { (*(*member).team).size as c_int })
    }
    omp_get_num_teams() -> c_int { 1 }
    omp_get_team_num() -> c_int { 0 }
    omp_get_max_teams() -> c_int { 1 }
    omp_set_num_teams(_teams: c_int) {}
    omp_get_teams_thread_limit() -> c_int { limit() as c_int }
    omp_set_teams_thread_limit(_limit: c_int) {}
    omp_get_wtime() -> c_double { started().elapsed().as_secs_f64() }
    omp_get_wtick() -> c_double { 1e-9 }
    omp_is_initial_device() -> c_int { 1 }
    omp_get_num_devices() -> c_int { 0 }
    omp_get_initial_device() -> c_int { 0 }
    omp_get_default_device() -> c_int { 0 }
    omp_set_default_device(_device: c_int) {}
    omp_get_device_num() -> c_int { 0 }
    omp_get_proc_bind() -> c_int { 0 }
    omp_get_num_places() -> c_int { 0 }
    omp_get_place_num() -> c_int { -1 }
    omp_get_partition_num_places() -> c_int { 0 }
    omp_get_max_task_priority() -> c_int { 0 }
    omp_get_default_allocator() -> *mut c_void { ptr::without_provenance_mut(1) }
    omp_set_default_allocator(_allocator: *mut c_void) {}
    omp_pause_resource(_kind: c_int, _device: c_int) -> c_int { 0 }
    omp_pause_resource_all(_kind: c_int) -> c_int { 0 }
    omp_set_schedule(kind: c_int, chunk: c_int) {
        ask(|member, _| {
            member.schedule = match kind & 0xf {
                1 if chunk > 0 => (STATIC_CHUNKED, chunk.into()),
                1 => (STATIC, 0),
                3 => (GUIDED, chunk.max(1).into()),
                4 => (AUTO, 1),
                _ => (DYNAMIC, chunk.max(1).into()),
            };
        });
    }
}

/// As in the specification.
///
/// # Safety
///
/// Two numbers to write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn omp_get_schedule(kind: *mut c_int, chunk: *mut c_int) {
    let (schedule, size) = ask(|member, _| member.schedule);
    let number = match schedule {
        STATIC | STATIC_CHUNKED => 1,
        GUIDED => 3,
        AUTO => 4,
        _ => 2,
    };
    // SAFETY: the caller's promise.
    unsafe { (*kind, *chunk) = (number, size as c_int) };
}

/// The environment is not shown: what it says is in the documentation.
#[unsafe(no_mangle)]
pub extern "C" fn omp_display_env(_verbose: c_int) {}
