//! Real programs, and made-up ones.

use std::env;
use std::fs;
use std::process::Command;

use object::{CompressionFormat, ObjectSection};

use super::*;

const PROGRAM: &str = "\
static mut COUNTER: [u64; 4] = [1; 4];

#[inline(always)]
fn inner(at: usize) -> u64 {
    unsafe { std::ptr::read_volatile(&raw const COUNTER[at]) }
}

#[inline(never)]
#[unsafe(no_mangle)]
fn outer(at: usize) -> u64 {
    inner(at) + 1
}

fn main() {
    std::process::exit(outer(std::env::args().count()) as i32);
}
";

/// Compiles the program, and hands its file to the test.
fn with_program(name: &str, test: impl FnOnce(&Path)) {
    let directory = env::temp_dir().join(format!("dagsan-symbols-{name}-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let (source, program) = (directory.join("program.rs"), directory.join("program"));
    fs::write(&source, PROGRAM).unwrap();
    let status = Command::new("rustc")
        .args([
            "--edition=2024",
            "-Copt-level=1",
            "-Cdebuginfo=1",
            "-Clink-arg=-Wl,--compress-debug-sections=zlib",
        ])
        .arg("-o")
        .args([&program, &source])
        .status()
        .unwrap();
    assert!(status.success());
    test(&program);
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn functions_lines_and_statics_are_found() {
    with_program("names", |program| {
        let mut symbols = Symbols::open(program).unwrap();
        let bytes = fs::read(program).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let outer = file.symbols().find(|symbol| symbol.name() == Ok("outer")).unwrap();
        let (start, end) = (outer.address(), outer.address() + outer.size());

        let stacks: Vec<Vec<Symbol>> = (start..end).map(|address| symbols.code(address + 1)).collect();
        let inlined =
            stacks.iter().find(|stack| stack.iter().any(|frame| frame.function == "program::inner"));
        let inlined = inlined.expect("the read is in `inner`");
        let [inner, outer] = &inlined[inlined.len() - 2..] else { panic!("{inlined:?}") };
        assert_eq!((&*inner.function, inner.line, inner.inlined), ("program::inner", 5, true));
        assert_eq!((&*outer.function, outer.line, outer.inlined), ("outer", 11, false));
        assert!(inner.file.as_ref().unwrap().ends_with("program.rs") && inner.column > 0);

        let counter = symbols.statics.iter().find(|found| found.name == "program::COUNTER").unwrap().clone();
        assert_eq!(counter.size, 32);
        assert_eq!(symbols.data(counter.address + 31), Some(&counter));
        assert_ne!(symbols.data(counter.address + 32), Some(&counter));
        assert_eq!(symbols.data(0), None);
        assert_eq!(symbols.code(u64::MAX)[0].function, "??");
    });
}

#[test]
fn a_section_that_claims_to_be_huge_is_not_unpacked() {
    with_program("huge", |program| {
        let mut bytes = fs::read(program).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let section = file.section_by_name(".debug_info").unwrap();
        let range = section.compressed_file_range().unwrap();
        assert_ne!(range.format, CompressionFormat::None);
        // The size follows the kind, and the head is three words long.
        let size = range.offset as usize - 16;
        assert_eq!(bytes[size..size + 8], range.uncompressed_size.to_le_bytes());
        let outer = file.symbols().find(|symbol| symbol.name() == Ok("outer")).unwrap().address();
        bytes[size..size + 8].copy_from_slice(&(1_u64 << 31).to_le_bytes());
        fs::write(program, bytes).unwrap();
        let mut symbols = Symbols::open(program).unwrap();
        assert_eq!(
            symbols.trouble().unwrap(),
            "the debug information of the program is damaged (.debug_info claims to be larger than it can be when it is unpacked): \
                 some places have no lines"
        );
        let found = symbols.code(outer + 1);
        assert_eq!((&*found[0].function, found[0].line), ("outer", 0), "the symbol table is still there");
    });
}

/// 16,384 functions that are inlined into `main`, each with the same list of 4,096 ranges.
const SHARED_RANGES: &str = "\
        .text
        .globl main
        .type main, @function
main:   nop
        ret
.Lend:  .size main, . - main
        .section .debug_abbrev, \"\", @progbits
        # A unit; a function; one that was inlined.
        .byte 1, 0x11, 1,  0x11, 0x01,  0x12, 0x06,  0, 0
        .byte 2, 0x2e, 1,  0x03, 0x08,  0x11, 0x01,  0x12, 0x06,  0, 0
        .byte 3, 0x1d, 0,  0x55, 0x17,  0, 0
        .byte 0
        .section .debug_info, \"\", @progbits
        .long .Linfo_end - .Linfo
.Linfo: .short 4
        .long 0
        .byte 8
        .byte 1
        .quad main
        .long .Lend - main
        .byte 2
        .asciz \"debug_main\"
        .quad main
        .long .Lend - main
        .rept 16384
        .byte 3
        .long 0
        .endr
        .byte 0, 0
.Linfo_end:
        .section .debug_ranges, \"\", @progbits
        .rept 4096
        .quad 0, 1
        .endr
        .quad 0, 0
        .section .note.GNU-stack, \"\", @progbits
";

#[test]
fn functions_that_share_a_long_list_are_given_up() {
    let shared = SHARED_RANGES.to_owned();
    for (text, given_up) in [(shared.replace("16384", "8"), false), (shared, true)] {
        let directory = env::temp_dir().join(format!("dagsan-ranges-{given_up}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (source, program) = (directory.join("ranges.s"), directory.join("ranges"));
        fs::write(&source, text).unwrap();
        let status = Command::new("cc").arg("-o").args([&program, &source]).status().unwrap();
        assert!(status.success());
        let mut symbols = Symbols::open(&program).unwrap();
        let main = symbols.functions.iter().find(|found| found.name == "main").unwrap().address;
        assert_eq!(symbols.trouble(), None);
        let found = symbols.code(main + 1);
        let name = &found.last().unwrap().function;
        assert_eq!(
            (&**name, symbols.trouble().is_some()),
            if given_up { ("main", true) } else { ("debug_main", false) }
        );
        fs::remove_dir_all(&directory).unwrap();
    }
}

#[test]
fn files_that_are_no_programs_are_errors() {
    assert!(Symbols::open(Path::new("/no/such/file")).is_err());
    let this = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    assert!(Symbols::open(&this).is_err_and(|error| error.to_string().contains("Cargo.toml: ")));
    assert_eq!(
        Symbols::none().code(7),
        [Symbol { function: unknown(), file: None, line: 0, column: 0, inlined: false }]
    );
}

#[test]
fn hashes_are_no_part_of_names() {
    assert_eq!(demangle("_ZN4core3ptr5write17h0123456789abcdefE"), "core::ptr::write");
    assert_eq!(demangle("main"), "main");
}
