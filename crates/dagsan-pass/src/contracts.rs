//! What functions of the standard library that come compiled read and write of the program's memory, by their names.
//!
//! They have no hooks, so the program tells of them (`thunks`). A parameter that is a shared reference counts as read as a whole: nobody may
//! change what it refers to while the call lasts, so this is no false alarm. What a function writes is told only where it surely writes.
//!
//! Names are those of the demangled symbol, in either mangling, without the modules of its types, so that a function which moves within the
//! library is still known. What is generic or worth inlining is compiled with hooks. Of what is left without a contract `compiled` says whether a
//! verdict has to speak of it. A function that a version of the library does not have is not missed.

use rustc_demangle::try_demangle;

mod table;

use crate::compiled;
use Touch::{Counted, Read};
use table::TABLE;

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
    /// Reads a slice of bytes up to the place that the result is, or all of it if that is none.
    ReadTo(u32),
    /// The same from that place on.
    ReadFrom(u32),
    /// Reads an address where the parameter points, and so many bytes where that points: the parameter is a reference to a reference.
    ReadBehind(u32, u64),
    /// Reads as many bytes as the result says, and one more, where the parameter points.
    Counted(u32),
    /// Writes so many bytes where the parameter points.
    Write(u32, u64),
    /// Writes a slice of bytes as far as the result says: so many bytes, or all of them if it is no error.
    Fill(u32),
    /// Changes such a vector: if it is longer or shorter after the call, it is written, and what has been added.
    Grow(u32),
    /// Writes such a vector and all of its contents.
    Rewrite(u32),
    /// If there is no result, or it is true: writes such a vector, and its last bytes, as many as the slice of the second parameter has.
    Tail(u32, u32),
    /// Nobody knows what else: the verdict is to say so.
    Unknown,
}

/// Crates that come compiled.
const CRATES: [&str; 3] = ["core", "alloc", "std"];

/// Numbers and the like have their traits under one name.
const FORMATS: [&str; 8] =
    ["Display", "Debug", "LowerHex", "UpperHex", "Octal", "Binary", "LowerExp", "UpperExp"];

/// What the function of that symbol does, if it is one that comes compiled.
pub fn known(symbol: &str) -> Option<Vec<Touch>> {
    // A generic function that is never inlined: the compiler takes the copy of the test harness, where that is linked.
    if symbol.contains("4core5slice4sort") && symbol.ends_with("_4test") {
        return Some(vec![Touch::Unknown]);
    }
    // It is C's, and what `CStr::from_ptr` calls.
    if symbol == "strlen" {
        return Some(vec![Counted(0)]);
    }
    let name = name(symbol)?;
    if let Some((touches, _)) = TABLE.iter().find(|(_, names)| names.contains(&&*name)) {
        return Some(touches.to_vec());
    }
    let format = || {
        let (value, how) = name.strip_prefix('<')?.strip_suffix(">::fmt")?.split_once(" as ")?;
        FORMATS.contains(&how).then(|| size(value)).flatten()
    };
    match format() {
        Some(bytes) => Some(vec![Read(0, bytes)]),
        None => compiled::is_told(symbol, &name).then(|| vec![Touch::Unknown]),
    }
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
        "bool" | "u8" | "i8" | "AsciiChar" | "ErrorKind" | "ParseIntError" | "ParseFloatError"
        | "ParseCharError" | "AddrParseError" => Some(1),
        "u16" | "i16" | "f16" => Some(2),
        "char" | "u32" | "i32" | "f32" | "Ipv4Addr" | "FileType" | "ExitStatus" => Some(4),
        "IpAddr" => Some(5),
        "SocketAddrV4" => Some(6),
        "u64" | "i64" | "usize" | "isize" | "f64" | "SocketAddr" => Some(8),
        "Duration" | "Instant" | "SystemTime" => Some(12),
        "Utf8Error" => Some(10),
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
    use Touch::{Fill, ReadSlice, ReadText, ReadTo};

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
            (format!("_RNvNtNt{CORE}5slice6memchr14memchr_aligned"), vec![ReadTo(1)]),
            ("_ZN4core5slice6memchr14memchr_aligned17h0123456789abcdefE".to_owned(), vec![ReadTo(1)]),
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
            (format!("_RNvXsa_Nt{STD}2fsNtB5_4FileNtNtB7_2io4Read4read"), vec![Read(0, 4), Fill(1)]),
            (
                "_ZN47_$LT$std..fs..File$u20$as$u20$std..io..Read$GT$4read17h0123456789abcdefE".to_owned(),
                vec![Read(0, 4), Fill(1)],
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
