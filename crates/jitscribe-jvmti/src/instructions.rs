//! The machine code of a compiled method, copied.
#![allow(unsafe_code, reason = "the JVM passes code by its address")]

/// What lies at `address` now.
///
/// # Safety
/// So many bytes may be read there.
pub(crate) unsafe fn copy(address: u64, size: u32) -> Vec<u8> {
    let first = std::ptr::with_exposed_provenance::<u8>(address as usize);
    let size = size as usize;
    let mut bytes = Vec::with_capacity(size);
    // By volatile reads and never as a slice: HotSpot may patch a call meanwhile.
    // SAFETY: as required above; whatever the bytes are when they are read, they are bytes.
    unsafe {
        let words = size / 8;
        for word in 0..words {
            let word = first.add(word * 8).cast::<[u8; 8]>().read_volatile();
            bytes.extend_from_slice(&word);
        }
        for byte in words * 8..size {
            bytes.push(first.add(byte).read_volatile());
        }
    }
    bytes
}
