//! A profile line by line, with memory use independent of its size.

use std::io::Read;

use crate::error::{Cause, Error};

/// A line as it is in the file, without its line end.
#[derive(Debug, Clone, Copy)]
pub struct Raw<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// Its number, from 1.
    pub number: u64,
}

impl Raw<'_> {
    /// Creates errors for this line, for use with `map_err`.
    pub fn damaged(&self) -> impl Fn(Cause) -> Error + use<> {
        let (offset, line) = (self.offset, self.number);
        move |cause| Error::Damaged { offset, line, cause }
    }
}

/// How much is read at a time.
const STEP: usize = 1 << 18;
/// Maximum length of a line.
const LONGEST: usize = 16 << 20;

/// The lines of a profile.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    /// The part of the buffer that was read but not returned yet.
    start: usize,
    end: usize,
    /// How much of that part is known to have no line end in it.
    searched: usize,
    offset: u64,
    number: u64,
    at_end: bool,
    cut_off: bool,
}

impl<R: Read> Lines<R> {
    /// The lines of `input`.
    pub fn new(input: R) -> Self {
        Self {
            input,
            buffer: vec![0; STEP],
            start: 0,
            end: 0,
            searched: 0,
            offset: 0,
            number: 0,
            at_end: false,
            cut_off: false,
        }
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Read`]; [`Error::Damaged`] for a line of more than 16 MiB.
    pub fn next_line(&mut self) -> Result<Option<Raw<'_>>, Error> {
        let (length, end) = loop {
            let waiting = self.buffer.get(self.start..self.end).unwrap_or_default();
            let found = memchr::memchr(b'\n', waiting.get(self.searched..).unwrap_or_default());
            if let Some(found) = found {
                let length = self.searched.saturating_add(found);
                break (length, length.saturating_add(1));
            }
            self.searched = waiting.len();
            if self.at_end {
                if waiting.is_empty() {
                    return Ok(None);
                }
                self.cut_off = true;
                break (waiting.len(), waiting.len());
            }
            self.fill()?;
        };
        let from = self.start;
        let raw = Raw {
            bytes: self.buffer.get(from..from.saturating_add(length)).unwrap_or_default(),
            offset: self.offset,
            number: self.number.saturating_add(1),
        };
        self.start = from.saturating_add(end);
        self.searched = 0;
        self.offset = self.offset.saturating_add(end as u64);
        self.number = raw.number;
        let bytes = raw.bytes.strip_suffix(b"\r").unwrap_or(raw.bytes);
        Ok(Some(Raw { bytes, ..raw }))
    }

    /// The bytes in memory of the lines to come. The last line may be incomplete.
    pub(crate) fn waiting(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Skips the first `bytes` of what is [waiting](Self::waiting), which were `lines` complete lines.
    pub(crate) fn skip(&mut self, bytes: usize, lines: u64) {
        self.start = self.start.saturating_add(bytes).min(self.end);
        self.searched = 0;
        self.offset = self.offset.saturating_add(bytes as u64);
        self.number = self.number.saturating_add(lines);
    }

    /// Whether the last line had no line end.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    fn fill(&mut self) -> Result<(), Error> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end = self.end.saturating_sub(self.start);
        self.start = 0;
        if self.buffer.len().saturating_sub(self.end) < STEP / 2 {
            if self.end > LONGEST {
                let (offset, line) = (self.offset, self.number.saturating_add(1));
                return Err(Error::Damaged { offset, line, cause: Cause::TooLong });
            }
            self.buffer.resize(self.buffer.len().saturating_mul(2), 0);
        }
        let space = self.buffer.get_mut(self.end..).unwrap_or_default();
        loop {
            match self.input.read(space) {
                Ok(0) => self.at_end = true,
                Ok(count) => self.end = self.end.saturating_add(count),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::Read(error)),
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a few bytes at a time.
    struct FewBytes<'a>(&'a [u8]);

    impl Read for FewBytes<'_> {
        fn read(&mut self, space: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.len().min(space.len()).min(3);
            let (now, later) = self.0.split_at(count);
            space[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    proptest! {
        #[test]
        fn lines_are_those_between_the_ends(text in "[a\n]{0,60}") {
            let mut lines = Lines::new(FewBytes(text.as_bytes()));
            let mut offset = 0;
            for (number, expected) in (1..).zip(text.lines()) {
                let raw = lines.next_line().expect("no error").expect("a line");
                prop_assert_eq!(raw.bytes, expected.as_bytes());
                prop_assert_eq!((raw.number, raw.offset), (number, offset));
                offset += expected.len() as u64 + 1;
            }
            prop_assert!(lines.next_line().expect("no error").is_none());
            prop_assert_eq!(lines.is_cut_off(), !text.is_empty() && !text.ends_with('\n'));
        }
    }

    #[test]
    fn a_line_may_be_long_but_not_endless() {
        let mut text = vec![b'a'; 3 * STEP];
        text.push(b'\n');
        let mut lines = Lines::new(&*text);
        assert_eq!(lines.next_line().expect("no error").expect("a line").bytes.len(), 3 * STEP);
        let mut endless = Lines::new(std::io::repeat(b'a'));
        let error = endless.next_line().expect_err("too long");
        assert!(matches!(error, Error::Damaged { cause: Cause::TooLong, .. }), "{error}");
    }
}
