//! Functions that node exports. They are looked up, not linked: with a node that lacks one, the addon says so.
#![allow(unsafe_code, reason = "the dynamic linker's interface")]

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::ptr::NonNull;

/// The address of a function that the program or one of its libraries exports.
pub(crate) fn find(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: a C string; the lookup has no requirements.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
}

/// The executable segments of the program and its libraries. (`dladdr` searches through all symbols of node.)
pub(crate) fn segments() -> Vec<Range<u64>> {
    let mut segments = Vec::new();
    // SAFETY: the function gets what it expects, and is called until this returns.
    unsafe { libc::dl_iterate_phdr(Some(add_segments), (&raw mut segments).cast()) };
    segments
}

unsafe extern "C" fn add_segments(
    object: *mut libc::dl_phdr_info,
    _size: usize,
    segments: *mut c_void,
) -> c_int {
    // SAFETY: the linker passes a description, and the vector above, which nothing else uses now.
    let (object, segments) = unsafe { (&*object, &mut *segments.cast::<Vec<Range<u64>>>()) };
    for number in 0..usize::from(object.dlpi_phnum) {
        // SAFETY: there are as many headers.
        let header = unsafe { &*object.dlpi_phdr.add(number) };
        if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0 {
            #[allow(clippy::useless_conversion, reason = "smaller numbers on other processors")]
            let (base, at, size) =
                (u64::from(object.dlpi_addr), u64::from(header.p_vaddr), u64::from(header.p_memsz));
            let begin = base.wrapping_add(at);
            segments.push(begin..begin.saturating_add(size));
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_libraries_is_in_a_segment() {
        let own: fn() -> Vec<Range<u64>> = segments;
        let segments = own();
        for code in [own as usize, find(c"getpid").expect("of the C library").addr().get()] {
            assert!(segments.iter().any(|segment| segment.contains(&(code as u64))));
        }
        let data = (&raw const own).addr() as u64;
        assert!(!segments.iter().any(|segment| segment.contains(&data)));
        assert!(find(c"no_such_function_of_ours").is_none());
    }
}
