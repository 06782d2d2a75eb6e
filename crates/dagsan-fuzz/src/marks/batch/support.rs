//! What the functions of a batch are made of, and how they are run. Compiled in the batch's crate only.
//!
//! What the runtime has noted is handed to the system as it is: no hook sees that it is read.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_long, c_void};
use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::mem::transmute;
use std::os::fd::IntoRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, set_hook};
use std::simd::cmp::SimdPartialEq as _;
use std::simd::ptr::SimdMutPtr as _;
use std::simd::{Mask, Simd};
use std::sync::atomic::AtomicU64;

use dagsan_task::finish;

// As in `dagsan-rt/src/tables.rs` and `marks/ast.rs`: how far the tables are from their base.
const SEEN: usize = 0;
const WRITTEN: usize = (1 << 44) + (1 << 20) + 0x840;
const ARENA: usize = 2048;
const SENTINEL: usize = ARENA - 1;
const BASE: usize = 0x6a00_0000_0000;
const OUTPUT: c_int = 200;

type Function =
    unsafe fn(usize, *mut u8, *mut u8, *mut u8, usize, usize, usize, u64, &AtomicU64, &mut [u64; 2]);

/// A function, and what it is called with.
pub struct Case {
    pub function: Function,
    pub pointers: [usize; 3],
    pub numbers: [usize; 3],
    pub flags: u64,
    pub hash_outside: bool,
}

#[repr(C)]
struct Piece {
    base: *const c_void,
    len: usize,
}

unsafe extern "C" {
    fn mmap(at: *mut c_void, len: usize, protection: c_int, flags: c_int, fd: c_int, offset: c_long)
    -> *mut c_void;
    fn dup2(from: c_int, to: c_int) -> c_int;
    fn writev(fd: c_int, pieces: *const Piece, count: c_int) -> isize;
    fn syscall(number: c_long, ...) -> c_long;
}

/// The base of the tables, which is in the segment register gs. Written before there are tasks.
static mut TABLES: usize = 0;

/// Asks the system for it: assembly would be something that DagSan cannot see.
fn find_tables() {
    const ARCH_PRCTL: c_long = 158;
    const ARCH_GET_GS: c_long = 0x1004;
    // SAFETY: there are no tasks yet; the system writes a word.
    assert_eq!(unsafe { syscall(ARCH_PRCTL, ARCH_GET_GS, &raw mut TABLES) }, 0);
}

pub fn main(cases: &'static [Case]) {
    find_tables();
    let mut arguments = std::env::args_os().skip(1);
    let memory = File::open(arguments.next().expect("a file of memory")).expect("memory");
    let output = File::create(arguments.next().expect("a file for the output")).expect("output");
    // PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED_NOREPLACE.
    // SAFETY: replaces nothing; the file has as much memory as all cases need.
    let at = unsafe { mmap(BASE as *mut c_void, cases.len() * ARENA, 3, 0x10_0002, memory.into_raw_fd(), 0) };
    assert_eq!(at as usize, BASE, "the memory is where the reference has it");
    // SAFETY: a number that nobody uses.
    assert_eq!(unsafe { dup2(output.into_raw_fd(), OUTPUT) }, OUTPUT);
    // Before anything is unwound.
    set_hook(Box::new(|_| show(RUNNING.get())));
    finish(|scope| {
        for number in 0..cases.len() {
            scope.spawn(move |_| run(number, black_box(&cases[number])));
        }
    });
}

/// Frees nothing: the runtime hands on what a strand has touched before a block is freed, and the message of a panic is
/// a block that grows.
struct Keeping;

// SAFETY: as the system's; the other methods use these.
unsafe impl GlobalAlloc for Keeping {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Keeping = Keeping;

thread_local! {
    /// Where the memory of the running function is.
    static RUNNING: Cell<usize> = const { Cell::new(0) };
}

fn run(number: usize, case: &'static Case) {
    let t = BASE + number * ARENA;
    let [a, b, c] = case.pointers.map(|at| (t + at) as *mut u8);
    let [n, m, k] = case.numbers;
    let word = AtomicU64::new(0);
    let mut hash = [case.flags, 0];
    RUNNING.set(t);
    begin(t);
    // SAFETY: the reference has seen what it does.
    let call = || unsafe { (case.function)(t, a, b, c, n, m, k, case.flags, &word, &mut hash) };
    let ended = catch_unwind(AssertUnwindSafe(call));
    if ended.is_ok() {
        show(t);
    }
    if let Err(payload) = &ended
        && let Some(at_panic) = payload.downcast_ref::<[u64; 2]>()
        && !case.hash_outside
    {
        hash = *at_panic;
    }
    let head = [2, number as u64, u64::from(ended.is_err()), hash[0], hash[1]];
    write([(&raw const head).cast(), t as *const c_void], [size_of_val(&head), ARENA]);
}

fn write<const COUNT: usize>(bases: [*const c_void; COUNT], lens: [usize; COUNT]) {
    let pieces: [Piece; COUNT] = std::array::from_fn(|at| Piece { base: bases[at], len: lens[at] });
    // SAFETY: the callers have so much memory there.
    let written = unsafe { writev(OUTPUT, pieces.as_ptr(), COUNT as c_int) };
    assert_eq!(written, lens.iter().sum::<usize>() as isize, "a file takes all");
}

/// A strand begins.
#[inline(never)]
fn begin(t: usize) {
    // SAFETY: the last byte of the memory of a function.
    unsafe { ((t + SENTINEL) as *mut u8).write_volatile(1) };
}

/// Shows what the runtime has noted of the running strand.
#[inline(never)]
pub fn show(t: usize) {
    let head = [1u64, ((t - BASE) / ARENA) as u64, 0, 0, 0];
    // SAFETY: it does not change any more.
    let tables = unsafe { TABLES };
    let table = |table: usize| (tables + table + t / 8) as *const c_void;
    write([(&raw const head).cast(), table(SEEN), table(WRITTEN)], [size_of_val(&head), ARENA / 8, ARENA / 8]);
}

/// Ends the strand.
#[inline(never)]
pub fn event(t: usize) {
    finish(|scope| scope.spawn(|_| {}));
    begin(t);
}

struct Body(*mut (dyn FnMut() + 'static));

// SAFETY: all tasks run on one thread.
unsafe impl Send for Body {}

/// Runs it as a task, whose strand shows what it has touched.
#[inline(never)]
pub fn in_task(t: usize, body: &mut dyn FnMut()) {
    show(t);
    // SAFETY: the task has ended when this function returns.
    let body = Body(unsafe { transmute::<*mut dyn FnMut(), *mut (dyn FnMut() + 'static)>(body) });
    finish(|scope| {
        scope.spawn(move |_| {
            let body = body;
            begin(t);
            // SAFETY: see above.
            unsafe { (*body.0)() };
            show(t);
        });
    });
    begin(t);
}

#[inline(always)]
pub fn opaque() {
    fn nothing() {}
    black_box(nothing as fn())();
}

#[inline(always)]
pub fn opaque_with(pointer: *mut u8) {
    fn nothing(_: *mut u8) {}
    black_box(nothing as fn(*mut u8))(pointer);
}

#[cold]
#[inline(never)]
pub fn fail(hash: [u64; 2]) -> ! {
    panic_any(hash)
}

#[inline(never)]
pub fn fail_if(fails: bool, hash: [u64; 2]) {
    if fails {
        panic_any(hash);
    }
}

// ---- values: as in `marks/memory.rs` -----------------------------------------------------------------

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(always)]
pub fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(11) ^ value).wrapping_mul(STEP).rotate_left(23)
}

#[inline(always)]
pub fn spread(number: usize) -> u64 {
    (number as u64).wrapping_mul(STEP)
}

pub trait Val: Copy {
    fn fold(self) -> u64;
    fn make(number: u64) -> Self;
}

#[inline(always)]
pub fn fold<T: Val>(value: T) -> u64 {
    value.fold()
}

#[inline(always)]
pub fn make<T: Val>(number: u64) -> T {
    T::make(number)
}

#[inline(never)]
pub fn pass<T: Val>(value: T) -> T {
    black_box(value)
}

macro_rules! values {
    ($($T:ty, $value:ident => $fold:expr, $number:ident => $make:expr;)*) => {
        $(impl Val for $T {
            #[inline(always)]
            fn fold(self) -> u64 {
                let $value = self;
                $fold
            }
            #[inline(always)]
            fn make($number: u64) -> Self {
                $make
            }
        })*
    };
}

#[inline(always)]
fn second(number: u64) -> u64 {
    number.wrapping_add(STEP)
}

/// Of `u8`, `u32`, `u16`.
#[repr(C, packed)]
#[derive(Clone, Copy)]
pub struct Packed {
    pub a: u8,
    pub b: u32,
    pub c: u16,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Xyz {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Padded {
    pub a: u8,
    pub b: u64,
    pub c: u16,
}

values! {
    u8, v => v.into(), n => n as u8;
    u16, v => v.into(), n => n as u16;
    u32, v => v.into(), n => n as u32;
    u64, v => v, n => n;
    u128, v => v as u64 ^ ((v >> 64) as u64).rotate_left(29), n => u128::from(n) | u128::from(second(n)) << 64;
    f32, v => v.to_bits().into(), n => f32::from_bits(n as u32);
    f64, v => v.to_bits(), n => f64::from_bits(n);
    Packed, v => u64::from(v.a) | u64::from(v.b) << 8 | u64::from(v.c) << 40,
        n => Packed { a: n as u8, b: (n >> 8) as u32, c: (n >> 40) as u16 };
    Xyz, v => (u64::from(v.x) | u64::from(v.y) << 32) ^ u64::from(v.z).rotate_left(29),
        n => Xyz { x: n as u32, y: (n >> 32) as u32, z: second(n) as u32 };
}

impl<const N: usize> Val for [u8; N] {
    #[inline(always)]
    fn fold(self) -> u64 {
        let mut words = [0u8; 16];
        words[..N].copy_from_slice(&self);
        u128::from_le_bytes(words).fold()
    }
    #[inline(always)]
    fn make(number: u64) -> Self {
        let words = u128::make(number).to_le_bytes();
        std::array::from_fn(|at| words[at])
    }
}

macro_rules! vectors {
    ($($V:ident $words:literal)*) => {
        $(#[repr(simd)]
        #[derive(Clone, Copy)]
        pub struct $V([u64; $words]);

        impl Val for $V {
            #[inline(always)]
            fn fold(self) -> u64 {
                // SAFETY: both are so many words.
                let words: [u64; $words] = unsafe { transmute(self) };
                words.into_iter().zip(0u32..).fold(0, |all, (word, at)| all ^ word.rotate_left(29 * at % 64))
            }
            #[inline(always)]
            fn make(number: u64) -> Self {
                let words: [u64; $words] =
                    std::array::from_fn(|at| number.wrapping_add(STEP.wrapping_mul(at as u64)));
                // SAFETY: as above.
                unsafe { transmute(words) }
            }
        })*
    };
}

vectors! { V16 2 V32 4 V64 8 }

/// A local variable.
#[repr(align(64))]
pub struct Local<const N: usize>(pub [u8; N]);

// ---- ranges ---------------------------------------------------------------------------------------

#[inline(always)]
pub unsafe fn slice<T>(at: *mut u8, len: usize) -> &'static mut [T] {
    std::slice::from_raw_parts_mut(at.cast(), len)
}

#[inline(always)]
pub unsafe fn sum_inlined<T: Val>(at: *mut u8, len: usize) -> u64 {
    let mut sum = 0u64;
    for index in 0..len {
        sum = sum.wrapping_add(fold(*at.cast::<T>().add(index)));
    }
    sum
}

#[inline(never)]
pub unsafe fn sum_called<T: Val>(at: *mut u8, len: usize) -> u64 {
    sum_inlined::<T>(at, len)
}

#[inline(never)]
pub unsafe fn sum_recursive<T: Val>(at: *mut u8, len: usize) -> u64 {
    if len == 0 {
        return 0;
    }
    let middle = len / 2;
    let first = fold(*at.cast::<T>().add(middle));
    first
        .wrapping_add(sum_recursive::<T>(at, middle))
        .wrapping_add(sum_recursive::<T>(at.cast::<T>().add(middle + 1).cast(), len - middle - 1))
}

#[inline(never)]
pub unsafe fn fill_called<T: Val>(at: *mut u8, len: usize) {
    for index in 0..len {
        *at.cast::<T>().add(index) = make(spread(index));
    }
}

// Not so small that each module has its own, and small enough to be inlined when modules come together.

pub fn each_far(count: usize, mut body: impl FnMut(usize)) {
    for index in 0..count {
        body(index);
    }
}

pub unsafe fn sum_far<T: Val>(at: *mut u8, len: usize) -> u64 {
    let mut sum = 0u64;
    // SAFETY: the reference has refused what is beyond the memory.
    each_far(len, |index| unsafe { sum = sum.wrapping_add(fold(*at.cast::<T>().add(index))) });
    sum
}

pub unsafe fn fill_far<T: Val>(at: *mut u8, len: usize) {
    // SAFETY: as above.
    each_far(len, |index| unsafe { *at.cast::<T>().add(index) = make(spread(index)) });
}

// ---- vectors of which elements are picked ---------------------------------------------------------

type Lanes = Simd<u32, 8>;

#[inline(always)]
fn lanes(number: u64) -> Lanes {
    // SAFETY: both are 32 bytes.
    unsafe { transmute(V32::make(number)) }
}

#[inline(always)]
fn fold_lanes(lanes: Lanes) -> u64 {
    // SAFETY: as above.
    unsafe { transmute::<Lanes, V32>(lanes) }.fold()
}

#[inline(always)]
fn picked(mask: usize) -> Mask<i32, 8> {
    Mask::from_bitmask(mask as u8 as u64)
}

#[inline(always)]
fn spaced(at: *mut u32) -> Simd<*mut u32, 8> {
    Simd::splat(at).wrapping_add(Simd::from_array([0, 3, 6, 9, 12, 15, 18, 21]))
}

#[inline(always)]
pub unsafe fn masked_load(at: *mut u32, mask: usize) -> u64 {
    fold_lanes(Lanes::load_select_ptr(at, picked(mask), Lanes::splat(0)))
}

#[inline(always)]
pub unsafe fn masked_store(at: *mut u32, mask: usize, number: u64) {
    lanes(number).store_select_ptr(at, picked(mask));
}

#[inline(always)]
pub unsafe fn gather(at: *mut u32, mask: usize) -> u64 {
    fold_lanes(Lanes::gather_select_ptr(spaced(at).cast_const(), picked(mask).cast(), Lanes::splat(0)))
}

#[inline(always)]
pub unsafe fn scatter(at: *mut u32, mask: usize, number: u64) {
    lanes(number).scatter_select_ptr(spaced(at), picked(mask).cast());
}

/// The sign bits of these lanes.
#[inline(always)]
fn signs(mask: usize) -> std::arch::x86_64::__m256i {
    let lanes: [u32; 8] = std::array::from_fn(|lane| (mask as u32) >> lane << 31);
    // SAFETY: both are 32 bytes.
    unsafe { transmute(lanes) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub unsafe fn avx_load(at: *mut u32, mask: usize) -> u64 {
    let loaded = std::arch::x86_64::_mm256_maskload_epi32(at.cast(), signs(mask));
    transmute::<_, V32>(loaded).fold()
}

#[inline]
#[target_feature(enable = "avx2")]
pub unsafe fn avx_store(at: *mut u32, mask: usize, number: u64) {
    std::arch::x86_64::_mm256_maskstore_epi32(at.cast(), signs(mask), transmute(V32::make(number)));
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
pub unsafe fn expand(at: *mut u32, mask: usize) -> u64 {
    let loaded = std::arch::x86_64::_mm256_maskz_expandloadu_epi32(mask as u8, at.cast());
    transmute::<_, V32>(loaded).fold()
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
pub unsafe fn compress(at: *mut u32, mask: usize, number: u64) {
    std::arch::x86_64::_mm256_mask_compressstoreu_epi32(at.cast(), mask as u8, transmute(V32::make(number)));
}
