//! Vectors: wide ones, those of which a mask picks elements, and elements from all over the place.
//!
//! Needs a processor with AVX2.

use std::arch::x86_64::*;
use std::hint::black_box;

use dagsan_task::finish;

use crate::Point;
use crate::shared::{Pointer, at, buffer, load, spawn, store};

pub const POINTS: &[Point] = points![
    vector_lddqu,
    vector_lddqu_apart,
    vector_lddqu_256,
    vector_lddqu_256_apart,
    vector_streamed,
    vector_streamed_apart,
    vector_streamed_word,
    vector_streamed_word_apart,
    vector_maskmoveu,
    vector_maskmoveu_apart,
    vector_avx_load,
    vector_avx_load_apart,
    vector_avx_store,
    vector_avx_store_apart,
    vector_avx_masked_load,
    vector_avx_masked_load_apart,
    vector_masked_behind_a_loop,
    vector_masked_behind_a_loop_apart,
    vector_avx_masked_store,
    vector_avx_masked_store_apart,
    vector_avx2_masked_load,
    vector_avx2_masked_load_apart,
    vector_avx2_gather,
    vector_avx2_gather_apart,
    vector_avx2_masked_gather,
    vector_avx2_masked_gather_apart,
    vector_avx2_sum,
    vector_avx2_sum_apart,
    vector_eight_floats,
    vector_eight_floats_apart,
];

/// A byte of a buffer.
fn byte<T>(buffer: Pointer<T>, index: usize) -> Pointer<u8> {
    at(Pointer(buffer.at().cast()), index)
}

// expect: race write/read on 1 bytes of heap by 1/2
fn vector_streamed() {
    #[inline(never)]
    fn touch(all: Pointer<u128>) {
        // SAFETY: in the buffer, and aligned.
        unsafe { _mm_stream_si128(all.at().add(1).cast(), black_box(_mm_setzero_si128())) }; // race (1)
    }
    let (_all, all) = buffer(0u128, 4);
    finish(|scope| {
        spawn!(scope, touch(all));
        spawn!(scope, load!(byte(all, 31))); // race (2)
    });
}

// expect: race-free
fn vector_streamed_apart() {
    #[inline(never)]
    fn touch(all: Pointer<u128>) {
        // SAFETY: in the buffer, and aligned.
        unsafe { _mm_stream_si128(all.at().add(1).cast(), black_box(_mm_setzero_si128())) };
    }
    let (_all, all) = buffer(0u128, 4);
    finish(|scope| {
        spawn!(scope, touch(all));
        spawn!(scope, load!(byte(all, 15)));
        spawn!(scope, load!(byte(all, 32)));
    });
}

// expect: race write/read on 1 bytes of heap by 1/2
fn vector_streamed_word() {
    #[inline(never)]
    fn touch(all: Pointer<i32>) {
        // SAFETY: in the buffer, and aligned.
        unsafe { _mm_stream_si32(all.at().add(1), black_box(1)) }; // race (1)
    }
    let (_all, all) = buffer(0i32, 4);
    finish(|scope| {
        spawn!(scope, touch(all));
        spawn!(scope, load!(byte(all, 4))); // race (2)
    });
}

// expect: race-free
fn vector_streamed_word_apart() {
    #[inline(never)]
    fn touch(all: Pointer<i32>) {
        // SAFETY: in the buffer, and aligned.
        unsafe { _mm_stream_si32(all.at().add(1), black_box(1)) };
    }
    let (_all, all) = buffer(0i32, 4);
    finish(|scope| {
        spawn!(scope, touch(all));
        spawn!(scope, load!(byte(all, 3)));
        spawn!(scope, load!(byte(all, 8)));
    });
}

// expect: race read/write on 1 bytes of heap by 1/2
fn vector_lddqu() {
    #[target_feature(enable = "sse3")]
    #[inline(never)]
    fn touch(all: Pointer<u8>) {
        // SAFETY: in the buffer.
        unsafe { black_box(_mm_lddqu_si128(all.at().add(5).cast())) }; // race (1)
    }
    let (_all, all) = buffer(0u8, 64);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 20), black_box(1))); // race (2)
    });
}

// expect: race-free
fn vector_lddqu_apart() {
    #[target_feature(enable = "sse3")]
    #[inline(never)]
    fn touch(all: Pointer<u8>) {
        // SAFETY: in the buffer.
        unsafe { black_box(_mm_lddqu_si128(all.at().add(5).cast())) };
    }
    let (_all, all) = buffer(0u8, 64);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 4), black_box(1)));
        spawn!(scope, store!(at(all, 21), black_box(1)));
    });
}

// expect: race read/write on 1 bytes of heap by 1/2
fn vector_lddqu_256() {
    #[target_feature(enable = "avx")]
    #[inline(never)]
    fn touch(all: Pointer<u8>) {
        // SAFETY: in the buffer.
        unsafe { black_box(_mm256_lddqu_si256(all.at().add(5).cast())) }; // race (1)
    }
    let (_all, all) = buffer(0u8, 64);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 36), black_box(1))); // race (2)
    });
}

// expect: race-free
fn vector_lddqu_256_apart() {
    #[target_feature(enable = "avx")]
    #[inline(never)]
    fn touch(all: Pointer<u8>) {
        // SAFETY: in the buffer.
        unsafe { black_box(_mm256_lddqu_si256(all.at().add(5).cast())) };
    }
    let (_all, all) = buffer(0u8, 64);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 4), black_box(1)));
        spawn!(scope, store!(at(all, 37), black_box(1)));
    });
}

// expect: race write/write on 1 bytes of heap by 1/2
fn vector_maskmoveu() {
    #[target_feature(enable = "sse2")]
    #[inline(never)]
    fn touch(all: Pointer<u8>) {
        let mask = _mm_set_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0, -1, 0);
        let value = _mm_set1_epi8(3);
        // SAFETY: in the buffer.
        unsafe { _mm_maskmoveu_si128(value, mask, all.at().add(8).cast()) }; // race (1)
    }
    let (_all, all) = buffer(0u8, 64);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 11), black_box(1))); // race (2)
    });
}

// expect: race-free
fn vector_maskmoveu_apart() {
    #[target_feature(enable = "sse2")]
    #[inline(never)]
    fn touch(all: Pointer<u8>) {
        let mask = _mm_set_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0, -1, 0);
        let value = _mm_set1_epi8(3);
        // SAFETY: in the buffer.
        unsafe { _mm_maskmoveu_si128(value, mask, all.at().add(8).cast()) };
    }
    let (_all, all) = buffer(0u8, 64);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 8), black_box(1)));
        spawn!(scope, store!(at(all, 10), black_box(1)));
        spawn!(scope, store!(at(all, 12), black_box(1)));
        spawn!(scope, store!(at(all, 23), black_box(1)));
    });
}

// expect: race read/write on 4 bytes of heap by 1/2
fn vector_avx_load() {
    #[target_feature(enable = "avx")]
    #[inline(never)]
    fn touch(all: Pointer<f32>) {
        // SAFETY: in the buffer.
        unsafe { black_box(_mm256_loadu_ps(all.at().add(3))) }; // race (1)
    }
    let (_all, all) = buffer(0f32, 32);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 10), black_box(1.0))); // race (2)
    });
}

// expect: race-free
fn vector_avx_load_apart() {
    #[target_feature(enable = "avx")]
    #[inline(never)]
    fn touch(all: Pointer<f32>) {
        // SAFETY: in the buffer.
        unsafe { black_box(_mm256_loadu_ps(all.at().add(3))) };
    }
    let (_all, all) = buffer(0f32, 32);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 2), black_box(1.0)));
        spawn!(scope, store!(at(all, 11), black_box(1.0)));
    });
}

// expect: race write/write on 4 bytes of heap by 1/2
fn vector_avx_store() {
    #[target_feature(enable = "avx")]
    #[inline(never)]
    fn touch(all: Pointer<f32>) {
        // SAFETY: in the buffer.
        unsafe { _mm256_storeu_ps(all.at().add(3), _mm256_set1_ps(2.0)) }; // race (1)
    }
    let (_all, all) = buffer(0f32, 32);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 10), black_box(1.0))); // race (2)
    });
}

// expect: race-free
fn vector_avx_store_apart() {
    #[target_feature(enable = "avx")]
    #[inline(never)]
    fn touch(all: Pointer<f32>) {
        // SAFETY: in the buffer.
        unsafe { _mm256_storeu_ps(all.at().add(3), _mm256_set1_ps(2.0)) };
    }
    let (_all, all) = buffer(0f32, 32);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 2), black_box(1.0)));
        spawn!(scope, store!(at(all, 11), black_box(1.0)));
    });
}

// expect: race read/write on 4 bytes of heap by 1/2
fn vector_avx_masked_load() {
    #[target_feature(enable = "avx")]
    #[inline(never)]
    fn touch(all: Pointer<f32>) {
        let mask = _mm256_set_epi32(0, 0, 0, 0, -1, 0, 0, -1);
        // SAFETY: in the buffer.
        unsafe { black_box(_mm256_maskload_ps(all.at().add(4), mask)) }; // race (1)
    }
    let (_all, all) = buffer(0f32, 32);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 7), black_box(1.0))); // race (2)
    });
}

// expect: race-free
fn vector_avx_masked_load_apart() {
    #[target_feature(enable = "avx")]
    #[inline(never)]
    fn touch(all: Pointer<f32>) {
        let mask = _mm256_set_epi32(0, 0, 0, 0, -1, 0, 0, -1);
        // SAFETY: in the buffer.
        unsafe { black_box(_mm256_maskload_ps(all.at().add(4), mask)) };
    }
    let (_all, all) = buffer(0f32, 32);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 3), black_box(1.0)));
        spawn!(scope, store!(at(all, 5), black_box(1.0)));
        spawn!(scope, store!(at(all, 6), black_box(1.0)));
        spawn!(scope, store!(at(all, 8), black_box(1.0)));
        spawn!(scope, store!(at(all, 11), black_box(1.0)));
        spawn!(scope, store!(at(all, 12), black_box(1.0)));
    });
}

// expect: race write/write on 4 bytes of heap by 1/2
fn vector_avx_masked_store() {
    #[target_feature(enable = "avx")]
    #[inline(never)]
    fn touch(all: Pointer<f32>) {
        let mask = _mm256_set_epi32(0, 0, 0, 0, -1, 0, 0, -1);
        // SAFETY: in the buffer.
        unsafe { _mm256_maskstore_ps(all.at().add(4), mask, _mm256_set1_ps(2.0)) }; // race (1)
    }
    let (_all, all) = buffer(0f32, 32);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 7), black_box(1.0))); // race (2)
    });
}

// expect: race-free
fn vector_avx_masked_store_apart() {
    #[target_feature(enable = "avx")]
    #[inline(never)]
    fn touch(all: Pointer<f32>) {
        let mask = _mm256_set_epi32(0, 0, 0, 0, -1, 0, 0, -1);
        // SAFETY: in the buffer.
        unsafe { _mm256_maskstore_ps(all.at().add(4), mask, _mm256_set1_ps(2.0)) };
    }
    let (_all, all) = buffer(0f32, 32);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 3), black_box(1.0)));
        spawn!(scope, store!(at(all, 5), black_box(1.0)));
        spawn!(scope, store!(at(all, 6), black_box(1.0)));
        spawn!(scope, store!(at(all, 8), black_box(1.0)));
        spawn!(scope, store!(at(all, 11), black_box(1.0)));
        spawn!(scope, store!(at(all, 12), black_box(1.0)));
    });
}

/// Reads under a mask where a loop has come to, whose own marks are behind it.
// expect: race read/write on 4 bytes of heap by 1/2
fn vector_masked_behind_a_loop() {
    #[target_feature(enable = "avx")]
    #[inline(never)]
    fn touch(mut place: *mut f32, end: usize) {
        let mask = _mm256_set_epi32(0, 0, 0, 0, -1, 0, 0, -1);
        let mut index = 0;
        // SAFETY: in the buffer.
        unsafe {
            while index < end && *place == 0.0 {
                *place = 1.0;
                place = place.add(1);
                index += 1;
            }
            black_box(_mm256_maskload_ps(place, mask)); // race (1)
        }
    }
    let (_all, all) = buffer(0f32, 64);
    let end = black_box(20);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all.at(), end) });
        spawn!(scope, store!(at(all, 23), black_box(1.0))); // race (2)
    });
}

/// Reads under a mask where a loop has come to, whose own marks are behind it.
// expect: race-free
fn vector_masked_behind_a_loop_apart() {
    #[target_feature(enable = "avx")]
    #[inline(never)]
    fn touch(mut place: *mut f32, end: usize) {
        let mask = _mm256_set_epi32(0, 0, 0, 0, -1, 0, 0, -1);
        let mut index = 0;
        // SAFETY: in the buffer.
        unsafe {
            while index < end && *place == 0.0 {
                *place = 1.0;
                place = place.add(1);
                index += 1;
            }
            black_box(_mm256_maskload_ps(place, mask));
        }
    }
    let (_all, all) = buffer(0f32, 64);
    let end = black_box(20);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all.at(), end) });
        spawn!(scope, store!(at(all, 21), black_box(1.0)));
        spawn!(scope, store!(at(all, 24), black_box(1.0)));
    });
}

// expect: race read/write on 8 bytes of heap by 1/2
fn vector_avx2_masked_load() {
    #[target_feature(enable = "avx2")]
    #[inline(never)]
    fn touch(all: Pointer<i64>) {
        let mask = _mm256_set_epi64x(-1, 0, 0, -1);
        // SAFETY: in the buffer.
        unsafe { black_box(_mm256_maskload_epi64(all.at().add(4), mask)) }; // race (1)
    }
    let (_all, all) = buffer(0i64, 32);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 7), black_box(1))); // race (2)
    });
}

// expect: race-free
fn vector_avx2_masked_load_apart() {
    #[target_feature(enable = "avx2")]
    #[inline(never)]
    fn touch(all: Pointer<i64>) {
        let mask = _mm256_set_epi64x(-1, 0, 0, -1);
        // SAFETY: in the buffer.
        unsafe { black_box(_mm256_maskload_epi64(all.at().add(4), mask)) };
    }
    let (_all, all) = buffer(0i64, 32);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 3), black_box(1)));
        spawn!(scope, store!(at(all, 5), black_box(1)));
        spawn!(scope, store!(at(all, 6), black_box(1)));
        spawn!(scope, store!(at(all, 8), black_box(1)));
    });
}

// expect: race read/write on 4 bytes of heap by 1/2
fn vector_avx2_gather() {
    #[target_feature(enable = "avx2")]
    #[inline(never)]
    fn touch(all: Pointer<i32>) {
        let indices = _mm256_set_epi32(1, 3, 5, 7, 9, 11, 13, 21);
        // SAFETY: in the buffer.
        unsafe { black_box(_mm256_i32gather_epi32::<4>(all.at(), indices)) }; // race (1)
    }
    let (_all, all) = buffer(0i32, 32);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 21), black_box(1))); // race (2)
    });
}

// expect: race-free
fn vector_avx2_gather_apart() {
    #[target_feature(enable = "avx2")]
    #[inline(never)]
    fn touch(all: Pointer<i32>) {
        let indices = _mm256_set_epi32(1, 3, 5, 7, 9, 11, 13, 21);
        // SAFETY: in the buffer.
        unsafe { black_box(_mm256_i32gather_epi32::<4>(all.at(), indices)) };
    }
    let (_all, all) = buffer(0i32, 32);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 0), black_box(1)));
        spawn!(scope, store!(at(all, 2), black_box(1)));
        spawn!(scope, store!(at(all, 12), black_box(1)));
        spawn!(scope, store!(at(all, 20), black_box(1)));
        spawn!(scope, store!(at(all, 22), black_box(1)));
    });
}

// expect: race read/write on 4 bytes of heap by 1/2
fn vector_avx2_masked_gather() {
    #[target_feature(enable = "avx2")]
    #[inline(never)]
    fn touch(all: Pointer<i32>) {
        let indices = _mm256_set_epi32(1, 3, 5, 7, 9, 11, 13, 21);
        let mask = _mm256_set_epi32(0, 0, 0, 0, -1, 0, 0, -1);
        let none = _mm256_setzero_si256();
        // SAFETY: in the buffer.
        unsafe { black_box(_mm256_mask_i32gather_epi32::<4>(none, all.at(), indices, mask)) }; // race (1)
    }
    let (_all, all) = buffer(0i32, 32);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 21), black_box(1))); // race (2)
    });
}

// expect: race-free
fn vector_avx2_masked_gather_apart() {
    #[target_feature(enable = "avx2")]
    #[inline(never)]
    fn touch(all: Pointer<i32>) {
        let indices = _mm256_set_epi32(1, 3, 5, 7, 9, 11, 13, 21);
        let mask = _mm256_set_epi32(0, 0, 0, 0, -1, 0, 0, -1);
        let none = _mm256_setzero_si256();
        // SAFETY: in the buffer.
        unsafe { black_box(_mm256_mask_i32gather_epi32::<4>(none, all.at(), indices, mask)) };
    }
    let (_all, all) = buffer(0i32, 32);
    finish(|scope| {
        // SAFETY: the processor has it, see above.
        spawn!(scope, unsafe { touch(all) });
        spawn!(scope, store!(at(all, 1), black_box(1)));
        spawn!(scope, store!(at(all, 3), black_box(1)));
        spawn!(scope, store!(at(all, 11), black_box(1)));
        spawn!(scope, store!(at(all, 13), black_box(1)));
    });
}

// expect: race read/write on 4 bytes of heap by 1/2
fn vector_avx2_sum() {
    #[target_feature(enable = "avx2")]
    #[inline(never)]
    fn sum(words: &[u32]) -> u32 {
        let mut sum = 0u32;
        for index in 0..words.len() {
            sum = sum.wrapping_add(words[index]); // race (1)
        }
        sum
    }
    let (_words, words) = buffer(1u32, 64);
    finish(|scope| {
        // SAFETY: in the buffer, and the processor has it.
        spawn!(scope, black_box(unsafe { sum(std::slice::from_raw_parts(words.at(), black_box(40))) }));
        spawn!(scope, store!(at(words, 39), black_box(1))); // race (2)
    });
}

// expect: race-free
fn vector_avx2_sum_apart() {
    #[target_feature(enable = "avx2")]
    #[inline(never)]
    fn sum(words: &[u32]) -> u32 {
        let mut sum = 0u32;
        for index in 0..words.len() {
            sum = sum.wrapping_add(words[index]);
        }
        sum
    }
    let (_words, words) = buffer(1u32, 64);
    finish(|scope| {
        // SAFETY: in the buffer, and the processor has it.
        spawn!(scope, black_box(unsafe { sum(std::slice::from_raw_parts(words.at(), black_box(40))) }));
        spawn!(scope, store!(at(words, 40), black_box(1)));
    });
}

// expect: race write/read on 4 bytes of heap by 1/2
fn vector_eight_floats() {
    #[inline(never)]
    fn twice(all: Pointer<[f32; 8]>) {
        // SAFETY: in the buffer.
        let all = unsafe { &mut *all.at() };
        *all = all.map(|x| x + x); // race (1)
    }
    let (_all, all) = buffer([1f32; 8], 2);
    finish(|scope| {
        spawn!(scope, twice(all));
        spawn!(scope, load!(Pointer(at(all, 0).at().cast::<f32>()))); // race (2)
    });
}

// expect: race-free
fn vector_eight_floats_apart() {
    #[inline(never)]
    fn twice(all: Pointer<[f32; 8]>) {
        // SAFETY: in the buffer.
        let all = unsafe { &mut *all.at() };
        *all = all.map(|x| x + x);
    }
    let (_all, all) = buffer([1f32; 8], 2);
    finish(|scope| {
        spawn!(scope, twice(all));
        spawn!(scope, load!(Pointer(at(all, 1).at().cast::<f32>())));
    });
}
