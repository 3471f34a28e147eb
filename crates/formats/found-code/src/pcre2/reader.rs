//! The units of an expression's opcodes, one behind the other.

use super::class::Map;

/// Reads units.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'c> {
    pub units: &'c [u32],
    /// The bytes of a unit.
    pub width: usize,
    pub is_utf: bool,
    /// Where the next unit is.
    pub at: usize,
}

impl Reader<'_> {
    /// The next unit.
    pub fn unit(&mut self) -> Option<u32> {
        let unit = self.units.get(self.at).copied()?;
        self.at = self.at.checked_add(1)?;
        Some(unit)
    }

    /// A number of 16 bits: two units if they have 8 bits.
    pub fn number(&mut self) -> Option<u32> {
        let first = self.unit()?;
        if self.width == 1 { Some(first.wrapping_shl(8) | self.unit()?) } else { Some(first) }
    }

    /// A distance, which is as long in libraries that are built as usual.
    pub fn link(&mut self) -> Option<u32> {
        self.number()
    }

    /// Skips this many distances and numbers.
    pub fn skip(&mut self, links: usize, numbers: usize) -> Option<()> {
        for _ in 0..links.checked_add(numbers)? {
            self.number()?;
        }
        Some(())
    }

    /// Goes to the end of what begins at `start`.
    pub fn go_to(&mut self, start: usize, size: u32) -> Option<()> {
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        (end >= self.at && end <= self.units.len()).then(|| self.at = end)
    }

    /// A character, which has several units in UTF-8 and UTF-16.
    pub fn wide_character(&mut self) -> Option<u32> {
        let first = self.unit()?;
        match (self.is_utf, self.width, first) {
            (true, 1, 0xc0..0xe0) => self.more(first & 0x1f, 1, 6),
            (true, 1, 0xe0..0xf0) => self.more(first & 0x0f, 2, 6),
            (true, 1, 0xf0..) => self.more(first & 0x07, 3, 6),
            (true, 2, 0xd800..0xdc00) => {
                Some(self.more(first & 0x3ff, 1, 10)?.wrapping_add(0x1_0000))
            }
            _ => Some(first),
        }
    }

    /// A character of which the first bits are known, with those of the next units.
    fn more(&mut self, first: u32, count: u32, bits: u32) -> Option<u32> {
        let mask = 1_u32.wrapping_shl(bits).wrapping_sub(1);
        (0..count)
            .try_fold(first, |value, _| Some(value.wrapping_shl(bits) | (self.unit()? & mask)))
    }

    /// The characters below 256 of a class.
    pub fn map(&mut self) -> Option<Map> {
        let end = self.at.checked_add(32_usize.checked_div(self.width)?)?;
        let map = Map::new(self.units.get(self.at..end)?, self.width)?;
        self.at = end;
        Some(map)
    }
}
