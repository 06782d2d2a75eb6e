//! Atomic operations: the hooks perform them, and tell what they did.
//!
//! The compiler replaces every atomic operation by a call, so it is done here, at least as strongly ordered as was asked.
//! What it means for the order of tasks, and whether it takes a lock, is worked out in `sync`.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use crate::contention::Wants;
use crate::session;
use crate::start;
use crate::state::is_active;
use crate::sync::{Change, Done, Order};
use crate::turns;

/// Tells the session what an operation did; the code that asked for it is who called the function that this is
/// inlined into.
macro_rules! done {
    ($address:expr, $bytes:expr, $done:expr, $order:expr) => {
        if is_active() && crate::turns::is_mine() {
            let (address, done, order) = ($address as usize, $done, Order::from_abi($order));
            let frame = start::frame();
            if !crate::sync::says_nothing(address, $bytes, done, order, frame) {
                session::called(frame, |session| session.atomic(address, $bytes, done, order, frame));
            }
            if crate::turns::are_taken() {
                crate::contention::after(address, done);
            }
        }
    };
}

/// Comes before an operation: who runs ahead, and threads that take turns, may have to wait.
macro_rules! before {
    ($address:expr, $bytes:expr, $wants:expr) => {
        // What a program does next may depend on it, and is to be the same in each run.
        $crate::session::in_order();
        if crate::turns::are_taken() {
            crate::contention::before($address as usize, $bytes, $wants);
        } else {
            crate::threads::has_hooks();
        }
    };
}

pub(crate) use {before, done};

/// What a compare-exchange of an order did if it failed. One that would have acquired may be of a lock.
fn failed(value: u64, order: i32) -> Done {
    if Order::from_abi(order).acquire { Done::Load { value } } else { Done::Failed { value } }
}

macro_rules! hooks {
    ($T:ty, $Atomic:ty, $bytes:literal, $load:ident, $store:ident, $exchange:ident, $val:ident, $strong:ident, $weak:ident,
     [$($fetch:ident = $method:ident, $change:expr, $new:expr;)*]) => {
        /// Loads.
        ///
        /// # Safety
        ///
        /// The address is that of a living atomic.
        #[unsafe(no_mangle)]
        #[inline(never)]
        pub unsafe extern "C" fn $load(address: *mut $T, order: i32) -> $T {
            before!(address, $bytes, Wants::Lock);
            // SAFETY: the caller's promise.
            let value = unsafe { <$Atomic>::from_ptr(address) }.load(Ordering::SeqCst);
            done!(address, $bytes, Done::Load { value: value as u64 }, order);
            value
        }

        /// Stores.
        ///
        /// # Safety
        ///
        /// The address is that of a living atomic.
        #[unsafe(no_mangle)]
        #[inline(never)]
        pub unsafe extern "C" fn $store(address: *mut $T, value: $T, order: i32) {
            before!(address, $bytes, Wants::Other);
            // SAFETY: the caller's promise.
            let atomic = unsafe { <$Atomic>::from_ptr(address) };
            // The strongest order takes an instruction more, and most stores are not meant to order anything.
            atomic.store(value, if order == 0 { Ordering::Relaxed } else { Ordering::SeqCst });
            done!(address, $bytes, Done::Store { new: value as u64 }, order);
        }

        /// Exchanges.
        ///
        /// # Safety
        ///
        /// The address is that of a living atomic.
        #[unsafe(no_mangle)]
        #[inline(never)]
        pub unsafe extern "C" fn $exchange(address: *mut $T, value: $T, order: i32) -> $T {
            before!(address, $bytes, Wants::Other);
            // SAFETY: the caller's promise.
            let old = unsafe { <$Atomic>::from_ptr(address) }.swap(value, Ordering::SeqCst);
            done!(address, $bytes, Done::Update { old: old as u64, new: value as u64, change: Change::Exchange }, order);
            old
        }

        /// Exchanges if the old value is the expected one; gives the old value.
        ///
        /// # Safety
        ///
        /// The address is that of a living atomic.
        #[unsafe(no_mangle)]
        #[inline(never)]
        pub unsafe extern "C" fn $val(address: *mut $T, expected: $T, value: $T, order: i32, failure: i32) -> $T {
            before!(address, $bytes, if expected == 0 { Wants::Lock } else { Wants::Other });
            // SAFETY: the caller's promise.
            let atomic = unsafe { <$Atomic>::from_ptr(address) };
            match atomic.compare_exchange(expected, value, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(old) => {
                    let done = Done::Update { old: old as u64, new: value as u64, change: Change::CompareExchange };
                    done!(address, $bytes, done, order);
                    old
                }
                Err(old) => {
                    done!(address, $bytes, failed(old as u64, order), failure);
                    old
                }
            }
        }

        /// Exchanges if the old value is the expected one; says whether, and gives the old value if not.
        ///
        /// # Safety
        ///
        /// The addresses are those of a living atomic and of a value.
        #[unsafe(no_mangle)]
        #[inline(never)]
        pub unsafe extern "C" fn $strong(
            address: *mut $T, expected: *mut $T, value: $T, order: i32, failure: i32,
        ) -> i32 {
            // SAFETY: the caller's promise.
            let (atomic, wanted) = unsafe { (<$Atomic>::from_ptr(address), expected.read()) };
            before!(address, $bytes, if wanted == 0 { Wants::Lock } else { Wants::Other });
            match atomic.compare_exchange(wanted, value, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(old) => {
                    let done = Done::Update { old: old as u64, new: value as u64, change: Change::CompareExchange };
                    done!(address, $bytes, done, order);
                    1
                }
                Err(old) => {
                    // SAFETY: the caller's promise.
                    unsafe { expected.write(old) };
                    done!(address, $bytes, failed(old as u64, order), failure);
                    0
                }
            }
        }

        /// The same; it need not fail for no reason.
        ///
        /// # Safety
        ///
        /// As for the strong form.
        #[unsafe(no_mangle)]
        #[inline(never)]
        pub unsafe extern "C" fn $weak(
            address: *mut $T, expected: *mut $T, value: $T, order: i32, failure: i32,
        ) -> i32 {
            // SAFETY: the caller's promise.
            unsafe { $strong(address, expected, value, order, failure) }
        }

        $(
            /// Changes the value, and gives the old one.
            ///
            /// # Safety
            ///
            /// The address is that of a living atomic.
            #[unsafe(no_mangle)]
            #[inline(never)]
            pub unsafe extern "C" fn $fetch(address: *mut $T, value: $T, order: i32) -> $T {
                before!(address, $bytes, Wants::Other);
                // SAFETY: the caller's promise.
                let old = unsafe { <$Atomic>::from_ptr(address) }.$method(value, Ordering::SeqCst);
                let new: fn($T, $T) -> $T = $new;
                let done = Done::Update { old: old as u64, new: new(old, value) as u64, change: $change };
                done!(address, $bytes, done, order);
                old
            }
        )*
    };
}

macro_rules! width {
    ($T:ty, $Atomic:ty, $bytes:literal, $load:ident, $store:ident, $exchange:ident, $val:ident, $strong:ident, $weak:ident,
     $add:ident, $sub:ident, $and:ident, $or:ident, $xor:ident, $nand:ident) => {
        hooks!($T, $Atomic, $bytes, $load, $store, $exchange, $val, $strong, $weak, [
            $add = fetch_add, Change::Arithmetic, |old, value| old.wrapping_add(value);
            $sub = fetch_sub, Change::Arithmetic, |old, value| old.wrapping_sub(value);
            $and = fetch_and, Change::Other, |old, value| old & value;
            $or = fetch_or, Change::Other, |old, value| old | value;
            $xor = fetch_xor, Change::Other, |old, value| old ^ value;
            $nand = fetch_nand, Change::Other, |old, value| !(old & value);
        ]);
    };
}

width!(
    u8,
    AtomicU8,
    1,
    __tsan_atomic8_load,
    __tsan_atomic8_store,
    __tsan_atomic8_exchange,
    __tsan_atomic8_compare_exchange_val,
    __tsan_atomic8_compare_exchange_strong,
    __tsan_atomic8_compare_exchange_weak,
    __tsan_atomic8_fetch_add,
    __tsan_atomic8_fetch_sub,
    __tsan_atomic8_fetch_and,
    __tsan_atomic8_fetch_or,
    __tsan_atomic8_fetch_xor,
    __tsan_atomic8_fetch_nand
);
width!(
    u16,
    AtomicU16,
    2,
    __tsan_atomic16_load,
    __tsan_atomic16_store,
    __tsan_atomic16_exchange,
    __tsan_atomic16_compare_exchange_val,
    __tsan_atomic16_compare_exchange_strong,
    __tsan_atomic16_compare_exchange_weak,
    __tsan_atomic16_fetch_add,
    __tsan_atomic16_fetch_sub,
    __tsan_atomic16_fetch_and,
    __tsan_atomic16_fetch_or,
    __tsan_atomic16_fetch_xor,
    __tsan_atomic16_fetch_nand
);
width!(
    u32,
    AtomicU32,
    4,
    __tsan_atomic32_load,
    __tsan_atomic32_store,
    __tsan_atomic32_exchange,
    __tsan_atomic32_compare_exchange_val,
    __tsan_atomic32_compare_exchange_strong,
    __tsan_atomic32_compare_exchange_weak,
    __tsan_atomic32_fetch_add,
    __tsan_atomic32_fetch_sub,
    __tsan_atomic32_fetch_and,
    __tsan_atomic32_fetch_or,
    __tsan_atomic32_fetch_xor,
    __tsan_atomic32_fetch_nand
);
width!(
    u64,
    AtomicU64,
    8,
    __tsan_atomic64_load,
    __tsan_atomic64_store,
    __tsan_atomic64_exchange,
    __tsan_atomic64_compare_exchange_val,
    __tsan_atomic64_compare_exchange_strong,
    __tsan_atomic64_compare_exchange_weak,
    __tsan_atomic64_fetch_add,
    __tsan_atomic64_fetch_sub,
    __tsan_atomic64_fetch_and,
    __tsan_atomic64_fetch_or,
    __tsan_atomic64_fetch_xor,
    __tsan_atomic64_fetch_nand
);
width!(
    u128,
    Atomic128,
    16,
    __tsan_atomic128_load,
    __tsan_atomic128_store,
    __tsan_atomic128_exchange,
    __tsan_atomic128_compare_exchange_val,
    __tsan_atomic128_compare_exchange_strong,
    __tsan_atomic128_compare_exchange_weak,
    __tsan_atomic128_fetch_add,
    __tsan_atomic128_fetch_sub,
    __tsan_atomic128_fetch_and,
    __tsan_atomic128_fetch_or,
    __tsan_atomic128_fetch_xor,
    __tsan_atomic128_fetch_nand
);

/// Sixteen bytes, by the one instruction that there is for them.
#[repr(transparent)]
struct Atomic128(std::cell::UnsafeCell<u128>);

impl Atomic128 {
    /// # Safety
    ///
    /// The address is aligned, and that of a living value that is accessed atomically only while this one lives.
    unsafe fn from_ptr<'a>(address: *mut u128) -> &'a Atomic128 {
        // SAFETY: the caller's promise; the cell has the layout of its content.
        unsafe { &*address.cast() }
    }

    fn compare_exchange(&self, old: u128, new: u128, _: Ordering, _: Ordering) -> Result<u128, u128> {
        let (mut low, mut high) = (old as u64, (old >> 64) as u64);
        // SAFETY: all but the very first x86-64 have the instruction, and programs that use these atomics were
        // compiled for it; the address is aligned and alive by the promise of `from_ptr`. The compiler keeps rbx for
        // itself, so it is given back; registers are named, or one of them might be rbx.
        unsafe {
            std::arch::asm!(
                "xchg rbx, rsi",
                "lock cmpxchg16b [rdi]",
                "mov rbx, rsi",
                inout("rsi") new as u64 => _,
                in("rdi") self.0.get(),
                inout("rax") low,
                inout("rdx") high,
                in("rcx") (new >> 64) as u64,
                options(nostack),
            );
        }
        let found = u128::from(high) << 64 | u128::from(low);
        if found == old { Ok(found) } else { Err(found) }
    }

    fn update(&self, change: impl Fn(u128) -> u128) -> u128 {
        let mut old = 0;
        loop {
            match self.compare_exchange(old, change(old), Ordering::SeqCst, Ordering::SeqCst) {
                Ok(old) => return old,
                Err(found) => old = found,
            }
        }
    }

    fn load(&self, _: Ordering) -> u128 {
        self.update(|old| old)
    }

    fn store(&self, value: u128, _: Ordering) {
        self.update(|_| value);
    }

    fn swap(&self, value: u128, _: Ordering) -> u128 {
        self.update(|_| value)
    }

    fn fetch_add(&self, value: u128, _: Ordering) -> u128 {
        self.update(|old| old.wrapping_add(value))
    }

    fn fetch_sub(&self, value: u128, _: Ordering) -> u128 {
        self.update(|old| old.wrapping_sub(value))
    }

    fn fetch_and(&self, value: u128, _: Ordering) -> u128 {
        self.update(|old| old & value)
    }

    fn fetch_or(&self, value: u128, _: Ordering) -> u128 {
        self.update(|old| old | value)
    }

    fn fetch_xor(&self, value: u128, _: Ordering) -> u128 {
        self.update(|old| old ^ value)
    }

    fn fetch_nand(&self, value: u128, _: Ordering) -> u128 {
        self.update(|old| !(old & value))
    }
}

/// A fence between threads.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __tsan_atomic_thread_fence(order: i32) {
    session::in_order();
    fence(Ordering::SeqCst);
    if is_active() && turns::is_mine() {
        session::called(start::frame(), |session| session.fence(Order::from_abi(order)));
    }
}

/// A fence between a thread and its signal handlers: nothing to do with tasks.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_atomic_signal_fence(_order: i32) {}

#[cfg(test)]
mod tests {
    use super::*;

    const SEQ_CST: i32 = 5;

    #[test]
    fn the_operations_are_performed() {
        let mut word = 5u32;
        let at = &raw mut word;
        // SAFETY: the address of a living word.
        unsafe {
            assert_eq!(__tsan_atomic32_fetch_add(at, 3, SEQ_CST), 5);
            assert_eq!(__tsan_atomic32_fetch_nand(at, 0xff, SEQ_CST), 8);
            assert_eq!(__tsan_atomic32_exchange(at, 1, SEQ_CST), !8);
            assert_eq!(__tsan_atomic32_compare_exchange_val(at, 1, 2, SEQ_CST, SEQ_CST), 1);
            let mut expected = 7;
            assert_eq!(
                __tsan_atomic32_compare_exchange_strong(at, &raw mut expected, 9, SEQ_CST, SEQ_CST),
                0
            );
            assert_eq!((expected, __tsan_atomic32_load(at, SEQ_CST)), (2, 2));
        }
    }

    #[test]
    fn sixteen_bytes_too() {
        #[repr(align(16))]
        struct Wide(u128);
        let mut word = Wide(1 << 100);
        let at = &raw mut word.0;
        // SAFETY: the address of a living, aligned word.
        unsafe {
            assert_eq!(__tsan_atomic128_fetch_sub(at, 1, SEQ_CST), 1 << 100);
            assert_eq!(__tsan_atomic128_load(at, SEQ_CST), (1 << 100) - 1);
            __tsan_atomic128_store(at, 6, SEQ_CST);
            assert_eq!(__tsan_atomic128_exchange(at, 7, SEQ_CST), 6);
        }
    }
}
