//! Copies the machine code of a compiled method.
#![allow(unsafe_code, reason = "the JVM passes code by its address")]

/// Replaces the content of `bytes` by the `size` bytes at `address`.
///
/// # Safety
/// `size` bytes are readable there.
pub(crate) unsafe fn copy(address: u64, size: u32, bytes: &mut Vec<u8>) {
    let first = std::ptr::with_exposed_provenance::<u8>(address as usize);
    let size = size as usize;
    // Compiled methods are aligned.
    let words = if first.cast::<u64>().is_aligned() { size / 8 } else { 0 };
    bytes.clear();
    bytes.reserve(size);
    let room = bytes.spare_capacity_mut().as_mut_ptr().cast::<u8>();
    // Volatile reads, never a slice: HotSpot may patch a call at the same time.
    // SAFETY: as required above, the memory is readable; words are only read where they are aligned; any values are valid
    // bytes. There is space for all of them, and all are written before the length is set.
    unsafe {
        for word in 0..words {
            let value = first.cast::<u64>().add(word).read_volatile();
            room.cast::<u64>().add(word).write_unaligned(value);
        }
        for byte in words * 8..size {
            room.add(byte).write(first.add(byte).read_volatile());
        }
        bytes.set_len(size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_is_copied_wherever_it_lies() {
        let code: Vec<u8> = (0..100).collect();
        let mut copied = vec![0xcc; 3];
        for part in (0..code.len()).flat_map(|from| [&code[from..], &code[..from]]) {
            // SAFETY: it is a slice.
            unsafe {
                copy(part.as_ptr().expose_provenance() as u64, part.len() as u32, &mut copied)
            };
            assert_eq!(copied, part);
        }
    }
}
