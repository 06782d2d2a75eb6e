//! Functions of the standard library that come compiled, on values: times, descriptors, errors, and paths that are changed in place.

use std::ffi::CStr;
use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Seek, SeekFrom, Write};
use std::num::{ParseFloatError, ParseIntError};
use std::path::PathBuf;
use std::process::Command;
use std::str::Utf8Error;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use dagsan_task::finish;

use crate::Point;
use crate::library::{EACH, changing, each, leaked, seen, value};
use crate::shared::{Pointer, at, spawn, store};

pub const POINTS: &[Point] = points![
    library_times,
    library_times_in_order,
    library_descriptors,
    library_descriptors_in_order,
    library_errors,
    library_errors_beside,
    library_later,
    library_later_in_order,
    library_path_changed,
    library_path_beside,
    library_c_text,
    library_c_text_beside,
    library_searched,
    library_searched_beside,
    library_handed_over,
    library_unknown,
];

/// A value that is nothing but zeroes.
const ZEROES: [u8; 16] = [0; 16];

/// The descriptor of standard error.
const STDERR: [u8; 16] = [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[inline(always)]
fn look_at_times(of: [Pointer<u8>; EACH]) {
    let second = Duration::from_secs(1);
    _ = black_box(value::<Instant>(of[0]).elapsed()); // race (2) of library_times
    _ = black_box(value::<Instant>(of[1]).checked_add(second)); // race (2) of library_times
    _ = black_box(value::<Instant>(of[2]).saturating_duration_since(Instant::now())); // race (2) of library_times
    _ = black_box(value::<SystemTime>(of[3]).elapsed()); // race (2) of library_times
    _ = black_box(value::<SystemTime>(of[4]).duration_since(SystemTime::UNIX_EPOCH)); // race (2) of library_times
    _ = black_box(value::<SystemTime>(of[5]).checked_sub(second)); // race (2) of library_times
}

// expect: race write/read on 6 bytes of heap by 1/2
fn library_times() {
    let of = each(&ZEROES);
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                store!(one, 0); // race (1)
            }
        );
        spawn!(scope, look_at_times(of));
    });
}

// expect: race-free
fn library_times_in_order() {
    let of = each(&ZEROES);
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                store!(one, 0)
            }
        )
    });
    finish(|scope| {
        spawn!(scope, look_at_times(of));
        spawn!(scope, look_at_times(of));
    });
}

#[inline(always)]
fn use_descriptors(of: [Pointer<u8>; EACH]) {
    _ = black_box(value::<File>(of[0]).metadata()); // race (2) of library_descriptors
    _ = black_box(value::<File>(of[1]).sync_all()); // race (2) of library_descriptors
    _ = black_box(value::<File>(of[2]).try_clone()); // race (2) of library_descriptors
    _ = black_box(value::<File>(of[3]).seek(SeekFrom::Start(0))); // race (2) of library_descriptors
    _ = black_box(value::<File>(of[4]).write(b"")); // race (2) of library_descriptors
    _ = black_box(value::<File>(of[5]).read(&mut [])); // race (2) of library_descriptors
    _ = black_box(changing(Pointer(of[6].0.cast::<File>())).write(b"")); // race (2) of library_descriptors
}

// expect: race write/read on 7 bytes of heap by 1/2
fn library_descriptors() {
    let of = each(&STDERR);
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                store!(one, 2); // race (1)
            }
        );
        spawn!(scope, use_descriptors(of));
    });
}

// expect: race-free
fn library_descriptors_in_order() {
    let of = each(&STDERR);
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                store!(one, 2)
            }
        )
    });
    finish(|scope| {
        spawn!(scope, use_descriptors(of));
        spawn!(scope, use_descriptors(of));
    });
}

#[inline(always)]
fn show_errors(of: [Pointer<u8>; EACH]) {
    _ = black_box(format!("{}", value::<ParseIntError>(of[0]))); // race (2) of library_errors
    _ = black_box(format!("{}", value::<ParseFloatError>(of[1]))); // race (2) of library_errors
    _ = black_box(format!("{}", value::<Utf8Error>(of[2]))); // race (2) of library_errors
}

// expect: race write/read on 3 bytes of heap by 1/2
fn library_errors() {
    let of = each(&ZEROES);
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                store!(one, 0); // race (1)
            }
        );
        spawn!(scope, show_errors(of));
    });
}

// expect: race-free
fn library_errors_beside() {
    let of = each(&ZEROES);
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                store!(at(one, 11), 0);
            }
        );
        spawn!(scope, show_errors(of));
    });
}

#[inline(always)]
fn make_later(of: [Pointer<u8>; EACH]) {
    *changing(Pointer(of[0].0.cast::<Instant>())) += Duration::from_secs(1); // race (2) of library_later
    *changing(Pointer(of[1].0.cast::<SystemTime>())) += Duration::from_secs(1); // race (2) of library_later
}

// expect: race read/write on 2 bytes of heap by 1/2
fn library_later() {
    let of = each(&ZEROES);
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                black_box(*seen(one)); // race (1)
            }
        );
        spawn!(scope, make_later(of));
    });
}

// expect: race-free
fn library_later_in_order() {
    let of = each(&ZEROES);
    finish(|scope| spawn!(scope, make_later(of)));
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                black_box(*seen(one));
            }
        )
    });
}

/// A path with room for more, and where its bytes are.
fn path(content: &str) -> (Pointer<PathBuf>, Pointer<u8>) {
    let mut path = PathBuf::with_capacity(64);
    path.push(content);
    let first = Pointer(path.as_os_str().as_encoded_bytes().as_ptr().cast_mut());
    (leaked(path), first)
}

// expect: race read/write on 2 bytes of heap by 1/2
fn library_path_changed() {
    let ((first, of_first), (second, of_second)) = (path("/a/b.cd"), path("/a/b.cd"));
    finish(|scope| {
        spawn!(scope, {
            black_box(*seen(at(of_first, 6))); // race (1)
            black_box(*seen(at(of_second, 3))); // race (1)
        });
        spawn!(scope, {
            changing(first).set_extension("xy"); // race (2)
            changing(second).set_file_name("c"); // race (2)
        });
    });
}

// expect: race-free
fn library_path_beside() {
    let ((first, of_first), (second, of_second)) = (path("/a/b.cd"), path("/a/b.cd"));
    finish(|scope| {
        spawn!(scope, {
            black_box(*seen(at(of_first, 3)));
            black_box(*seen(at(of_second, 1)));
        });
        spawn!(scope, {
            changing(first).set_extension("xy");
            changing(second).set_file_name("c");
        });
    });
}

// expect: race write/read on 1 bytes of heap by 1/2
fn library_c_text() {
    let of = each(b"fourteen bytes\0-");
    finish(|scope| {
        spawn!(scope, store!(at(of[0], 13), b'S')); // race (1)
        // SAFETY: there is a zero.
        spawn!(scope, black_box(unsafe { CStr::from_ptr(of[0].at().cast()) })); // race (2)
    });
}

// expect: race-free
fn library_c_text_beside() {
    let of = each(b"fourteen bytes\0-");
    finish(|scope| {
        spawn!(scope, store!(at(of[0], 15), b'!'));
        // SAFETY: as above.
        spawn!(scope, black_box(unsafe { CStr::from_ptr(of[0].at().cast()) }));
    });
}

/// A text of which the letter is in the middle.
const LETTER_IN_IT: &[u8; 32] = b"sixteen bytes, =and sixteen more";

#[inline(always)]
fn search(of: [Pointer<[u8; 32]>; 2]) {
    // SAFETY: the bytes are ASCII.
    let text = |place| unsafe { str::from_utf8_unchecked(seen::<[u8; 32]>(place)) };
    _ = black_box(text(of[0]).find(black_box('='))); // race (2) of library_searched
    _ = black_box(text(of[1]).rfind(black_box('='))); // race (2) of library_searched
}

fn texts() -> ([Pointer<[u8; 32]>; 2], [Pointer<u8>; 2]) {
    let texts = [leaked(*LETTER_IN_IT), leaked(*LETTER_IN_IT)];
    (texts, texts.map(|text| Pointer(text.0.cast())))
}

// expect: race write/read on 2 bytes of heap by 1/2
fn library_searched() {
    let (texts, [first, second]) = texts();
    finish(|scope| {
        spawn!(scope, {
            store!(at(first, 3), b'X'); // race (1)
            store!(at(second, 28), b'X'); // race (1)
        });
        spawn!(scope, search(texts));
    });
}

/// What is behind the letter is not looked at, nor what is before the last one.
// expect: race-free
fn library_searched_beside() {
    let (texts, [first, second]) = texts();
    finish(|scope| {
        spawn!(scope, {
            store!(at(first, 28), b'X');
            store!(at(second, 3), b'X');
        });
        spawn!(scope, search(texts));
    });
}

/// What a section does only through such functions depends on the one before.
// expect: race-free, up to locks
fn library_handed_over() {
    let now = leaked(Mutex::new(Some(Box::new(Instant::now()))));
    finish(|scope| {
        spawn!(
            scope,
            if let Some(at) = seen(now).lock().unwrap().as_mut() {
                **at += Duration::from_secs(1);
            }
        );
        spawn!(scope, {
            let at = seen(now).lock().unwrap().take();
            black_box(at.map(|mut at| {
                *at += Duration::from_secs(1);
                at.elapsed()
            }));
        });
    });
}

/// What starts a process is not known, and told; formats, locks and panics are not.
// expect: race-free
fn library_unknown() {
    let number = leaked(Mutex::new(5));
    finish(|scope| {
        spawn!(scope, {
            black_box(Command::new("true").status()).ok();
        });
        spawn!(scope, {
            println!("{:?} {:>8}", seen(number).lock().unwrap(), "text");
            black_box(std::panic::catch_unwind(|| black_box(None::<u8>).unwrap())).ok();
            black_box("3".parse::<u8>()).ok();
        });
    });
}
