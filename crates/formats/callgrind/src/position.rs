//! Positions: one number per column, absolute or as the distance from the previous line.

use crate::error::Cause;
use crate::line::number;

/// The meaning of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The instruction's address.
    Instr,
    /// The line in the source.
    Line,
    /// The address of the basic block (`--dump-bb=yes`), or anything else.
    Other,
}

/// More columns than any version of callgrind writes.
pub(crate) const MOST: usize = 4;

/// The columns of a profile, from its `positions:` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    columns: [Column; MOST],
    count: usize,
}

impl Default for Columns {
    /// The default without such a line: source lines only.
    fn default() -> Self {
        Self { columns: [Column::Line; MOST], count: 1 }
    }
}

impl Columns {
    /// Parses what is behind `positions:`.
    ///
    /// # Errors
    /// If there are too many columns.
    pub fn parse(value: &[u8]) -> Result<Self, Cause> {
        let mut columns = Self { columns: [Column::Other; MOST], count: 0 };
        let words = value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        for word in words {
            let place = columns.columns.get_mut(columns.count).ok_or(Cause::TooManyColumns)?;
            *place = match word {
                b"instr" | b"addr" => Column::Instr,
                b"line" => Column::Line,
                _ => Column::Other,
            };
            columns.count = columns.count.saturating_add(1);
        }
        Ok(columns)
    }

    /// The columns, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Column> {
        self.columns.iter().copied().take(self.count)
    }

    /// Whether there is a column for instruction addresses.
    pub fn has_instr(&self) -> bool {
        self.iter().any(|column| column == Column::Instr)
    }

    /// Whether there is a column for source lines.
    pub(crate) fn has_line(&self) -> bool {
        self.iter().any(|column| column == Column::Line)
    }

    /// Parses a line's positions off its front. Distances are relative to `last`.
    ///
    /// # Errors
    /// If there are fewer positions than columns.
    pub fn take(&self, text: &mut &[u8], last: &Positions) -> Result<Positions, Cause> {
        let mut positions = *last;
        for value in positions.0.iter_mut().take(self.count) {
            *value = position(text, *value)?;
        }
        Ok(positions)
    }

    /// The index of the first column of a kind.
    pub(crate) fn place(&self, column: Column) -> Option<usize> {
        self.iter().position(|other| other == column)
    }

    /// The number of columns.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether a line begins with positions that are all absolute numbers.
    pub(crate) fn are_whole(&self, mut text: &[u8]) -> bool {
        (0..self.count).all(|_| {
            text = text.trim_ascii_start();
            text.first().is_some_and(u8::is_ascii_digit) && number(&mut text).is_ok()
        })
    }

    /// The positions of an address and a line.
    pub fn of(&self, address: u64, line: u64) -> Positions {
        let mut positions = Positions::default();
        for (value, column) in positions.0.iter_mut().zip(self.iter()) {
            *value = if column == Column::Line { line } else { address };
        }
        positions
    }

    /// The same positions with another line.
    pub(crate) fn with_line(&self, mut positions: Positions, line: u64) -> Positions {
        let lines = positions.0.iter_mut().zip(self.iter());
        lines.filter(|(_, column)| *column == Column::Line).for_each(|(value, _)| *value = line);
        positions
    }

    /// The address in positions; `None` if there is no column for instruction addresses.
    pub fn address(&self, positions: &Positions) -> Option<u64> {
        let mut columns = self.iter().zip(positions.0);
        columns.find(|(column, _)| *column == Column::Instr).map(|(_, value)| value)
    }

    /// The line in positions; 0 if there is no such column.
    pub fn line(&self, positions: &Positions) -> u64 {
        let mut columns = self.iter().zip(positions.0);
        columns.find(|(column, _)| *column == Column::Line).map_or(0, |(_, value)| value)
    }

    /// Writes positions, each followed by a blank. A position near to `last`, if given, is written as the distance.
    pub fn push(&self, out: &mut Vec<u8>, positions: &Positions, last: Option<&Positions>) {
        // A last value of 0 means that there is none, so nothing is near to it.
        let last = last.map_or([0; MOST], |last| last.0);
        for ((column, &value), last) in self.iter().zip(&positions.0).zip(last) {
            match value.wrapping_sub(last) as i64 {
                distance @ -99..100 if last != 0 => push_distance(out, distance),
                _ => {
                    if column == Column::Line {
                        push_number(out, value);
                    } else {
                        push_address(out, value);
                    }
                    out.push(b' ');
                }
            }
        }
    }
}

/// Writes a distance of at most two digits, and a blank.
#[inline]
fn push_distance(out: &mut Vec<u8>, distance: i64) {
    let sign = if distance > 0 { b'+' } else { b'-' };
    let digits = distance.unsigned_abs() as u8;
    match (digits / 10, b'0' | (digits % 10)) {
        (0, b'0') => out.extend_from_slice(b"* "),
        (0, ones) => out.extend_from_slice(&[sign, ones, b' ']),
        (tens, ones) => out.extend_from_slice(&[sign, b'0' | tens, ones, b' ']),
    }
}

/// Writes a number as decimal digits.
#[inline]
pub(crate) fn push_number(out: &mut Vec<u8>, number: u64) {
    let digit = |unit: u64| b'0' | (number / unit % 10) as u8;
    match number {
        0..10 => out.push(digit(1)),
        10..100 => out.extend_from_slice(&[digit(10), digit(1)]),
        100..1000 => out.extend_from_slice(&[digit(100), digit(10), digit(1)]),
        _ => push_long(out, number),
    }
}

fn push_long(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0_u8; 20];
    let (mut rest, mut count) = (number, 0_usize);
    for digit in digits.iter_mut().rev() {
        *digit = b'0' | (rest % 10) as u8;
        rest /= 10;
        count = count.wrapping_add(1);
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(digits.len().wrapping_sub(count)..).unwrap_or_default());
}

/// Writes an address with `0x`.
fn push_address(out: &mut Vec<u8>, address: u64) {
    let count = u64::BITS.wrapping_sub(address.leading_zeros()).div_ceil(4).max(1) as usize;
    let mut digits = [0_u8; 16];
    let (high, low) = digits.split_at_mut(8);
    high.copy_from_slice(&hexadecimal((address >> 32) as u32));
    low.copy_from_slice(&hexadecimal(address as u32));
    out.extend_from_slice(b"0x");
    out.extend_from_slice(digits.get(digits.len().wrapping_sub(count)..).unwrap_or_default());
}

/// Computes eight hexadecimal digits at once.
fn hexadecimal(value: u32) -> [u8; 8] {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // One digit per byte.
    let mut digits = u64::from(value);
    digits = (digits << 16 | digits) & 0x0000_ffff_0000_ffff;
    digits = (digits << 8 | digits) & 0x00ff_00ff_00ff_00ff;
    digits = (digits << 4 | digits) & 0x0f0f_0f0f_0f0f_0f0f;
    // For digits from ten on, adding six carries into bit 4. Letters have a fixed distance from the decimal digits.
    let letters = digits.wrapping_add(EACH.wrapping_mul(6)) >> 4 & EACH;
    let letters = letters.wrapping_mul(u64::from(b'a' - b'9' - 1));
    digits.wrapping_add(EACH.wrapping_mul(u64::from(b'0'))).wrapping_add(letters).to_be_bytes()
}

/// A number for each column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Positions(pub [u64; MOST]);

fn position(text: &mut &[u8], last: u64) -> Result<u64, Cause> {
    let mut rest = *text;
    while let Some((b' ' | b'\t', behind)) = rest.split_first() {
        rest = behind;
    }
    let value = match rest.split_first() {
        Some((b'*', behind)) => {
            rest = behind;
            last
        }
        Some((b'+', behind)) => {
            rest = behind;
            last.wrapping_add(number(&mut rest)?)
        }
        Some((b'-', behind)) => {
            rest = behind;
            last.wrapping_sub(number(&mut rest)?)
        }
        _ => number(&mut rest)?,
    };
    *text = rest;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn columns() -> impl Strategy<Value = Columns> {
        prop::sample::select(vec![&b"line"[..], b"instr", b"instr line", b"instr bb line"])
            .prop_map(|text| Columns::parse(text).expect("columns"))
    }

    /// Numbers that are near to each other, and arbitrary ones.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![0_u64..300, any::<u64>(), 0x7f00_0000_0000_u64..0x7f00_0000_0100]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            columns in columns(),
            lines in prop::collection::vec((number(), 0_u64..500, any::<bool>()), 1..20),
        ) {
            let mut out = Vec::new();
            let (mut last_written, mut last_read) = (None, Positions::default());
            for (address, line, whole) in lines {
                let positions = columns.of(address, line);
                out.clear();
                columns.push(&mut out, &positions, last_written.as_ref().filter(|_| !whole));
                let mut text = out.as_slice();
                let read = columns.take(&mut text, &last_read).expect("positions");
                prop_assert!(text.trim_ascii().is_empty());
                prop_assert_eq!(read, positions);
                (last_written, last_read) = (Some(positions), read);
            }
        }
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_ever(number in prop_oneof![number(), 0_u64..10_000]) {
            let (mut decimal, mut address) = (Vec::new(), Vec::new());
            push_number(&mut decimal, number);
            push_address(&mut address, number);
            prop_assert_eq!(String::from_utf8(decimal), Ok(number.to_string()));
            prop_assert_eq!(String::from_utf8(address), Ok(format!("{number:#x}")));
        }
    }

    #[test]
    fn what_cannot_be_positions() {
        let columns = Columns::parse(b"instr line").expect("columns");
        for wrong in [&b""[..], b"1", b"0x 1", b"+ 1", b"1 x", b"0x10000000000000000 1"] {
            assert!(columns.take(&mut &*wrong, &Positions::default()).is_err());
        }
        assert_eq!(Columns::parse(b"a b c d e"), Err(Cause::TooManyColumns));
    }
}
