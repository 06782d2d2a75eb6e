//! Which of LLVM's intrinsics access memory, and how.
//!
//! By name, and not by number: names are part of LLVM's language, numbers are of one version. What is not known here
//! and has a pointer is not guessed: the program says where it executes it.

use crate::model::Kind;

/// An intrinsic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intrinsic {
    /// Accesses no memory of the program's, whatever pointers it has.
    Harmless,
    /// Copies or fills as many bytes as operand 2 says: what it does at which operands. ThreadSanitizer's pass makes it a call of the runtime.
    Copies(&'static [(Kind, u32)]),
    /// Accesses memory in these ways.
    Accesses(&'static [Memory]),
    Unknown,
}

/// One access of an intrinsic. Operands are meant by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    pub kind: Kind,
    pub pointer: u32,
    pub size: Size,
    pub mask: Option<Mask>,
    pub form: Form,
}

/// How much is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// What it gives.
    Result,
    /// What it is given there.
    Operand(u32),
    Bytes(u64),
    /// So many bytes as the operand says.
    Length(u32),
}

/// Which elements of a vector are accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mask {
    /// Those whose bit is set; the operand is the one that is a vector of bits.
    Bits,
    /// Those whose sign bit is set in this operand.
    Signs(u32),
    /// Those whose bit is set in this operand, which is a number.
    Number(u32),
}

/// Where the elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One after the other, with room for those that the mask leaves out.
    Vector,
    /// One after the other, without.
    Packed,
    /// At a pointer each.
    Pointers,
    /// At a pointer, and an index each, in units of `scale` bytes.
    Indices { index: u32, scale: u32 },
}

const fn read(pointer: u32) -> Memory {
    Memory { kind: Kind::Read, pointer, size: Size::Result, mask: None, form: Form::Vector }
}

const fn write(pointer: u32, value: u32) -> Memory {
    Memory { kind: Kind::Write, pointer, size: Size::Operand(value), mask: None, form: Form::Vector }
}

impl Memory {
    const fn of(self, size: Size) -> Memory {
        Memory { size, ..self }
    }

    const fn masked(self, mask: Mask) -> Memory {
        Memory { mask: Some(mask), ..self }
    }

    const fn formed(self, form: Form) -> Memory {
        Memory { form, ..self }
    }
}

/// By the start of the name; the first that fits holds.
const ACCESSES: &[(&str, &[Memory])] = &[
    ("llvm.masked.load.", &[read(0).masked(Mask::Bits)]),
    ("llvm.masked.store.", &[write(1, 0).masked(Mask::Bits)]),
    ("llvm.masked.gather.", &[read(0).masked(Mask::Bits).formed(Form::Pointers)]),
    ("llvm.masked.scatter.", &[write(1, 0).masked(Mask::Bits).formed(Form::Pointers)]),
    ("llvm.masked.expandload.", &[read(0).masked(Mask::Bits).formed(Form::Packed)]),
    ("llvm.masked.compressstore.", &[write(1, 0).masked(Mask::Bits).formed(Form::Packed)]),
    ("llvm.memcpy.element.", &[read(1).of(Size::Length(2)), write(0, 0).of(Size::Length(2))]),
    ("llvm.memmove.element.", &[read(1).of(Size::Length(2)), write(0, 0).of(Size::Length(2))]),
    ("llvm.memset.element.", &[write(0, 0).of(Size::Length(2))]),
    ("llvm.x86.sse.ldmxcsr", &[read(0).of(Size::Bytes(4))]),
    ("llvm.x86.sse.stmxcsr", &[write(0, 0).of(Size::Bytes(4))]),
    ("llvm.x86.sse3.ldu.", &[read(0)]),
    ("llvm.x86.avx.ldu.", &[read(0)]),
    ("llvm.x86.sse2.maskmov.dqu", &[write(2, 0).masked(Mask::Signs(1))]),
    ("llvm.x86.avx.maskload.", &[read(0).masked(Mask::Signs(1))]),
    ("llvm.x86.avx2.maskload.", &[read(0).masked(Mask::Signs(1))]),
    ("llvm.x86.avx.maskstore.", &[write(0, 2).masked(Mask::Signs(1))]),
    ("llvm.x86.avx2.maskstore.", &[write(0, 2).masked(Mask::Signs(1))]),
    ("llvm.x86.avx2.gather.", &[read(1).masked(Mask::Signs(3)).formed(Form::Indices { index: 2, scale: 4 })]),
    (
        "llvm.x86.avx512.mask.gather",
        &[read(1).masked(Mask::Bits).formed(Form::Indices { index: 2, scale: 4 })],
    ),
    (
        "llvm.x86.avx512.mask.scatter",
        &[write(0, 3).masked(Mask::Bits).formed(Form::Indices { index: 2, scale: 4 })],
    ),
    // As the standard library has them. Fetching ahead is no access.
    ("llvm.x86.avx512.gatherpf", &[]),
    ("llvm.x86.avx512.scatterpf", &[]),
    (
        "llvm.x86.avx512.gather",
        &[read(1).masked(Mask::Number(3)).formed(Form::Indices { index: 2, scale: 4 })],
    ),
    (
        "llvm.x86.avx512.scatter",
        &[write(0, 3).masked(Mask::Number(1)).formed(Form::Indices { index: 2, scale: 4 })],
    ),
];

const COPIES: [(&str, &[(Kind, u32)]); 3] = [
    ("llvm.memcpy.", &[(Kind::Read, 1), (Kind::Write, 0)]),
    ("llvm.memmove.", &[(Kind::Read, 1), (Kind::Write, 0)]),
    ("llvm.memset.", &[(Kind::Write, 0)]),
];

/// Have pointers, and access nothing that a task could race on.
const HARMLESS: [&str; 20] = [
    "llvm.lifetime.",
    "llvm.invariant.",
    "llvm.launder.",
    "llvm.strip.",
    "llvm.assume",
    "llvm.dbg.",
    "llvm.prefetch",
    "llvm.ptr",
    "llvm.objectsize",
    "llvm.is.constant",
    "llvm.expect",
    "llvm.experimental.noalias",
    "llvm.experimental.guard",
    "llvm.stack",
    "llvm.va_",
    "llvm.eh.",
    "llvm.threadlocal.address",
    "llvm.type.",
    "llvm.instrprof.",
    "llvm.var.annotation",
];

/// What the intrinsic of that name does.
pub fn intrinsic(name: &str) -> Intrinsic {
    if let Some((_, accesses)) = ACCESSES.iter().find(|(start, _)| name.starts_with(start)) {
        return Intrinsic::Accesses(accesses);
    }
    if let Some((_, sides)) = COPIES.iter().find(|(start, _)| name.starts_with(start)) {
        return Intrinsic::Copies(sides);
    }
    if HARMLESS.iter().any(|start| name.starts_with(start)) {
        Intrinsic::Harmless
    } else {
        Intrinsic::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_copies_unless_they_are_by_elements() {
        let copy = Intrinsic::Copies(&[(Kind::Read, 1), (Kind::Write, 0)]);
        assert_eq!(intrinsic("llvm.memcpy.p0.p0.i64"), copy);
        assert_eq!(intrinsic("llvm.memcpy.inline.p0.p0.i64"), copy);
        assert_eq!(intrinsic("llvm.memset.p0.i64"), Intrinsic::Copies(&[(Kind::Write, 0)]));
        let Intrinsic::Accesses([from, to]) = intrinsic("llvm.memcpy.element.unordered.atomic.p0.p0.i32")
        else {
            panic!("two accesses");
        };
        assert_eq!((from.kind, from.pointer), (Kind::Read, 1));
        assert_eq!((to.kind, to.pointer, to.size), (Kind::Write, 0, Size::Length(2)));
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        assert_eq!(intrinsic("llvm.x86.xsave"), Intrinsic::Unknown);
        assert_eq!(intrinsic("llvm.lifetime.start.p0"), Intrinsic::Harmless);
        let Intrinsic::Accesses([store]) = intrinsic("llvm.x86.avx.maskstore.ps.256") else {
            panic!("an access");
        };
        assert_eq!((store.kind, store.mask), (Kind::Write, Some(Mask::Signs(1))));
    }

    #[test]
    fn masks_of_gathers_and_scatters_are_bits_or_numbers() {
        let mask = |name: &str| match intrinsic(name) {
            Intrinsic::Accesses([only]) => Some((only.kind, only.mask)),
            _ => None,
        };
        for (name, kind, of) in [
            ("llvm.x86.avx512.mask.gather.dpi.512", Kind::Read, Mask::Bits),
            ("llvm.x86.avx512.gather.dpi.512", Kind::Read, Mask::Number(3)),
            ("llvm.x86.avx512.gather3siv8.si", Kind::Read, Mask::Number(3)),
            ("llvm.x86.avx512.scatter.qpd.512", Kind::Write, Mask::Number(1)),
            ("llvm.x86.avx512.scattersiv8.si", Kind::Write, Mask::Number(1)),
        ] {
            assert_eq!(mask(name), Some((kind, Some(of))), "{name}");
        }
        assert_eq!(intrinsic("llvm.x86.avx512.gatherpf.dps.512"), Intrinsic::Accesses(&[]));
    }
}
