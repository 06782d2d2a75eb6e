//! What functions of the standard library that come compiled read and write: files, sockets, standard input and output, sorts; and what is
//! handed over to code that only calls such functions.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use dagsan_task::finish;

use crate::Point;
use crate::library::{EACH, bytes, changing, each, leaked, seen, text, value};
use crate::shared::{Pointer, at, spawn, store};

pub const POINTS: &[Point] = points![
    library_writes,
    library_writes_in_order,
    library_reads,
    library_reads_in_order,
    library_reads_as_much_as_there_is,
    library_reads_nothing,
    library_read_line,
    library_read_line_in_order,
    library_sort,
    library_sort_in_order,
    library_sort_beside,
    library_handed_over,
    library_handed_over_without,
    library_handed_over_beside,
    library_threads,
    library_threads_joined,
    library_dynamic,
    library_dynamic_in_order,
    library_streams_held,
    library_streams_given_back,
    library_streams_apart,
    library_streams_unrelated,
];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that is gone when it is closed.
fn file(content: &[u8]) -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("dagsan-library-{}", std::process::id()));
    let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
    fs::remove_file(path)?;
    file.write_all(content)?;
    file.rewind()?;
    Ok(file)
}

#[inline(always)]
fn write(of: [Pointer<u8>; EACH]) -> io::Result<()> {
    let (mut file, (mut socket, _other)) = (file(b"")?, UnixStream::pair()?);
    file.write_all(text(of[0]).as_bytes())?; // race (2) of library_writes
    _ = (&file).write(text(of[1]).as_bytes())?; // race (2) of library_writes
    socket.write_all(text(of[2]).as_bytes())?; // race (2) of library_writes
    io::stdout().write_all(text(of[3]).as_bytes())?; // race (2) of library_writes
    (&io::stdout()).write_all(text(of[4]).as_bytes())?; // race (2) of library_writes
    io::stderr().write_all(text(of[5]).as_bytes())?; // race (2) of library_writes
    fs::write("/dev/null", text(of[6]))?; // race (2) of library_writes
    write!(file, "{}", text(of[7])) // race (2) of library_writes
}

// expect: race write/read on 8 bytes of heap by 1/2
fn library_writes() {
    let of = each(b"0123456789012345");
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                store!(at(one, 8), b'1'); // race (1)
            }
        );
        spawn!(scope, write(of));
    });
}

// expect: race-free
fn library_writes_in_order() {
    let of = each(b"0123456789012345");
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                store!(at(one, 8), b'1')
            }
        )
    });
    finish(|scope| {
        spawn!(scope, write(of));
        spawn!(scope, write(of));
    });
}

/// Eight bytes to read into.
#[inline(always)]
fn room(place: Pointer<u8>) -> &'static mut [u8] {
    // SAFETY: the bytes are there.
    unsafe { std::slice::from_raw_parts_mut(place.at(), 8) }
}

#[inline(always)]
fn read(of: [Pointer<u8>; EACH]) -> io::Result<()> {
    let (mut file, (mut socket, mut other)) = (file(&[b'x'; 100])?, UnixStream::pair()?);
    other.write_all(&[b'y'; 100])?;
    _ = file.read(room(of[0]))?; // race (2) of library_reads
    file.read_exact(room(of[1]))?; // race (2) of library_reads
    _ = (&file).read(room(of[2]))?; // race (2) of library_reads
    socket.read_exact(room(of[3]))?; // race (2) of library_reads
    _ = (&socket).read(room(of[4]))?; // race (2) of library_reads
    Ok(())
}

// expect: race read/write on 5 bytes of heap by 1/2
fn library_reads() {
    let of = each(b"0123456789012345");
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                black_box(*seen(at(one, 5))); // race (1)
            }
        );
        spawn!(scope, read(of));
    });
}

// expect: race-free
fn library_reads_in_order() {
    let of = each(b"0123456789012345");
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                black_box(*seen(at(one, 5)));
            }
        )
    });
    finish(|scope| spawn!(scope, read(of)));
    finish(|scope| {
        spawn!(
            scope,
            for one in of {
                black_box(*seen(at(one, 5)));
            }
        )
    });
}

/// There are three bytes to read.
// expect: race read/write on 3 bytes of heap by 1/2
fn library_reads_as_much_as_there_is() {
    let place = bytes(b"0123456789012345");
    finish(|scope| {
        spawn!(
            scope,
            for one in 0..8 {
                black_box(*seen(at(place, one))); // race (1)
            }
        );
        spawn!(scope, file(b"xyz").and_then(|mut file| file.read(room(place)))); // race (2)
    });
}

// expect: race-free
fn library_reads_nothing() {
    let place = bytes(b"0123456789012345");
    finish(|scope| {
        spawn!(
            scope,
            for one in 0..8 {
                black_box(*seen(at(place, one)));
            }
        );
        spawn!(scope, file(b"").and_then(|mut file| file.read(room(place))));
    });
}

/// Standard input has these lines.
fn type_lines() -> io::Result<()> {
    let file = file(b"a line\nanother line\nthe last one\n")?;
    // SAFETY: a plain call.
    if unsafe { libc::dup2(file.as_raw_fd(), 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

// expect: race
fn library_read_line() {
    type_lines().unwrap_or_default();
    let line = leaked(String::with_capacity(100));
    finish(|scope| {
        spawn!(scope, io::stdin().read_line(changing(line))); // race (1)
        spawn!(scope, format!("{}", seen(line))); // race (2)
    });
}

// expect: race-free
fn library_read_line_in_order() {
    type_lines().unwrap_or_default();
    let line = leaked(String::with_capacity(100));
    finish(|scope| spawn!(scope, io::stdin().read_line(changing(line))));
    finish(|scope| {
        spawn!(scope, format!("{}", seen(line)));
        spawn!(scope, io::stdin().read_line(&mut String::new()));
    });
}

/// Numbers in disorder.
fn numbers<T>(of: impl Fn(u32) -> T) -> &'static mut [T] {
    (0..1000u32).map(|index| of(index * 7919 % 1000)).collect::<Vec<T>>().leak()
}

type Act = Box<dyn Fn() + Send + Sync>;

/// Looks at an element of each of two slices, and sorts them.
fn sorting<T: Copy + Ord + 'static>(of: fn(u32) -> T) -> (Act, Act) {
    let [stable, unstable] = [Pointer(numbers(of).as_mut_ptr()), Pointer(numbers(of).as_mut_ptr())];
    // SAFETY: there are so many.
    let slice = |first: Pointer<T>| unsafe { std::slice::from_raw_parts_mut(first.at(), 1000) };
    let look = move || {
        _ = black_box(*seen(at(stable, 501))); // race (1) of library_sort
        _ = black_box(*seen(at(unstable, 501))); // race (1) of library_sort
    };
    let sort = move || {
        slice(stable).sort(); // race (2) of library_sort
        slice(unstable).sort_unstable(); // race (2) of library_sort
        black_box(());
    };
    (Box::new(look), Box::new(sort))
}

/// Sorts of plain values, as others may have made them of the library's: `[u64]::sort` is not compiled twice.
// expect: race read/write on 118 bytes of heap by 1/2
fn library_sort() {
    let (looks, sorts): (Vec<Act>, Vec<Act>) = [
        sorting(|n| n as u8),
        sorting(|n| n as u16),
        sorting(|n| n),
        sorting(u64::from),
        sorting(|n| n as usize),
        sorting(|n| n as i32),
        sorting(i64::from),
        sorting(|n| (n, n)),
        sorting(|n| ["a", "b", "c"][n as usize % 3]),
    ]
    .into_iter()
    .unzip();
    finish(|scope| {
        let (looks, sorts) = (&looks, &sorts);
        spawn!(scope, looks.iter().for_each(|look| look()));
        spawn!(scope, sorts.iter().for_each(|sort| sort()));
    });
}

// expect: race-free
fn library_sort_in_order() {
    let (a, b, c, d) =
        (numbers(u64::from), numbers(f64::from), numbers(|n| n as i32), numbers(|n| n.to_string()));
    finish(|scope| {
        spawn!(scope, a.sort());
        spawn!(scope, b.sort_by(|x, y| x.partial_cmp(y).unwrap_or(std::cmp::Ordering::Equal)));
        spawn!(scope, c.sort_unstable());
        spawn!(scope, d.sort());
    });
}

// expect: race-free
fn library_sort_beside() {
    let (lower, upper) = numbers(u64::from).split_at_mut(500);
    finish(|scope| {
        spawn!(scope, lower.sort());
        spawn!(scope, upper.sort());
    });
}

/// The second section only formats, clones, parses or searches what the first one has left.
// expect: race-free, up to locks
// expect locks=0:atomics=0: race
fn library_handed_over() {
    for look in LOOKS {
        let (note, place) = (Mutex::new(String::new()), leaked(0u64));
        let note = &note;
        finish(|scope| {
            spawn!(scope,
                store!(place, 1);
                lock(note).push_str("1024");
            );
            spawn!(
                scope,
                if look(&lock(note)) {
                    store!(place, 2)
                }
            );
        });
    }
}

/// Was something left?
const LOOKS: [fn(&String) -> bool; 6] = [
    |note| note.clone().len() == 4,
    |note| format!("{note}").len() == 4,
    |note| note.parse() == Ok(1024.0),
    |note| note.parse() == Ok(1024u64),
    |note| note.to_lowercase() == "1024",
    |note| note.contains("02"),
];

// expect: race write/write on 8 bytes of heap by 1/2
fn library_handed_over_without() {
    let (note, other, place) = (Mutex::new(String::new()), Mutex::new(String::from("1024")), leaked(0u64));
    finish(|scope| {
        let (note, other) = (&note, &other);
        spawn!(scope,
            store!(place, 1); // race (1)
            lock(note).push_str("1024");
        );
        spawn!(
            scope,
            if lock(other).clone().len() == 4 {
                store!(place, 2); // race (2)
            }
        );
    });
}

/// The sections have a lock in common, and nothing else.
// expect: race write/write on 8 bytes of heap by 1/2
fn library_handed_over_beside() {
    let (notes, place) = (Mutex::new((String::new(), String::from("1024"))), leaked(0u64));
    finish(|scope| {
        let notes = &notes;
        spawn!(scope,
            store!(place, 1); // race (1)
            lock(notes).0.push_str("1024");
        );
        spawn!(
            scope,
            if lock(notes).1.clone().len() == 4 {
                store!(place, 2); // race (2)
            }
        );
    });
}

// expect: race
fn library_threads() {
    let (place, number) = (bytes(b"0123456789012345"), leaked(1u64));
    let thread = thread::spawn(move || (format!("{}", seen(number)), text(place).to_lowercase())); // race (2)
    store!(number, 2); // race (1)
    store!(at(place, 5), b'x'); // race (1)
    thread.join().unwrap_or_default();
}

// expect: race-free
fn library_threads_joined() {
    let (place, number) = (bytes(b"0123456789012345"), leaked(1u64));
    let look = move || (format!("{}", seen(number)), text(place).to_lowercase());
    let threads = [thread::spawn(look), thread::spawn(look)];
    for thread in threads {
        thread.join().unwrap_or_default();
    }
    store!(number, 2);
    store!(at(place, 5), b'x');
    println!("{}", seen(number));
}

/// The function is in a table only.
// expect: race write/read on 1 bytes of heap by 1/2
fn library_dynamic() {
    let of = bytes(b"0123456789012345");
    let shown: &'static (dyn std::fmt::Display + Sync) = black_box(value::<u8>(of));
    finish(|scope| {
        spawn!(scope, store!(of, 1)); // race (1)
        spawn!(scope, shown.to_string()); // race (2)
    });
}

// expect: race-free
fn library_dynamic_in_order() {
    let of = bytes(b"0123456789012345");
    let shown: &'static (dyn std::fmt::Display + Sync) = black_box(value::<u8>(of));
    finish(|scope| spawn!(scope, store!(of, 1)));
    finish(|scope| {
        spawn!(scope, shown.to_string());
        spawn!(scope, shown.to_string());
    });
}

/// The lock is taken by code without hooks, and given back by code with hooks; `println!` takes it again, and gives it back, without.
// expect: race-free, up to locks
fn library_streams_held() {
    let place = leaked(0u64);
    finish(|scope| {
        for number in 0..3 {
            spawn!(scope, {
                let mut output = io::stdout().lock();
                store!(place, number);
                println!("held");
                _ = writeln!(output, "{}", seen(place));
                _ = writeln!(io::stderr().lock(), "{number}");
            });
        }
    });
}

// expect: race write/write on 8 bytes of heap by 1/2
fn library_streams_given_back() {
    let place = leaked(0u64);
    finish(|scope| {
        spawn!(scope, {
            _ = writeln!(io::stdout().lock(), "one");
            store!(place, 1); // race (1)
        });
        spawn!(scope, {
            _ = writeln!(io::stdout().lock(), "two");
            store!(place, 2); // race (2)
        });
    });
}

// expect: race write/write on 8 bytes of heap by 1/2
fn library_streams_apart() {
    let place = leaked(0u64);
    finish(|scope| {
        spawn!(scope, {
            let _output = io::stdout().lock();
            store!(place, 1); // race (1)
        });
        spawn!(scope, {
            let _errors = io::stderr().lock();
            store!(place, 2); // race (2)
        });
    });
}

/// What sections of a stream's lock have in common is the library's: they order nothing.
// expect: race write/write on 8 bytes of heap by 1/2
fn library_streams_unrelated() {
    let place = leaked(0u64);
    finish(|scope| {
        spawn!(scope, {
            store!(place, 1); // race (1)
            _ = writeln!(io::stdout().lock(), "one");
        });
        spawn!(scope, {
            _ = writeln!(io::stdout().lock(), "two");
            store!(place, 2); // race (2)
        });
    });
}
