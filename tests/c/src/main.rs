//! Tasks that call functions in C. The arguments are the name of a pair of functions, and whether they get the same memory.

use std::ffi::{c_uint, c_void};

use dagsan_task::finish;

type Write = unsafe extern "C" fn(*mut c_void, c_uint);
type Read = unsafe extern "C" fn(*mut c_void, c_uint) -> c_uint;

macro_rules! pairs {
    ($($write:ident $read:ident: $($name:literal $number:literal)*;)*) => {
        unsafe extern "C" {
            $(fn $write(at: *mut c_void, number: c_uint);
            fn $read(at: *mut c_void, number: c_uint) -> c_uint;)*
        }
        /// The functions by name, and their number: of most, how many elements they access.
        const PAIRS: &[(&str, c_uint, Write, Read)] = &[$($(($name, $number, $write, $read),)*)*];
    };
}

pairs! {
    structure_write structure_read: "structure" 1;
    bits_write bits_read: "bits" 1;
    vector_write vector_read: "vector" 1;
    loop_write loop_read: "loop" 40;
    copy_write copy_read: "copy" 40;
    choice_write choice_read: "choice" 2 "other choice" 1;
}

#[repr(align(64))]
struct Memory([u8; 1024]);

#[derive(Clone, Copy)]
struct At(*mut u8);

// SAFETY: used by tasks of one thread.
unsafe impl Send for At {}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, memory] = arguments.as_slice() else { panic!("a name, and `shared` or `apart`") };
    let (_, number, write, read) = PAIRS.iter().find(|(known, ..)| known == name).expect("a known name");
    let bytes = Box::leak(Box::new(Memory([0; 1024]))).0.as_mut_ptr();
    let to = At(bytes);
    let from = At(if memory == "shared" { bytes } else { bytes.wrapping_add(512) });
    finish(|scope| {
        scope.spawn(move |_| {
            let to = to;
            // SAFETY: half of the memory is enough for all of them.
            unsafe { write(to.0.cast(), *number) };
        });
        scope.spawn(move |_| {
            let from = from;
            // SAFETY: as above.
            std::hint::black_box(unsafe { read(from.0.cast(), *number) });
        });
    });
}
