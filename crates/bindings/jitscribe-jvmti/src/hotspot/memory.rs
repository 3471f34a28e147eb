//! Copies of memory of this process that other threads may free at any time.
#![allow(unsafe_code, reason = "a system call with addresses")]

use std::collections::HashMap;
use std::ptr;

use rustc_hash::FxBuildHasher;

/// The unit of copies: smaller than or equal to the processor's pages, so that all of it can be read, or nothing.
const PAGE: usize = 4096;

/// Number of pages that are copied at a time, as what HotSpot allocates together lies together.
const AHEAD: usize = 4;

/// Number of pages that are kept.
const KEPT: usize = 1024;

/// Copies of pages, each as of when it was read last.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    /// By page number: where the copy is, and the number of the read that made it.
    places: HashMap<usize, (usize, u64), FxBuildHasher>,
    copies: Vec<u8>,
    /// The number of the last read.
    last: u64,
    /// Copies that are older than this read are made again.
    since: u64,
}

impl Pages {
    /// From now on, memory counts as it was when what is at `address` was read, or later: so that what is found there leads to memory that was written by
    /// then. Without this, a structure that is new could be read from a copy that is older than the structure.
    pub(crate) fn as_new_as(&mut self, address: usize) {
        self.since = self.places.get(&(address / PAGE)).map_or(0, |(_, read)| *read);
    }

    /// Appends `size` bytes at an address to `into`. `None` if they are not readable, or if this process may not make the
    /// system call.
    pub(crate) fn append(&mut self, address: usize, size: usize, into: &mut Vec<u8>) -> Option<()> {
        let end = address.checked_add(size)?;
        let mut at = address;
        while at < end {
            let page = self.page(at / PAGE)?;
            let begin = at % PAGE;
            let part = page.get(begin..PAGE.min(begin + (end - at)))?;
            into.extend_from_slice(part);
            at += part.len();
        }
        Some(())
    }

    /// The number at an address, of up to eight bytes.
    pub(crate) fn number(&mut self, address: usize, size: usize) -> Option<usize> {
        let begin = address % PAGE;
        let here = self.page(address / PAGE)?;
        if let Some(bytes) = here.get(begin..begin + size) {
            return Some(number(bytes));
        }
        let mut bytes = Vec::with_capacity(size);
        self.append(address, size, &mut bytes)?;
        Some(number(&bytes))
    }

    fn page(&mut self, page: usize) -> Option<&[u8]> {
        if self.places.get(&page).is_none_or(|(_, read)| *read < self.since) {
            self.copy(page)?;
        }
        let (place, _) = *self.places.get(&page)?;
        self.copies.get(place..place + PAGE)
    }

    /// Copies a page, and those behind it that are there.
    fn copy(&mut self, page: usize) -> Option<()> {
        if self.copies.len() >= KEPT * PAGE {
            self.places.clear();
            self.copies.clear();
        }
        self.last += 1;
        let behind = self.copies.len();
        self.copies.try_reserve(AHEAD * PAGE).ok()?;
        self.copies.resize(behind + AHEAD * PAGE, 0);
        let (from, size) = (ptr::without_provenance_mut(page.checked_mul(PAGE)?), AHEAD * PAGE);
        let to = self.copies[behind..].as_mut_ptr().cast();
        let [to, from] = [to, from].map(|iov_base| libc::iovec { iov_base, iov_len: size });
        // SAFETY: the kernel writes at most `size` bytes to `to`, which has that many. It checks the other addresses itself, as if
        // they were another process's, and copies up to the first page that is not there.
        let copied = unsafe {
            libc::process_vm_readv(libc::getpid(), &raw const to, 1, &raw const from, 1, 0)
        };
        let copied = usize::try_from(copied).unwrap_or(0) / PAGE;
        self.copies.truncate(behind + copied * PAGE);
        for index in 0..copied {
            // A copy that is new enough stays: what was read from it is valid together.
            let copy = (behind + index * PAGE, self.last);
            let kept = self.places.entry(page + index).or_insert(copy);
            if kept.1 < self.since {
                *kept = copy;
            }
        }
        (copied > 0).then_some(())
    }
}

/// A number, as the processor stores it.
fn number(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_copied_unless_it_is_not_there() {
        let text: Vec<u8> = (0..40 * PAGE).map(|index| (index / 7) as u8).collect();
        let at = text.as_ptr().addr();
        let mut pages = Pages::default();
        for (begin, size) in [(0, 1), (PAGE - 3, 9), (5, 30 * PAGE), (40 * PAGE - 1, 1), (7, 0)] {
            let mut copied = b">".to_vec();
            assert_eq!(pages.append(at + begin, size, &mut copied), Some(()));
            assert_eq!(copied[1..], text[begin..begin + size]);
        }
        for begin in 0..2 * PAGE {
            let number = u32::from_le_bytes(*text[begin..].first_chunk().unwrap());
            assert_eq!(pages.number(at + begin, 4), Some(number as usize));
        }
        assert_eq!(pages.number(8, 8), None);
        assert_eq!(pages.number(usize::MAX - 3, 8), None);
        assert_eq!(pages.append(at, usize::MAX, &mut Vec::new()), None);
    }

    #[test]
    fn copies_are_as_new_as_what_led_to_them() {
        let mut text = vec![1_u8; 40 * PAGE];
        let at = text.as_ptr().expose_provenance();
        let mut pages = Pages::default();
        assert_eq!(pages.number(at, 1), Some(1));
        text.fill(2);
        let (near, far) = (at + 1, at + 20 * PAGE);
        assert_eq!([near, far].map(|at| pages.number(at, 1)), [Some(1), Some(2)]);
        pages.as_new_as(far);
        assert_eq!(pages.number(near, 1), Some(2));
        text.fill(3);
        // What is new enough is not read again.
        assert_eq!([near, far].map(|at| pages.number(at, 1)), [Some(2), Some(2)]);
        pages.as_new_as(at + 39 * PAGE);
        assert_eq!(pages.number(at, 1), Some(2));
        std::hint::black_box(&text);
    }

    #[test]
    fn few_pages_are_kept() {
        let text = vec![1; 3 * KEPT * PAGE];
        let mut pages = Pages::default();
        let mut copied = Vec::new();
        assert_eq!(pages.append(text.as_ptr().addr(), text.len(), &mut copied), Some(()));
        assert!(copied == text && pages.copies.len() <= (KEPT + AHEAD) * PAGE);
    }
}
