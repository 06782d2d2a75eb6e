//! What functions of the standard library that come compiled read and write of the program's memory, by their names.
//!
//! They have no hooks, so the program tells of them (`thunks`). A parameter that is a shared reference counts as read as a whole: nobody may
//! change what it refers to while the call lasts, so this is no false alarm. What a function writes is told only where it surely writes.
//!
//! Names are those of the demangled symbol, in either mangling, without the modules of its types, so that a function which moves within the
//! library is still known. Left out is what cannot be shared (iterators, builders), what constructs or moves values, what has atomics inside,
//! and what is generic or worth inlining, which is compiled with hooks. A function that a version of the library does not have is not missed.

use rustc_demangle::try_demangle;

use Touch::{Fill, Grow, Read, ReadFat, ReadSlice, ReadText, Rewrite};

/// What a function does with one of its parameters. They are counted without the place of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// Reads so many bytes where the parameter points.
    Read(u32, u64),
    /// Reads a slice, of elements of so many bytes: the parameter is its address, the next one its length.
    ReadSlice(u32, u64),
    /// Reads the address and the length of a slice of bytes where the parameter points, and the bytes.
    ReadFat(u32),
    /// Reads a `String`, or a vector of bytes, where the parameter points, and its contents.
    ReadText(u32),
    /// Writes a slice of bytes as far as the result says: so many bytes, or all of them if it is no error.
    Fill(u32),
    /// Changes such a vector: if it is longer or shorter after the call, it is written, and what has been added.
    Grow(u32),
    /// Writes such a vector and all of its contents.
    Rewrite(u32),
    /// Nobody knows: the verdict is to say so.
    Unknown,
}

/// Crates that come compiled.
const CRATES: [&str; 3] = ["core", "alloc", "std"];

/// Numbers and the like have their traits under one name.
const FORMATS: [&str; 8] =
    ["Display", "Debug", "LowerHex", "UpperHex", "Octal", "Binary", "LowerExp", "UpperExp"];

/// What the functions of these names do.
const TABLE: &[(&[Touch], &[&str])] = &[
    (
        &[ReadSlice(0, 1)],
        &[
            // Formats.
            "<str as Display>::fmt",
            "<str as Debug>::fmt",
            "<CStr as Debug>::fmt",
            "<ByteStr as Display>::fmt",
            "<ByteStr as Debug>::fmt",
            "<OsStr as Debug>::fmt",
            "<Path as Debug>::fmt",
            "<Wtf8 as Display>::fmt",
            "<Wtf8 as Debug>::fmt",
            "<Slice as Display>::fmt",
            "<Slice as Debug>::fmt",
            // Texts.
            "converts::from_utf8",
            "str::from_utf8",
            "str::to_lowercase",
            "str::to_uppercase",
            "str::escape_debug",
            "String::from_utf8_lossy",
            "count::do_count_chars",
            "count::char_count_general_case",
            "CStr::from_bytes_with_nul",
            "CStr::from_bytes_until_nul",
            "CStr::to_str",
            "CStr::to_string_lossy",
            "<CStr as ToOwned>::to_owned",
            "<CString as From<&CStr>>::from",
            "<Box<CStr> as From<&CStr>>::from",
            "<Vec<u8> as From<&str>>::from",
            "<Box<dyn Error> as From<&str>>::from",
            "<Box<dyn Error + Sync + Send> as From<&str>>::from",
            "<&str as <CString>::new::SpecNewImpl>::spec_new_impl",
            "<&str as SpecNewImpl>::spec_new_impl",
            "<&[u8] as <CString>::new::SpecNewImpl>::spec_new_impl",
            "<&[u8] as SpecNewImpl>::spec_new_impl",
            "<&mut [u8] as <CString>::new::SpecNewImpl>::spec_new_impl",
            "<&mut [u8] as SpecNewImpl>::spec_new_impl",
            // Numbers and addresses.
            "<f16 as FromStr>::from_str",
            "<f32 as FromStr>::from_str",
            "<f64 as FromStr>::from_str",
            "<NonZero<i8> as FromStr>::from_str",
            "<NonZero<u8> as FromStr>::from_str",
            "<NonZero<i16> as FromStr>::from_str",
            "<NonZero<u16> as FromStr>::from_str",
            "<NonZero<i32> as FromStr>::from_str",
            "<NonZero<u32> as FromStr>::from_str",
            "<NonZero<i64> as FromStr>::from_str",
            "<NonZero<u64> as FromStr>::from_str",
            "<NonZero<i128> as FromStr>::from_str",
            "<NonZero<u128> as FromStr>::from_str",
            "<NonZero<isize> as FromStr>::from_str",
            "<NonZero<usize> as FromStr>::from_str",
            "<IpAddr as FromStr>::from_str",
            "<Ipv4Addr as FromStr>::from_str",
            "<Ipv6Addr as FromStr>::from_str",
            "<SocketAddr as FromStr>::from_str",
            "<SocketAddrV4 as FromStr>::from_str",
            "<SocketAddrV6 as FromStr>::from_str",
            "IpAddr::parse_ascii",
            "Ipv4Addr::parse_ascii",
            "Ipv6Addr::parse_ascii",
            "SocketAddr::parse_ascii",
            "SocketAddrV4::parse_ascii",
            "SocketAddrV6::parse_ascii",
            "<str as ToSocketAddrs>::to_socket_addrs",
            // Paths and the names of files and variables.
            "Path::components",
            "Path::is_absolute",
            "Path::is_dir",
            "Path::is_file",
            "Path::is_symlink",
            "Path::parent",
            "Path::file_name",
            "Path::file_stem",
            "Path::file_prefix",
            "Path::extension",
            "Path::to_path_buf",
            "Path::normalize_lexically",
            "<Box<Path> as From<&Path>>::from",
            "<&str as TryFrom<&OsStr>>::try_from",
            "OsStr::to_ascii_lowercase",
            "OsStr::to_ascii_uppercase",
            "env::_var",
            "env::_var_os",
            "read::inner",
            "read_to_string::inner",
            "fs::metadata",
            "fs::symlink_metadata",
            "fs::exists",
            "fs::read_dir",
            "fs::read_link",
            "fs::canonicalize",
            "fs::remove_dir",
            "fs::remove_dir_all",
            "fs::remove_file",
            "Command::new",
        ],
    ),
    (&[ReadSlice(0, 2)], &["String::from_utf16"]),
    (
        &[ReadSlice(0, 1), ReadSlice(2, 1)],
        &[
            "Path::_join",
            "Path::_starts_with",
            "Path::_ends_with",
            "Path::_strip_prefix",
            "Path::_with_extension",
            "Path::_with_file_name",
            "fs::copy",
            "fs::rename",
            "fs::symlink",
            "fs::hard_link",
            "write::inner",
        ],
    ),
    (
        &[ReadSlice(1, 1)],
        &[
            "memchr::memchr_aligned",
            "memchr::memrchr",
            "Formatter::write_str",
            "Formatter::pad",
            "<Formatter as Write>::write_str",
            "OpenOptions::_open",
            "DirBuilder::_create",
            "Command::arg",
            "Command::cwd",
            "FileDesc::write",
            "FileDesc::write_at",
            "<File as Write>::write",
            "<&File as Write>::write",
            "<Arc<File> as Write>::write",
            "<File as FileExt>::write_at",
            "<TcpStream as Write>::write",
            "<&TcpStream as Write>::write",
            "<UnixStream as Write>::write",
            "<&UnixStream as Write>::write",
            "<ChildStdin as Write>::write",
            "<&ChildStdin as Write>::write",
            "<PipeWriter as Write>::write",
            "<&PipeWriter as Write>::write",
            "<Stdout as Write>::write",
            "<Stdout as Write>::write_all",
            "<&Stdout as Write>::write",
            "<&Stdout as Write>::write_all",
            "<StdoutLock as Write>::write",
            "<StdoutLock as Write>::write_all",
            "<Stderr as Write>::write",
            "<Stderr as Write>::write_all",
            "<&Stderr as Write>::write",
            "<&Stderr as Write>::write_all",
            "<StderrLock as Write>::write",
            "<StderrLock as Write>::write_all",
            "UdpSocket::send",
            "UdpSocket::send_to",
            "UnixDatagram::send",
            "UnixDatagram::send_to_addr",
        ],
    ),
    (&[ReadSlice(2, 1), ReadSlice(4, 1)], &["Formatter::pad_integral"]),
    // What is looked for; where, inlined code looks.
    (&[ReadSlice(2, 1)], &["StrSearcher::new"]),
    (
        &[ReadFat(0)],
        &[
            "<Box<str> as Clone>::clone",
            "<CString as Debug>::fmt",
            "<Display as Display>::fmt",
            "<Display as Debug>::fmt",
        ],
    ),
    (
        &[ReadText(0)],
        &[
            "<String as Clone>::clone",
            "<&String as Pattern>::into_searcher",
            "<String as ToSocketAddrs>::to_socket_addrs",
            "<OsString as Debug>::fmt",
            "<PathBuf as Debug>::fmt",
            "<Buf as Display>::fmt",
            "<Buf as Debug>::fmt",
            "<Wtf8Buf as Display>::fmt",
        ],
    ),
    (&[ReadText(1), Rewrite(0)], &["<String as Clone>::clone_from"]),
    (
        &[ReadSlice(1, 1), Grow(0)],
        &[
            "PathBuf::_push",
            "PathBuf::_set_file_name",
            "PathBuf::_set_extension",
            "PathBuf::_add_extension",
            "<OsString as Write>::write_str",
        ],
    ),
    (&[Grow(0)], &["PathBuf::pop"]),
    (
        &[Grow(1)],
        &[
            "FileDesc::read_to_end",
            "<File as Read>::read_to_end",
            "<File as Read>::read_to_string",
            "<&File as Read>::read_to_end",
            "<&File as Read>::read_to_string",
            "<Arc<File> as Read>::read_to_end",
            "<Arc<File> as Read>::read_to_string",
            "<ChildStdout as Read>::read_to_end",
            "<ChildStderr as Read>::read_to_end",
            "<PipeReader as Read>::read_to_end",
            "<&PipeReader as Read>::read_to_end",
            "Stdin::read_line",
            "<Stdin as Read>::read_to_end",
            "<Stdin as Read>::read_to_string",
            "<&Stdin as Read>::read_to_end",
            "<&Stdin as Read>::read_to_string",
            "<StdinLock as Read>::read_to_end",
            "<StdinLock as Read>::read_to_string",
            "<StdinLock as BufRead>::read_line",
        ],
    ),
    (&[Grow(2)], &["<StdinLock as BufRead>::read_until"]),
    (
        &[Fill(1)],
        &[
            "FileDesc::read",
            "FileDesc::read_at",
            "File::read",
            "<File as Read>::read",
            "<&File as Read>::read",
            "<Arc<File> as Read>::read",
            "<File as FileExt>::read_at",
            "<TcpStream as Read>::read",
            "<&TcpStream as Read>::read",
            "TcpStream::peek",
            "<UnixStream as Read>::read",
            "<&UnixStream as Read>::read",
            "UnixStream::peek",
            "<ChildStdout as Read>::read",
            "<ChildStderr as Read>::read",
            "<PipeReader as Read>::read",
            "<&PipeReader as Read>::read",
            "<Stdin as Read>::read",
            "<Stdin as Read>::read_exact",
            "<&Stdin as Read>::read",
            "<&Stdin as Read>::read_exact",
            "<StdinLock as Read>::read",
            "<StdinLock as Read>::read_exact",
            "UdpSocket::recv",
            "UdpSocket::peek",
            "UnixDatagram::recv",
            "UnixDatagram::peek",
        ],
    ),
];

/// What the function of that symbol does, if it is one that comes compiled.
pub fn known(symbol: &str) -> Option<Vec<Touch>> {
    // A generic function that is never inlined: the compiler takes the copy of the test harness, where that is linked.
    if symbol.contains("4core5slice4sort") && symbol.ends_with("_4test") {
        return Some(vec![Touch::Unknown]);
    }
    let name = name(symbol)?;
    if let Some((touches, _)) = TABLE.iter().find(|(_, names)| names.contains(&&*name)) {
        return Some(touches.to_vec());
    }
    let (value, how) = name.strip_prefix('<')?.strip_suffix(">::fmt")?.split_once(" as ")?;
    let bytes = FORMATS.contains(&how).then(|| size(value)).flatten()?;
    Some(vec![Read(0, bytes)])
}

/// What a verdict calls the function of that symbol.
pub fn told(symbol: &str) -> String {
    let name = name(symbol).unwrap_or_else(|| symbol.to_owned());
    // Without the types that a generic one is for.
    format!("`{}` of the standard library", name.split("::<").next().unwrap_or(&name))
}

/// The bytes of a value that its formats look at: padding, and what only some values have, is left out.
fn size(of: &str) -> Option<u64> {
    let number = of.strip_prefix("NonZero").and_then(|rest| rest.strip_suffix("Inner"));
    match number.map(str::to_lowercase).as_deref().unwrap_or(of) {
        "bool" | "u8" | "i8" | "AsciiChar" | "ErrorKind" => Some(1),
        "u16" | "i16" | "f16" => Some(2),
        "char" | "u32" | "i32" | "f32" | "Ipv4Addr" => Some(4),
        "IpAddr" => Some(5),
        "SocketAddrV4" => Some(6),
        "u64" | "i64" | "usize" | "isize" | "f64" | "SocketAddr" => Some(8),
        "Duration" | "Instant" | "SystemTime" => Some(12),
        "u128" | "i128" | "Ipv6Addr" => Some(16),
        "SocketAddrV6" => Some(28),
        _ => None,
    }
}

/// The name of a function of these crates, as the table has it: `<u64 as Display>::fmt`, `str::to_lowercase`, `memchr::memrchr`.
fn name(symbol: &str) -> Option<String> {
    if !symbol.starts_with("_R") && !symbol.starts_with("_ZN") {
        return None;
    }
    let demangled = format!("{:#}", try_demangle(symbol).ok()?);
    let short = shortened(&with_impl_in_front(&demangled))?;
    // `<str>::to_lowercase` is `str::to_lowercase`.
    let inherent = short.strip_prefix('<').and_then(|rest| rest.split_once(">::"));
    match inherent {
        Some((of, function)) if !of.contains([' ', '<', '>']) => Some(format!("{of}::{function}")),
        _ => Some(short),
    }
}

/// `<u64 as core::fmt::Display>::fmt` for `core::fmt::num::imp::<impl core::fmt::Display for u64>::fmt`, as the older mangling has it.
fn with_impl_in_front(name: &str) -> String {
    let of = || {
        let (_, rest) = name.split_once("<impl ")?;
        let (what, function) = rest.rsplit_once(">::")?;
        Some(match what.split_once(" for ") {
            Some((how, value)) => format!("<{value} as {how}>::{function}"),
            None => format!("<{what}>::{function}"),
        })
    };
    of().unwrap_or_else(|| name.to_owned())
}

/// A name without modules. None if a part of it is of another crate.
fn shortened(name: &str) -> Option<String> {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut short = String::new();
    let (mut rest, mut depth) = (name, 0);
    while let Some(first) = rest.chars().next() {
        if !is_letter(first) {
            depth += i32::from(first == '<') - i32::from(first == '>');
            short.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let mut parts = Vec::new();
        loop {
            let end = rest.find(|letter| !is_letter(letter)).unwrap_or(rest.len());
            parts.push(&rest[..end]);
            rest = &rest[end..];
            match rest.strip_prefix("::") {
                Some(next) if next.starts_with(is_letter) => rest = next,
                _ => break,
            }
        }
        // What follows the brackets of a type begins no path.
        let is_whole = !short.ends_with("::");
        if is_whole && parts.len() > 1 && !CRATES.contains(&parts[0]) {
            return None;
        }
        let from = match (is_whole, depth) {
            (false, _) => 0,
            (true, 0) => parts.len().saturating_sub(2),
            (true, _) => parts.len() - 1,
        };
        short.push_str(&parts[from..].join("::"));
    }
    Some(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORE: &str = "CsgEmfK2I1SDS_4core";
    const ALLOC: &str = "CslNYArtu3iFV_5alloc";
    const STD: &str = "CsjrHSEGnQ3l9_3std";

    #[test]
    fn functions_are_known_in_either_mangling() {
        for (symbol, expected) in [
            (format!("_RNvXsd_NtNtNt{CORE}3fmt3num3impyNtB9_7Display3fmt"), vec![Read(0, 8)]),
            (
                "_ZN4core3fmt3num3imp52_$LT$impl$u20$core..fmt..Display$u20$for$u20$u64$GT$3fmt17h0123456789abcdefE"
                    .to_owned(),
                vec![Read(0, 8)],
            ),
            (format!("_RNvXsf_Nt{CORE}3fmtbNtB5_7Display3fmt"), vec![Read(0, 1)]),
            (format!("_RNvXsh_Nt{CORE}3fmteNtB5_7Display3fmt"), vec![ReadSlice(0, 1)]),
            (
                "_ZN42_$LT$str$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE".to_owned(),
                vec![ReadSlice(0, 1)],
            ),
            (format!("_RNvNtNt{CORE}5slice6memchr14memchr_aligned"), vec![ReadSlice(1, 1)]),
            ("_ZN4core5slice6memchr14memchr_aligned17h0123456789abcdefE".to_owned(), vec![ReadSlice(1, 1)]),
            (
                "_ZN4core3str7pattern11StrSearcher3new17h0123456789abcdefE".to_owned(),
                vec![ReadSlice(2, 1)],
            ),
            (
                "_ZN5alloc3str21_$LT$impl$u20$str$GT$12to_lowercase17h0123456789abcdefE".to_owned(),
                vec![ReadSlice(0, 1)],
            ),
            (
                "_ZN60_$LT$alloc..string..String$u20$as$u20$core..clone..Clone$GT$5clone17h0123456789abcdefE"
                    .to_owned(),
                vec![ReadText(0)],
            ),
            (format!("_RNvMs_Nt{ALLOC}6stringNtB4_6String15from_utf8_lossy"), vec![ReadSlice(0, 1)]),
            (format!("_RNvXsa_Nt{STD}2fsNtB5_4FileNtNtB7_2io4Read4read"), vec![Fill(1)]),
            (
                "_ZN47_$LT$std..fs..File$u20$as$u20$std..io..Read$GT$4read17h0123456789abcdefE".to_owned(),
                vec![Fill(1)],
            ),
            (format!("_RNvNvNt{STD}2fs5write5inner"), vec![ReadSlice(0, 1), ReadSlice(2, 1)]),
        ] {
            assert_eq!(known(&symbol), Some(expected), "{symbol}: {:?}", name(&symbol));
        }
    }

    #[test]
    fn copies_of_the_test_harness_are_told_of() {
        let symbol = "_RINvNtNtNtCsgEmfK2I1SDS_4core5slice4sort6stable14driftsort_mainNtNtCslNYArtu3iFV_5alloc6string6StringNvYBZ_NtNtB8_3cmp10PartialOrd2ltINtNtB13_3vec3VecBZ_EECs1DizvfwA9VW_";
        assert_eq!(known(&format!("{symbol}4test")), Some(vec![Touch::Unknown]));
        assert_eq!(known(&format!("{symbol}6points")), None);
        assert_eq!(told(&format!("{symbol}4test")), "`stable::driftsort_main` of the standard library");
    }

    #[test]
    fn others_are_not() {
        for symbol in [
            // A type of the program's with a name of the library's.
            "_ZN49_$LT$shop..String$u20$as$u20$core..clone..Clone$GT$5clone17h0123456789abcdefE",
            "_ZN4shop6memchr7memrchr17h0123456789abcdefE",
            // Atomics are no plain memory.
            "_ZN66_$LT$core..sync..atomic..AtomicU64$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE",
            "_ZN4core9panicking9panic_fmt17h0123456789abcdefE",
            "memchr",
            "read",
        ] {
            assert_eq!(known(symbol), None, "{symbol}: {:?}", name(symbol));
        }
    }

    #[test]
    fn no_function_is_in_the_table_twice() {
        let mut names: Vec<&str> = TABLE.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|two| two[0] == two[1]);
        assert_eq!(twice, None);
    }
}
