//! The bytes of a region's pages.

use fallible::Vec;

use crate::window::PAGE;

const SIZE: usize = PAGE as usize;

/// Whole pages. Each has an allocation of its own, so that adding pages at either end leaves the others where they are. It holds
/// the bytes up to the last one that was set; behind them are zeros.
#[derive(Debug, Default)]
pub(crate) struct Text {
    start: u64,
    pages: Vec<Vec<u8>>,
}

impl Text {
    /// Pages of zeros.
    pub(crate) fn new(start: u64, end: u64) -> Self {
        let mut text = Self { start, pages: Vec::new() };
        text.extend(start, end);
        text
    }

    fn end(&self) -> u64 {
        self.start + self.len()
    }

    /// Number of bytes.
    pub(crate) fn len(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }

    /// Adds pages of zeros before and behind the others.
    pub(crate) fn extend(&mut self, start: u64, end: u64) {
        let before = (self.start.saturating_sub(start) / PAGE) as usize;
        let behind = (end.saturating_sub(self.end()) / PAGE) as usize;
        for _ in 0..before + behind {
            self.pages.push(Vec::new());
        }
        // If an allocation failed, the text is not used any more.
        let before = before.min(self.pages.len());
        self.pages.rotate_right(before);
        self.start = self.start.min(start);
    }

    /// Sets bytes; those outside of the pages are ignored.
    pub(crate) fn put(&mut self, address: u64, mut bytes: &[u8]) {
        let Some(at) = address.checked_sub(self.start) else { return };
        let (mut page, mut from) = ((at / PAGE) as usize, (at % PAGE) as usize);
        while let Some(place) = self.pages.get_mut(page) {
            let (now, later) = bytes.split_at(bytes.len().min(SIZE - from));
            let end = from + now.len();
            if place.len() < end {
                place.reserve_exact(SIZE - place.len());
                place.resize(end, 0);
            }
            if let Some(place) = place.get_mut(from..end) {
                place.copy_from_slice(now);
            }
            if later.is_empty() {
                return;
            }
            (page, from, bytes) = (page + 1, 0, later);
        }
    }

    /// Takes over the bytes of another text that lies in this one.
    pub(crate) fn absorb(&mut self, other: &Self) {
        let mut at = other.start;
        for page in &other.pages {
            self.put(at, page);
            at += PAGE;
        }
    }

    /// A copy of some of the pages.
    pub(crate) fn part(&self, start: u64, end: u64) -> Self {
        let before = (start.saturating_sub(self.start) / PAGE) as usize;
        let count = (end.saturating_sub(start) / PAGE) as usize;
        let pages = self.pages.iter().skip(before).take(count).map(|page| Vec::from(&**page));
        Self { start, pages: pages.collect() }
    }

    /// The pages, in two pieces each.
    pub(crate) fn pages(&self) -> impl Iterator<Item = [&[u8]; 2]> {
        static ZEROS: [u8; SIZE] = [0; SIZE];
        self.pages.iter().map(|page| [page, ZEROS.get(page.len()..).unwrap_or_default()])
    }
}

#[cfg(test)]
mod tests {
    use super::{PAGE, Text};

    fn bytes(text: &Text) -> Vec<u8> {
        text.pages().flatten().flatten().copied().collect()
    }

    #[test]
    fn pages_are_added_at_both_ends() {
        let at = |page: u64| page * PAGE;
        let mut text = Text::new(at(10), at(11));
        text.put(at(10) + 1, &[1; PAGE as usize - 1]);
        text.extend(at(8), at(13));
        assert_eq!(text.len(), at(5));
        text.put(at(9) - 1, &[2; PAGE as usize + 2]);
        text.put(at(7), &[9; 8]);
        text.put(at(13) - 1, &[3, 9]);
        let expected = |offset: u64| match offset {
            offset if (at(1) - 1..at(2) + 1).contains(&offset) => 2,
            offset if (at(2) + 1..at(3)).contains(&offset) => 1,
            offset if offset == at(5) - 1 => 3,
            _ => 0,
        };
        let expected: Vec<u8> = (0..at(5)).map(expected).collect();
        assert_eq!(bytes(&text), expected);
        let part = text.part(at(9), at(11));
        assert_eq!(bytes(&part), expected[at(1) as usize..at(3) as usize]);
        let mut whole = Text::new(at(8), at(13));
        whole.absorb(&part);
        assert_eq!(bytes(&whole)[at(1) as usize..at(3) as usize], bytes(&part));
        assert!(bytes(&whole)[at(3) as usize..].iter().all(|byte| *byte == 0));
    }
}
