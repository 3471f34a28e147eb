//! Reading a map while it is written: each line as soon as it is complete.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

use crate::Error;
use crate::read::{Entry, entries};

/// Longer lines are skipped: no name is that long, and a line that is not read must not be held.
const LONGEST: usize = 1 << 16;

/// A map that is read while it is written.
///
/// ```
/// let mut map = perf_map::Growing::default();
/// let mut names = Vec::new();
/// for piece in [&b"7f00 40 fi"[..], b"b\n7f40 20 fa", b"ct\n"] {
///     map.take(piece, |entry| names.extend(entry.map(|entry| entry.name.to_vec())));
/// }
/// assert_eq!(names, [b"fib".to_vec(), b"fact".to_vec()]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Growing {
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
    /// Whether that line is too long to be read.
    is_too_long: bool,
    /// `offset` is that of the next byte; `lines` is the number of lines before the one that contains it.
    offset: u64,
    lines: u64,
}

impl Growing {
    /// Reserves space for the bytes of `new` that are kept, so that [taking](Self::take) them does not abort the
    /// process when memory is exhausted.
    ///
    /// # Errors
    /// The allocation was refused; nothing has changed.
    pub fn try_reserve(&mut self, new: &[u8]) -> Result<(), TryReserveError> {
        let is_end = |byte: &u8| *byte == b'\n';
        let ending = new.iter().position(is_end).unwrap_or(new.len());
        let partial = new.iter().rev().position(is_end).unwrap_or(0);
        // No more than this is kept.
        self.partial.try_reserve(ending.saturating_add(1).max(partial).min(LONGEST))
    }

    /// Takes the bytes that come next in the file, and passes each line that they complete to `each`.
    pub fn take(&mut self, new: &[u8], mut each: impl FnMut(Result<Entry<'_>, Error>)) {
        let Some(last) = new.iter().rposition(|&byte| byte == b'\n') else {
            return self.keep(new);
        };
        let first = new.iter().position(|&byte| byte == b'\n').unwrap_or(last);
        let (ending, rest) = split_behind(new, first);
        self.keep(ending);
        self.end(&mut each);
        let (whole, partial) = split_behind(rest, last.wrapping_sub(first).wrapping_sub(1));
        if last > first {
            let (offset, lines) = (self.offset, self.lines);
            entries(whole).for_each(|entry| each(placed(entry, offset, lines)));
            let ends = whole.iter().filter(|&&byte| byte == b'\n').count();
            self.pass_on(whole.len(), ends);
        }
        self.keep(partial);
    }

    /// Ends the map: a last line without a newline is passed on as it is.
    pub fn finish(&mut self, mut each: impl FnMut(Result<Entry<'_>, Error>)) {
        self.end(&mut each);
    }

    /// Passes on the line that is held.
    fn end(&mut self, each: &mut impl FnMut(Result<Entry<'_>, Error>)) {
        let length = u64::try_from(self.partial.len()).unwrap_or(u64::MAX);
        let begun = self.offset.saturating_sub(length);
        if !self.is_too_long {
            let lines = self.lines;
            entries(&self.partial).for_each(|entry| each(placed(entry, begun, lines)));
        }
        self.lines = self.lines.saturating_add(1);
        self.partial.clear();
        self.is_too_long = false;
    }

    fn keep(&mut self, part: &[u8]) {
        self.is_too_long |= self.partial.len().saturating_add(part.len()) > LONGEST;
        if self.is_too_long {
            self.partial.clear();
        } else {
            self.partial.extend_from_slice(part);
        }
        self.pass_on(part.len(), 0);
    }

    fn pass_on(&mut self, bytes: usize, lines: usize) {
        let wide = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        self.offset = self.offset.saturating_add(wide(bytes));
        self.lines = self.lines.saturating_add(wide(lines));
    }
}

/// Adjusts the position in an entry or error from a part of the file to the whole file.
fn placed(entry: Result<Entry<'_>, Error>, offset: u64, lines: u64) -> Result<Entry<'_>, Error> {
    let moved = |at: u64, line: u64| (at.saturating_add(offset), line.saturating_add(lines));
    match entry {
        Ok(mut entry) => {
            (entry.offset, entry.line) = moved(entry.offset, entry.line);
            Ok(entry)
        }
        Err(mut error) => {
            (error.offset, error.line) = moved(error.offset, error.line);
            Err(error)
        }
    }
}

/// Splits behind the byte at `at`; the second part is empty if there is no such byte.
fn split_behind(bytes: &[u8], at: usize) -> (&[u8], &[u8]) {
    bytes.split_at_checked(at.wrapping_add(1)).unwrap_or((bytes, &[]))
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use proptest::prelude::*;

    use super::*;

    fn grown(map: &[u8], cuts: &[usize]) -> Vec<String> {
        let mut growing = Growing::default();
        let mut entries = Vec::new();
        let mut from = 0;
        for &cut in cuts {
            let cut = cut.clamp(from, map.len());
            growing.take(&map[from..cut], |entry| entries.push(format!("{entry:?}")));
            from = cut;
        }
        growing.take(&map[from..], |entry| entries.push(format!("{entry:?}")));
        growing.finish(|entry| entries.push(format!("{entry:?}")));
        entries
    }

    #[test]
    fn a_line_without_an_end_is_not_held() {
        let mut growing = Growing::default();
        for _ in 0..100 {
            growing.take(&[b'a'; 4096], |_| panic!("no line has ended"));
        }
        assert!(growing.partial.capacity() <= 2 * LONGEST);
        let mut names = Vec::new();
        growing.take(b"\n1 2 c\n", |entry| names.push(entry.unwrap().name.to_vec()));
        assert_eq!(names, [b"c"]);
    }

    proptest! {
        #[test]
        fn pieces_yield_the_same_as_the_whole(
            map in "([0-9a-f]{1,12} [0-9a-f]{1,3} [a-z :]{0,9}\r?\n|x y\n|\n| ){0,12}",
            cuts in prop::collection::vec(0usize..200, 0..20),
        ) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let whole: Vec<String> =
                entries(map.as_bytes()).map(|entry| format!("{entry:?}")).collect();
            prop_assert_eq!(grown(map.as_bytes(), &cuts), whole);
        }
    }
}
