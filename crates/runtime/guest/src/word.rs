//! Memory that the kernel compares.
#![allow(unsafe_code)]

use std::sync::atomic::AtomicU32;

/// Where the kernel would requeue waiting threads; [`is_word_at`] asks for none.
static REQUEUE_TARGET: AtomicU32 = AtomicU32::new(0);

/// Whether the four bytes at `address` are these, as the kernel reads them. `false` if they are others, and if this is not known:
/// because the address is not divisible by four, nothing can be read there, or the system refuses the call.
///
/// This is one system call, which needs no file and which filters of system calls allow: threads wait by it. It compares a word and
/// then requeues no thread.
#[must_use]
pub fn is_word_at(address: u64, bytes: [u8; 4]) -> bool {
    let Ok(address) = usize::try_from(address) else { return false };
    // SAFETY: the kernel reads the first word, checks the address by itself, and requeues no thread to the second one.
    let requeued = unsafe {
        libc::syscall(
            libc::SYS_futex,
            address,
            libc::FUTEX_CMP_REQUEUE | libc::FUTEX_PRIVATE_FLAG,
            0_usize, // wakes no thread
            0_usize, // requeues none
            REQUEUE_TARGET.as_ptr(),
            u32::from_ne_bytes(bytes),
        )
    };
    requeued == 0
}

#[cfg(test)]
mod tests {
    use super::is_word_at;

    #[test]
    fn only_the_same_bytes_at_a_whole_word_are_found() {
        #[repr(align(8))]
        struct Words([u8; 8]);
        let mut words = Words([1, 2, 3, 4, 5, 6, 7, 8]);
        let at = words.0.as_ptr().addr() as u64;
        assert!(is_word_at(at, [1, 2, 3, 4]));
        assert!(is_word_at(at + 4, [5, 6, 7, 8]));
        assert!(!is_word_at(at + 1, [2, 3, 4, 5]), "no word");
        words.0[3] = 0xcc;
        std::hint::black_box(&words);
        assert!(!is_word_at(at, [1, 2, 3, 4]));
        assert!(is_word_at(at, [1, 2, 3, 0xcc]));
        let code = (is_word_at as *const ()).addr() as u64 & !3;
        assert!(!is_word_at(code, [0; 4]), "code that may only be read and executed");
        assert!(!is_word_at(0, [0; 4]), "nothing is mapped there");
        assert!(!is_word_at(u64::MAX - 3, [0; 4]), "an address of the kernel");
    }
}
