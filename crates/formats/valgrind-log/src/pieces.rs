//! Reads a file in pieces that end with a given byte.

use std::io::{self, BufRead, Read};

use crate::Error;

/// A longer piece is returned in parts: nothing that long is of interest.
const LONGEST: usize = 1 << 16;

/// Reads pieces into a buffer that is reused.
#[derive(Debug)]
pub struct Pieces<R> {
    input: R,
    piece: Vec<u8>,
    end: u8,
    /// Whether the previous piece was complete.
    fresh: bool,
}

/// A piece of a file.
#[derive(Debug)]
pub struct Piece<'a> {
    /// Its bytes, including the end byte. Only the last piece of a file, and parts, may lack it.
    pub bytes: &'a [u8],
    /// Whether it is part of a piece that is too long.
    pub part: bool,
}

impl<R: BufRead> Pieces<R> {
    /// Creates a reader of pieces that end with `end`.
    pub fn new(input: R, end: u8) -> Self {
        Self { input, piece: Vec::new(), end, fresh: true }
    }

    /// The next piece; `None` at the end of the file.
    pub fn next(&mut self) -> Result<Option<Piece<'_>>, Error> {
        self.piece.clear();
        let limit = u64::try_from(LONGEST).unwrap_or(u64::MAX);
        loop {
            match self.input.by_ref().take(limit).read_until(self.end, &mut self.piece) {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::Read(error)),
            }
        }
        if self.piece.is_empty() {
            return Ok(None);
        }
        let whole = self.piece.last() == Some(&self.end) || self.piece.len() < LONGEST;
        let part = !(whole && self.fresh);
        self.fresh = whole;
        Ok(Some(Piece { bytes: &self.piece, part }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_come_in_parts_and_short_ones_whole() {
        let long = [vec![b'x'; 2 * LONGEST + 5], b"\nend".to_vec()].concat();
        let text = [b"a\n\n".as_slice(), &long].concat();
        let mut pieces = Pieces::new(&text[..], b'\n');
        let mut seen = Vec::new();
        while let Some(Piece { bytes, part }) = pieces.next().unwrap() {
            seen.push((bytes.len(), part));
        }
        assert_eq!(
            seen,
            [(2, false), (1, false), (LONGEST, true), (LONGEST, true), (6, true), (3, false)]
        );
    }
}
