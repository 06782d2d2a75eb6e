//! The program's image in memory: where its code and statics are, and its thread-local block.

use std::ffi::{c_int, c_void};
use std::ops::Range;

/// See the module's documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// What was added to the addresses in the executable.
    bias: usize,
    /// The addresses that it takes.
    range: Range<usize>,
    /// Those of its statics that can change.
    statics: Vec<Range<usize>>,
    /// How many bytes just below the thread pointer are the program's thread-local variables.
    thread_locals: usize,
}

impl Image {
    /// The image of this program.
    pub fn of_program() -> Image {
        // Begins empty, and grows.
        let range = Range { start: usize::MAX, end: 0 };
        let mut image = Image { bias: 0, range, statics: Vec::new(), thread_locals: 0 };
        // SAFETY: the callback gets the pointer it is given here, while `image` is alive.
        unsafe { libc::dl_iterate_phdr(Some(first_object), (&raw mut image).cast()) };
        image
    }

    /// The address in the image whose low half this is.
    pub fn address(&self, low: u32) -> usize {
        let candidate = (self.range.start & !0xffff_ffff) | low as usize;
        if candidate < self.range.start { candidate.wrapping_add(1 << 32) } else { candidate }
    }

    /// The address as it is in the executable, if it is in the image.
    pub fn relative(&self, address: usize) -> Option<u64> {
        self.range.contains(&address).then(|| (address - self.bias) as u64)
    }

    /// The program's statics, without those that never change.
    pub fn statics(&self) -> Vec<Range<usize>> {
        self.statics.clone()
    }

    /// Are all of these bytes in its statics?
    pub fn holds(&self, start: usize, size: usize) -> bool {
        let end = start.saturating_add(size);
        self.statics.iter().any(|statics| statics.start <= start && end <= statics.end)
    }

    /// The program's thread-local variables of a thread.
    pub fn thread_locals(&self, thread: usize) -> Range<usize> {
        thread - self.thread_locals..thread
    }
}

/// The first object that the loader lists is the program itself.
unsafe extern "C" fn first_object(info: *mut libc::dl_phdr_info, _: usize, image: *mut c_void) -> c_int {
    // SAFETY: the loader's description of a loaded object, and the image of `of_program`.
    let (info, image) = unsafe { (&*info, &mut *image.cast::<Image>()) };
    // SAFETY: the program headers that the description points to.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    image.bias = info.dlpi_addr as usize;
    for header in headers {
        let start = image.bias + header.p_vaddr as usize;
        match header.p_type {
            libc::PT_LOAD => {
                image.range.start = image.range.start.min(start);
                image.range.end = image.range.end.max(start + header.p_memsz as usize);
                if header.p_flags & libc::PF_W != 0 {
                    image.statics.push(start..start + header.p_memsz as usize);
                }
            }
            libc::PT_TLS => {
                let align = (header.p_align as usize).max(1);
                image.thread_locals = (header.p_memsz as usize).next_multiple_of(align);
            }
            _ => {}
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::atomic::AtomicU8;

    static WORD: u8 = 1;
    static CHANGES: AtomicU8 = AtomicU8::new(1);
    thread_local!(static LOCAL: Cell<u64> = const { Cell::new(7) });

    #[test]
    fn statics_are_in_the_image_and_thread_locals_below_the_thread_pointer() {
        let image = Image::of_program();
        let address = &raw const WORD as usize;
        assert!(image.relative(address).is_some());
        assert_eq!(image.address(address as u32), address);
        assert_eq!(image.relative(&raw const image as usize), None);
        let changes = &raw const CHANGES as usize;
        assert!(image.statics().iter().any(|statics| statics.contains(&changes)));
        let local = LOCAL.with(|local| &raw const *local as usize);
        assert!(image.thread_locals(crate::state::this_thread()).contains(&local));
    }

    #[test]
    fn the_upper_half_of_an_address_is_found_on_both_sides_of_a_border() {
        let image =
            Image { bias: 0, range: 0x5_ffff_f000..0x6_0000_1000, statics: Vec::new(), thread_locals: 0 };
        assert_eq!(image.address(0xffff_f800), 0x5_ffff_f800);
        assert_eq!(image.address(0x800), 0x6_0000_0800);
    }
}
