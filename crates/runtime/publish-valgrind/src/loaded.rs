//! Which memory the dynamic linker has filled with an object file.
#![allow(unsafe_code)]

/// Whether an address lies between the first and the last byte of an object that the dynamic linker has loaded; `None` if the
/// C library cannot tell.
///
/// glibc's `_dl_find_object` (since 2.35) takes no lock: a thread may hold the linker's, and wait for this one.
pub(crate) fn is_loaded(address: u64) -> Option<bool> {
    /// `struct dl_find_object` has 12 words.
    type Answer = [usize; 16];
    let address = usize::try_from(address).ok()?;
    let place = find_object();
    if place == 0 {
        return None;
    }
    // SAFETY: it is the address of the function of this type that the C library declares.
    let find: extern "C" fn(usize, &mut Answer) -> i32 =
        unsafe { std::mem::transmute::<usize, _>(place) };
    Some(find(address, &mut [0; 16]) == 0)
}

/// The address of `_dl_find_object`, or 0: the symbol is weak, and older C libraries and musl lack it.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
fn find_object() -> usize {
    let place: usize;
    // SAFETY: reads the symbol's entry in the global offset table, which the linker makes.
    unsafe {
        std::arch::asm!(
            ".weak _dl_find_object",
            "mov {}, qword ptr [rip + _dl_find_object@GOTPCREL]",
            out(reg) place,
            options(nostack, pure, readonly, preserves_flags),
        );
    }
    place
}

/// The address of `_dl_find_object`, or 0. Like on x86-64.
#[cfg(all(target_arch = "aarch64", target_pointer_width = "64", target_endian = "little"))]
fn find_object() -> usize {
    let place: usize;
    // SAFETY: reads the symbol's entry in the global offset table, which the linker makes.
    unsafe {
        std::arch::asm!(
            ".weak _dl_find_object",
            "adrp {0}, :got:_dl_find_object",
            "ldr {0}, [{0}, :got_lo12:_dl_find_object]",
            out(reg) place,
            options(nostack, pure, readonly, preserves_flags),
        );
    }
    place
}

/// Never called: Valgrind is never found.
#[cfg(not(any(
    all(target_arch = "x86_64", target_pointer_width = "64"),
    all(target_arch = "aarch64", target_pointer_width = "64", target_endian = "little")
)))]
fn find_object() -> usize {
    0
}

#[cfg(test)]
mod tests {
    use super::is_loaded;

    #[test]
    fn the_program_is_loaded_and_its_heap_is_not() {
        let own = is_loaded as fn(u64) -> Option<bool> as usize as u64;
        let heap = Box::new(7_u8);
        let heap = (&raw const *heap).addr() as u64;
        let expected = |is_loaded| cfg!(target_env = "gnu").then_some(is_loaded);
        assert_eq!([is_loaded(own), is_loaded(heap)], [expected(true), expected(false)]);
    }
}
