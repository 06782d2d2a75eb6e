//! What functions of the standard library that come compiled read and write: they have no hooks of their own.
//!
//! A point of many functions has a text or a number for each, of which the first task writes a byte: as many bytes race as functions are seen.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{self, File};
use std::hint::black_box;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dagsan_task::finish;

use crate::Point;
use crate::shared::{Pointer, at, buffer, spawn, store};

pub const POINTS: &[Point] = points![
    library_print,
    library_print_in_order,
    library_numbers,
    library_numbers_in_order,
    library_numbers_beside,
    library_debug_of_many,
    library_debug_of_many_beside,
    library_texts,
    library_texts_in_order,
    library_texts_beside,
    library_strings,
    library_strings_in_order,
    library_string_itself,
    library_names,
    library_names_in_order,
    library_nothing,
    library_clone_from,
    library_clone_from_in_order,
    library_push_path,
];

/// So many, each with its own memory.
pub const EACH: usize = 16;

/// What is at a place. This is no access.
#[inline(always)]
pub fn seen<T>(place: Pointer<T>) -> &'static T {
    // SAFETY: what points share is leaked, and one of their tasks runs at a time.
    unsafe { &*place.0 }
}

/// The same to change it.
#[inline(always)]
pub fn changing<T>(place: Pointer<T>) -> &'static mut T {
    // SAFETY: as above.
    unsafe { &mut *place.0 }
}

/// Memory of its own for a value.
pub fn leaked<T>(value: T) -> Pointer<T> {
    Pointer(black_box(Box::leak(Box::new(value))))
}

/// Memory that nothing else is in the lines of: several calls of one function that touch a line may be shown at the first of them.
#[repr(align(64))]
struct Alone<T>(T);

/// Sixteen bytes: letters, digits or whatever, each time elsewhere.
pub fn bytes(content: &[u8; 16]) -> Pointer<u8> {
    Pointer(leaked(Alone(*content)).0.cast())
}

/// Memory for each function of a point.
pub fn each(content: &[u8; 16]) -> [Pointer<u8>; EACH] {
    std::array::from_fn(|_| bytes(content))
}

/// The text from the fifth byte to the twelfth.
#[inline(always)]
pub fn text(place: Pointer<u8>) -> &'static str {
    // SAFETY: the bytes are there, and are ASCII.
    unsafe { str::from_utf8_unchecked(std::slice::from_raw_parts(place.at().add(4), 8)) }
}

/// A value of a type at a place that is aligned for it.
#[inline(always)]
pub fn value<T>(place: Pointer<u8>) -> &'static T {
    // SAFETY: there are sixteen bytes, which are any value of what points ask for.
    unsafe { &*place.at().cast::<T>() }
}

// expect: race write/read on 8 bytes of heap by 1/2
fn library_print() {
    let number = leaked(5u64);
    finish(|scope| {
        spawn!(scope, store!(number, 7)); // race (1)
        spawn!(scope, println!("{}", seen(number))); // race (2)
    });
}

// expect: race-free
fn library_print_in_order() {
    let number = leaked(5u64);
    finish(|scope| spawn!(scope, store!(number, 7)));
    finish(|scope| spawn!(scope, println!("{}", seen(number))));
    finish(|scope| {
        spawn!(scope, println!("{:?}", seen(number)));
        spawn!(scope, eprintln!("{:x}", seen(number)));
    });
}

#[inline(always)]
fn show_numbers(of: [Pointer<u8>; EACH]) {
    _ = black_box(format!("{}", value::<u8>(of[0]))); // race (2) of library_numbers
    _ = black_box(format!("{}", value::<i16>(of[1]))); // race (2) of library_numbers
    _ = black_box(format!("{}", value::<u32>(of[2]))); // race (2) of library_numbers
    _ = black_box(format!("{:?}", value::<i64>(of[3]))); // race (2) of library_numbers
    _ = black_box(format!("{:10}", value::<u128>(of[4]))); // race (2) of library_numbers
    _ = black_box(format!("{:x}", value::<usize>(of[5]))); // race (2) of library_numbers
    _ = black_box(format!("{:#X}", value::<i32>(of[6]))); // race (2) of library_numbers
    _ = black_box(format!("{:b}", value::<u16>(of[7]))); // race (2) of library_numbers
    _ = black_box(format!("{:o}", value::<u8>(of[8]))); // race (2) of library_numbers
    _ = black_box(format!("{:e}", value::<u64>(of[9]))); // race (2) of library_numbers
    _ = black_box(format!("{}", value::<f64>(of[10]))); // race (2) of library_numbers
    _ = black_box(format!("{:?}", value::<f32>(of[11]))); // race (2) of library_numbers
    _ = black_box(format!("{:E}", value::<f64>(of[12]))); // race (2) of library_numbers
    _ = black_box(format!("{:>5}", value::<bool>(of[13]))); // race (2) of library_numbers
    _ = black_box(format!("{}", value::<char>(of[14]))); // race (2) of library_numbers
    _ = black_box(format!("{:?}", value::<Duration>(of[15]))); // race (2) of library_numbers
}

// expect: race write/read on 16 bytes of heap by 1/2
fn library_numbers() {
    let of = each(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                store!(one, 0); // race (1)
            }
        );
        spawn!(scope, show_numbers(of));
    });
}

// expect: race-free
fn library_numbers_in_order() {
    let of = each(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                store!(one, 0)
            }
        )
    });
    finish(|scope| {
        spawn!(scope, show_numbers(of));
        spawn!(scope, show_numbers(of));
    });
}

/// What is behind the number is of another.
// expect: race-free
fn library_numbers_beside() {
    let of = each(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let sizes = [1, 2, 4, 8, 16, 8, 4, 2, 1, 8, 8, 4, 8, 1, 4, 16];
    finish(|scope| {
        spawn!(
            scope,
            for (one, size) in of.into_iter().zip(sizes) {
                for beside in size..16 {
                    store!(at(one, beside), 0);
                }
            }
        );
        spawn!(scope, show_numbers(of));
    });
}

// expect: race write/read on 8 bytes of heap by 1/2
fn library_debug_of_many() {
    let (_numbers, first) = buffer(1u64, 100);
    finish(|scope| {
        spawn!(scope, store!(at(first, 50), 2)); // race (1)
        // SAFETY: there are a hundred.
        let all = unsafe { std::slice::from_raw_parts(first.at(), 100) };
        spawn!(scope, format!("{:?}", all)); // race (2)
    });
}

// expect: race-free
fn library_debug_of_many_beside() {
    let (_numbers, first) = buffer(1u64, 100);
    finish(|scope| {
        spawn!(scope, store!(at(first, 50), 2));
        // SAFETY: there are so many.
        let some = unsafe {
            [std::slice::from_raw_parts(first.at(), 50), std::slice::from_raw_parts(at(first, 51).at(), 49)]
        };
        spawn!(scope, format!("{:?}", some));
    });
}

#[inline(always)]
fn look_at_texts(of: [Pointer<u8>; EACH]) {
    _ = black_box(format!("{}", text(of[0]))); // race (2) of library_texts
    _ = black_box(format!("{:?}", text(of[1]))); // race (2) of library_texts
    _ = black_box(format!("{:>20}", text(of[2]))); // race (2) of library_texts
    _ = black_box(str::from_utf8(text(of[3]).as_bytes())); // race (2) of library_texts
    _ = black_box(String::from_utf8_lossy(text(of[4]).as_bytes())); // race (2) of library_texts
    _ = black_box(text(of[5]).to_lowercase()); // race (2) of library_texts
    _ = black_box(text(of[6]).to_uppercase()); // race (2) of library_texts
    _ = black_box(text(of[7]).parse::<f64>()); // race (2) of library_texts
    _ = black_box(text(of[8]).parse::<f32>()); // race (2) of library_texts
    _ = black_box(text(of[9]).parse::<IpAddr>()); // race (2) of library_texts
    _ = black_box(text(of[10]).parse::<u64>()); // race (2) of library_texts
    _ = black_box("a longer text to search".contains(text(of[11]))); // race (2) of library_texts
    _ = black_box(CString::new(text(of[12]))); // race (2) of library_texts
    _ = black_box(text(of[13]).to_string()); // race (2) of library_texts
    _ = black_box(Path::new(text(of[14])).join("x")); // race (2) of library_texts
    _ = black_box(text(of[15]).chars().count()); // race (2) of library_texts
}

// expect: race write/read on 16 bytes of heap by 1/2
fn library_texts() {
    let of = each(b"0123456789012345");
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                store!(at(one, 4), b'1'); // race (1)
            }
        );
        spawn!(scope, look_at_texts(of));
    });
}

// expect: race-free
fn library_texts_in_order() {
    let of = each(b"0123456789012345");
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                store!(at(one, 4), b'1')
            }
        )
    });
    finish(|scope| {
        spawn!(scope, look_at_texts(of));
        spawn!(scope, look_at_texts(of));
    });
}

// expect: race-free
fn library_texts_beside() {
    let of = each(b"0123456789012345");
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                store!(at(one, 3), b'1');
                store!(at(one, 12), b'1');
            }
        );
        spawn!(scope, look_at_texts(of));
    });
}

/// Strings, and where their bytes are.
fn strings() -> ([Pointer<String>; 6], [Pointer<u8>; 6]) {
    let of = std::array::from_fn(|_| {
        leaked(String::from("a text of some length, which has more than a few words"))
    });
    (of, of.map(|one: Pointer<String>| Pointer(changing(one).as_mut_ptr())))
}

#[inline(always)]
fn look_at_strings(of: [Pointer<String>; 6]) {
    _ = black_box(seen(of[0]).clone()); // race (2) of library_strings
    _ = black_box(format!("{}", seen(of[1]))); // race (2) of library_strings
    _ = black_box(format!("{:?}", seen(of[2]))); // race (2) of library_strings
    _ = black_box(seen(of[3]).as_bytes().contains(&b'#')); // race (2) of library_strings
    _ = black_box(seen(of[4]).chars().count()); // race (2) of library_strings
    _ = black_box(seen(of[5]).rfind('#')); // race (2) of library_strings
}

// expect: race write/read on 6 bytes of heap by 1/2
fn library_strings() {
    let (of, bytes) = strings();
    finish(|scope| {
        spawn!(
            scope,
            for one in bytes {
                store!(at(one, 50), b'x'); // race (1)
            }
        );
        spawn!(scope, look_at_strings(of));
    });
}

// expect: race-free
fn library_strings_in_order() {
    let (of, bytes) = strings();
    finish(|scope| {
        spawn!(
            scope,
            for one in bytes {
                store!(at(one, 50), b'x')
            }
        )
    });
    finish(|scope| {
        spawn!(scope, look_at_strings(of));
        spawn!(scope, look_at_strings(of));
    });
}

/// Not only its text is read, but also where that is.
// expect: race
fn library_string_itself() {
    let string = leaked(String::from("a text"));
    finish(|scope| {
        spawn!(scope, store!(string, String::new())); // race (1)
        spawn!(scope, seen(string).clone()); // race (2)
    });
}

#[inline(always)]
fn look_at_names(of: [Pointer<u8>; EACH]) {
    _ = black_box(Path::new(text(of[0])).file_name()); // race (2) of library_names
    _ = black_box(Path::new(text(of[1])).extension()); // race (2) of library_names
    _ = black_box(Path::new(text(of[2])).parent()); // race (2) of library_names
    _ = black_box(format!("{}", Path::new(text(of[3])).display())); // race (2) of library_names
    _ = black_box(format!("{:?}", Path::new(text(of[4])))); // race (2) of library_names
    _ = black_box(Path::new(text(of[5])).exists()); // race (2) of library_names
    _ = black_box(Path::new(text(of[6])).components().count()); // race (2) of library_names
    _ = black_box(Path::new(text(of[7])).starts_with("x")); // race (2) of library_names
    _ = black_box(File::open(text(of[8]))); // race (2) of library_names
    _ = black_box(fs::read(text(of[9]))); // race (2) of library_names
    _ = black_box(fs::metadata(text(of[10]))); // race (2) of library_names
    _ = black_box(std::env::var(text(of[11]))); // race (2) of library_names
    _ = black_box(format!("{:?}", OsStr::new(text(of[12])))); // race (2) of library_names
    _ = black_box(OsStr::new(text(of[13])).to_os_string()); // race (2) of library_names
    _ = black_box(OsString::from(text(of[14])).into_string()); // race (2) of library_names
    // SAFETY: the bytes are there, and the last of them is 0.
    _ = black_box(unsafe { CStr::from_ptr(of[15].at().cast()) }.to_str()); // race (2) of library_names
}

// expect: race write/read on 16 bytes of heap by 1/2
fn library_names() {
    let of = each(b"/a/b/c/d/e/f/g/\0");
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                store!(at(one, 5), b'#'); // race (1)
            }
        );
        spawn!(scope, look_at_names(of));
    });
}

// expect: race-free
fn library_names_in_order() {
    let of = each(b"/a/b/c/d/e/f/g/\0");
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                store!(at(one, 5), b'#')
            }
        )
    });
    finish(|scope| {
        spawn!(scope, look_at_names(of));
        spawn!(scope, look_at_names(of));
    });
}

/// Texts without a letter, in the middle of what is written.
// expect: race-free
fn library_nothing() {
    let place = bytes(b"0123456789012345");
    finish(|scope| {
        spawn!(
            scope,
            for one in 0..16 {
                store!(at(place, one), b'x')
            }
        );
        let empty = &text(place)[..0];
        spawn!(scope,
            _ = black_box(format!("{empty}"));
            _ = black_box(empty.to_lowercase());
            _ = black_box(str::from_utf8(empty.as_bytes()));
            _ = black_box(empty.parse::<f64>());
            _ = black_box(CString::new(empty));
        );
    });
}

// expect: race read/write on 10 bytes of heap by 1/2
fn library_clone_from() {
    let (mut copy, text) = (String::with_capacity(20), String::from("ten letter"));
    copy.push_str("0123456789");
    let bytes = Pointer(copy.as_mut_ptr());
    let copy = Pointer(&raw mut copy);
    finish(|scope| {
        spawn!(
            scope,
            for one in 0..10 {
                black_box(*seen(at(bytes, one))); // race (1)
            }
        );
        let text = &text;
        spawn!(scope, changing(copy).clone_from(text)); // race (2)
    });
}

// expect: race-free
fn library_clone_from_in_order() {
    let (mut copy, text) = (String::from("0123456789"), String::from("ten letter"));
    let bytes = Pointer(copy.as_mut_ptr());
    let copy = Pointer(&raw mut copy);
    finish(|scope| {
        spawn!(
            scope,
            for one in 0..10 {
                black_box(*seen(at(bytes, one)));
            }
        )
    });
    finish(|scope| {
        let text = &text;
        spawn!(scope, changing(copy).clone_from(text));
        spawn!(scope, text.clone());
    });
}

// expect: race
fn library_push_path() {
    let path = leaked(PathBuf::from("/a"));
    finish(|scope| {
        spawn!(scope, changing(path).push("b")); // race (1)
        spawn!(scope, format!("{}", seen(path).display())); // race (2)
    });
}
