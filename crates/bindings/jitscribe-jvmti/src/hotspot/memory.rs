//! Copies memory of this process that another thread may free at any time.
#![allow(unsafe_code, reason = "a system call with addresses")]

use std::ptr;

/// The kernel accepts this many ranges at a time (`UIO_MAXIOV`).
const RANGES: usize = 1024;

/// Copies these ranges, each an address and a length, one behind the other to the end of `into`. `None` if any of them is not
/// readable, or if this process may not make the system call.
pub(crate) fn copy(
    ranges: impl IntoIterator<Item = (usize, usize)>,
    into: &mut Vec<u8>,
) -> Option<()> {
    let mut ranges = ranges.into_iter().filter(|(_, size)| *size > 0).map(|(address, size)| {
        libc::iovec { iov_base: ptr::without_provenance_mut(address), iov_len: size }
    });
    loop {
        let some: Vec<libc::iovec> = ranges.by_ref().take(RANGES).collect();
        if some.is_empty() {
            return Some(());
        }
        let total = some.iter().try_fold(0_usize, |sum, range| sum.checked_add(range.iov_len))?;
        let behind = into.len();
        into.try_reserve(total).ok()?;
        into.resize(behind + total, 0);
        let place = into[behind..].as_mut_ptr();
        let local = libc::iovec { iov_base: place.cast(), iov_len: total };
        // SAFETY: the kernel writes at most `total` bytes to `local`, which has that many. It checks the other addresses itself,
        // as if they were another process's.
        let copied = unsafe {
            let own = libc::getpid();
            libc::process_vm_readv(own, &raw const local, 1, some.as_ptr(), some.len() as u64, 0)
        };
        if usize::try_from(copied) != Ok(total) {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_copied_unless_one_is_not_there() {
        let text = *b"hello, world";
        let at = text.as_ptr().addr();
        let mut copied = b">".to_vec();
        assert_eq!(copy([(at + 7, 5), (at, 0), (at, 1)], &mut copied), Some(()));
        assert_eq!(copied, b">worldh");
        let each: Vec<_> = (0..5000).map(|index| (at + index % 12, 1)).collect();
        let mut copied = Vec::new();
        assert_eq!(copy(each, &mut copied), Some(()));
        assert_eq!(&copied[4_992..], &text[..8]);
        assert_eq!(copy([(at, 1), (8, 1)], &mut copied), None);
        assert_eq!(copy([(at, 1), (usize::MAX, 1)], &mut copied), None);
        assert_eq!(copy([(at, usize::MAX), (at, 9)], &mut copied), None);
    }
}
