//! The field `mappings`: segments of base64 VLQ.

use crate::Error;
use crate::base64;

/// From a position in the generated text on, up to the next segment, the text comes from a source. All numbers count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Line and column in the generated text.
    pub generated: (u32, u32),
    /// Number of the source; [`NO_SOURCE`] if the text comes from none.
    pub source: u32,
    /// Line in the source.
    pub line: u32,
    /// Column in the source.
    pub column: u32,
}

/// The number of no source.
pub const NO_SOURCE: u32 = u32::MAX;

/// The numbers that accumulate over the segments.
#[derive(Default)]
struct State {
    column: u32,
    source: u32,
    source_line: u32,
    source_column: u32,
}

/// Passes each segment of `mappings` to `take`, in the order of the text.
///
/// # Errors
/// At the first invalid segment.
pub fn segments(mappings: &str, mut take: impl FnMut(Segment)) -> Result<(), Error> {
    let mut rest = mappings.as_bytes();
    let (mut offset, mut line) = (0_usize, 0_u32);
    let mut state = State::default();
    loop {
        let end = memchr::memchr2(b',', b';', rest).unwrap_or(rest.len());
        let (segment, behind) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        offset = offset.saturating_add(end);
        if !segment.is_empty() {
            take(state.apply(segment, line, offset)?);
        }
        let Some((separator, behind)) = behind.split_first() else { return Ok(()) };
        if *separator == b';' {
            line = line.checked_add(1).ok_or(Error::Range { offset })?;
            state.column = 0;
        }
        offset = offset.saturating_add(1);
        rest = behind;
    }
}

impl State {
    /// Adds a segment, which ends at `offset`.
    fn apply(&mut self, segment: &[u8], line: u32, offset: usize) -> Result<Segment, Error> {
        let begin = offset.saturating_sub(segment.len());
        let mut fields = [0_i64; 5];
        let (mut count, mut at) = (0_usize, 0_usize);
        while at < segment.len() {
            let (number, end) = number(segment, at, begin)?;
            *fields.get_mut(count).ok_or(Error::Segment { offset })? = number;
            count = count.saturating_add(1);
            at = end;
        }
        let [column, source, source_line, source_column, _name] = fields;
        let range = |value: Option<u32>| value.ok_or(Error::Range { offset });
        let column = range(moved(self.column, column))?;
        let generated = (line, column);
        match count {
            1 => {
                self.column = column;
                Ok(Segment { generated, source: NO_SOURCE, line: 0, column: 0 })
            }
            4 | 5 => {
                let source = range(moved(self.source, source).filter(|&to| to != NO_SOURCE))?;
                let source_line = range(moved(self.source_line, source_line))?;
                let source_column = range(moved(self.source_column, source_column))?;
                *self = Self { column, source, source_line, source_column };
                Ok(Segment { generated, source, line: source_line, column: source_column })
            }
            _ => Err(Error::Segment { offset }),
        }
    }
}

fn moved(from: u32, by: i64) -> Option<u32> {
    u32::try_from(i64::from(from).checked_add(by)?).ok()
}

/// The number at `at` in a segment that begins at `begin` of the mappings, and where the next one begins.
fn number(segment: &[u8], at: usize, begin: usize) -> Result<(i64, usize), Error> {
    /// The bits of a number that a character has, below the bit that says whether more follow.
    const BITS: u32 = 5;
    const MORE: u8 = 1 << BITS;
    let (mut value, mut shift) = (0_i64, 0_u32);
    for (index, &character) in segment.iter().enumerate().skip(at) {
        let offset = begin.saturating_add(index);
        let digit = base64::value(character).ok_or(Error::Character { offset })?;
        // 32 bits and the sign are the most that a number may have.
        if shift > 30 {
            return Err(Error::Range { offset });
        }
        value |= i64::from(digit & (MORE - 1)) << shift;
        shift = shift.saturating_add(BITS);
        if digit & MORE == 0 {
            let magnitude = value >> 1;
            let number = if value & 1 == 0 { magnitude } else { magnitude.wrapping_neg() };
            return Ok((number, index.saturating_add(1)));
        }
    }
    Err(Error::Segment { offset: begin.saturating_add(segment.len()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mappings: &str) -> (Vec<[u32; 5]>, Result<(), Error>) {
        let mut all = Vec::new();
        let result = segments(mappings, |segment| {
            let (line, column) = segment.generated;
            all.push([line, column, segment.source, segment.line, segment.column]);
        });
        (all, result)
    }

    #[test]
    fn numbers_accumulate_and_columns_begin_at_each_line() {
        let (all, result) = read("AAAA,IACIA;;AADJ,C;gBCEA");
        assert_eq!(result, Ok(()));
        assert_eq!(
            all,
            [
                [0, 0, 0, 0, 0],
                [0, 4, 0, 1, 4],
                [2, 0, 0, 0, 0],
                [2, 1, NO_SOURCE, 0, 0],
                [3, 16, 1, 2, 0],
            ]
        );
    }

    #[test]
    fn damage_keeps_what_precedes_it() {
        for (mappings, error) in [
            ("AAAA,A!AA", Error::Character { offset: 6 }),
            ("AAAA,AA", Error::Segment { offset: 7 }),
            ("AAAA,AAAAAA", Error::Segment { offset: 11 }),
            ("AAAA,g", Error::Segment { offset: 6 }),
            ("AAAA,D", Error::Range { offset: 6 }),
            ("AAAA,gggggggggggA", Error::Range { offset: 12 }),
        ] {
            assert_eq!(read(mappings), (vec![[0, 0, 0, 0, 0]], Err(error)), "{mappings}");
        }
    }
}
