//! Memory of the API and of `allocate` clauses: all allocators are the heap.

use std::ffi::c_void;
use std::ptr;

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn calloc(count: usize, size: usize) -> *mut c_void;
    fn realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn memalign(alignment: usize, size: usize) -> *mut c_void;
    fn free(block: *mut c_void);
}

/// As in the specification.
#[unsafe(no_mangle)]
pub extern "C" fn omp_alloc(size: usize, _allocator: *mut c_void) -> *mut c_void {
    // SAFETY: any size will do.
    unsafe { malloc(size) }
}

/// As in the specification.
#[unsafe(no_mangle)]
pub extern "C" fn omp_calloc(count: usize, size: usize, _allocator: *mut c_void) -> *mut c_void {
    // SAFETY: any size will do.
    unsafe { calloc(count, size) }
}

/// As in the specification.
///
/// # Safety
///
/// A block of `omp_alloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn omp_free(block: *mut c_void, _allocator: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { free(block) };
}

/// Memory of `allocate` clauses.
#[unsafe(no_mangle)]
pub extern "C" fn __kmpc_alloc(_thread: i32, size: usize, _allocator: *mut c_void) -> *mut c_void {
    // SAFETY: any size will do.
    unsafe { malloc(size) }
}

/// Its end.
///
/// # Safety
///
/// A block of `__kmpc_alloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __kmpc_free(_thread: i32, block: *mut c_void, _allocator: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { free(block) };
}

/// The same, so aligned.
#[unsafe(no_mangle)]
pub extern "C" fn __kmpc_aligned_alloc(
    _thread: i32,
    alignment: usize,
    size: usize,
    allocator: *mut c_void,
) -> *mut c_void {
    omp_aligned_alloc(alignment, size, allocator)
}

/// As in the specification.
#[unsafe(no_mangle)]
pub extern "C" fn omp_aligned_alloc(alignment: usize, size: usize, _allocator: *mut c_void) -> *mut c_void {
    if !alignment.is_power_of_two() {
        return ptr::null_mut();
    }
    // SAFETY: any size will do.
    unsafe { memalign(alignment, size) }
}

/// As in the specification.
#[unsafe(no_mangle)]
pub extern "C" fn omp_aligned_calloc(
    alignment: usize,
    count: usize,
    size: usize,
    allocator: *mut c_void,
) -> *mut c_void {
    let Some(all) = count.checked_mul(size) else { return ptr::null_mut() };
    let block = omp_aligned_alloc(alignment, all, allocator);
    if !block.is_null() {
        // SAFETY: so many bytes were just allocated, and nobody else has them.
        unsafe { block.cast::<u8>().write_bytes(0, all) };
    }
    block
}

/// As in the specification.
///
/// # Safety
///
/// A block of `omp_alloc`, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn omp_realloc(
    block: *mut c_void,
    size: usize,
    _allocator: *mut c_void,
    _freed_by: *mut c_void,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { realloc(block, size) }
}
