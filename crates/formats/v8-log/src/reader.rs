//! Reads a log line by line.

use std::io::{self, BufRead};

use crate::{Cause, Error, Event};

/// The most bytes of a line, which is held in memory. The longest lines are the sources of scripts, in which a character
/// takes up to six bytes: bundles of 10 MB are below the limit.
pub const LONGEST_LINE: usize = 1 << 26;

/// Reads the events of a log. It holds one line.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    line: Vec<u8>,
    /// Offset behind the lines read so far.
    offset: u64,
    /// Number of lines read so far.
    count: u64,
}

/// An event, and its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Offset of the line's first byte in the file.
    pub offset: u64,
    /// The length of the line in bytes, without its newline.
    pub len: usize,
    /// The event, or why it could not be read.
    pub event: Result<Event<'a>, Error>,
}

/// How a line ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Newline,
    CutOff,
    TooLong,
}

impl<R: BufRead> Reader<R> {
    /// Reads a log from its beginning.
    pub fn new(input: R) -> Self {
        Self { input, line: Vec::new(), offset: 0, count: 0 }
    }

    /// The next event, or the next line that cannot be read; `None` at the end of the file. Lines with other events are
    /// skipped.
    ///
    /// # Errors
    /// If reading fails.
    pub fn next_event(&mut self) -> io::Result<Option<Entry<'_>>> {
        loop {
            let (offset, ended) = match self.next_line()? {
                Some(next) => next,
                None => return Ok(None),
            };
            let cause = match (ended, Event::parse(&self.line)) {
                (Ended::Newline, Ok(None)) => continue,
                (Ended::Newline, Ok(Some(_))) => None,
                (Ended::Newline, Err(cause)) => Some(cause),
                (Ended::CutOff, _) => Some(Cause::CutOff),
                (Ended::TooLong, _) => Some(Cause::TooLong),
            };
            let (line, len) = (self.count, self.line.len());
            // Parsed again, as a borrow that is returned cannot end in the loop.
            let event = match (cause, Event::parse(&self.line)) {
                (None, Ok(Some(event))) => Ok(event),
                (Some(cause), _) | (None, Err(cause)) => Err(Error { offset, line, cause }),
                (None, Ok(None)) => return Ok(None),
            };
            return Ok(Some(Entry { offset, len, event }));
        }
    }

    /// Reads the next line into `line`. Returns its offset, and how it ended; `None` at the end of the file.
    fn next_line(&mut self) -> io::Result<Option<(u64, Ended)>> {
        self.line.clear();
        // A single large line should not take memory for the rest of the file.
        self.line.shrink_to(1 << 20);
        let offset = self.offset;
        let mut is_too_long = false;
        loop {
            let part = match self.input.fill_buf() {
                Ok(part) => part,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if part.is_empty() {
                if self.offset == offset {
                    return Ok(None);
                }
                self.count = self.count.saturating_add(1);
                return Ok(Some((
                    offset,
                    if is_too_long { Ended::TooLong } else { Ended::CutOff },
                )));
            }
            let newline = part.iter().position(|byte| *byte == b'\n');
            let text = newline.and_then(|at| part.get(..at)).unwrap_or(part);
            is_too_long |= self.line.len().saturating_add(text.len()) > LONGEST_LINE;
            if !is_too_long {
                self.line.extend_from_slice(text);
            }
            let taken = text.len().saturating_add(usize::from(newline.is_some()));
            self.input.consume(taken);
            let taken = u64::try_from(taken).unwrap_or(u64::MAX);
            self.offset = self.offset.saturating_add(taken);
            if newline.is_some() {
                self.count = self.count.saturating_add(1);
                let ended = if is_too_long { Ended::TooLong } else { Ended::Newline };
                return Ok(Some((offset, ended)));
            }
        }
    }
}
