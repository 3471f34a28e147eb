//! From offsets in a script to lines and columns.

use crate::Units;

/// Where the lines of a script begin. Offsets count UTF-16 code units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineStarts {
    /// Without that of the first line.
    starts: Vec<u32>,
    /// Number of units in the script.
    len: u32,
}

impl LineStarts {
    /// Those of an escaped text: see [`ScriptSource::text`](crate::ScriptSource).
    #[must_use]
    pub fn new(escaped: &[u8]) -> Self {
        let mut all = Self::default();
        let mut units = Units::new(escaped).peekable();
        while let Some(unit) = units.next() {
            let Some(len) = all.len.checked_add(1) else { break };
            all.len = len;
            // The line terminators of ECMAScript; a carriage return and a line feed are one.
            let is_end = match unit {
                0x0a | 0x2028 | 0x2029 => true,
                0x0d => units.peek() != Some(&0x0a),
                _ => false,
            };
            if is_end {
                all.starts.push(len);
            }
        }
        all
    }

    /// The line and the column of an offset, both from 1. `None` behind the end of the script.
    #[must_use]
    pub fn place(&self, offset: u32) -> Option<(u32, u32)> {
        if offset > self.len {
            return None;
        }
        let before = self.starts.partition_point(|start| *start <= offset);
        let start = before.checked_sub(1).and_then(|last| self.starts.get(last)).unwrap_or(&0);
        let line = u32::try_from(before).ok()?.checked_add(1)?;
        Some((line, offset.checked_sub(*start)?.checked_add(1)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_in_ecmascript() {
        let starts = LineStarts::new(br"ab\nc\x0d\x0ad\x0de\u2028f\ud83d\ude00g");
        let place = |offset| starts.place(offset).unwrap();
        assert_eq!([place(0), place(2), place(3)], [(1, 1), (1, 3), (2, 1)]);
        assert_eq!([place(4), place(5), place(6)], [(2, 2), (2, 3), (3, 1)]);
        assert_eq!([place(8), place(10), place(13)], [(4, 1), (5, 1), (5, 4)]);
        assert_eq!((starts.place(14), starts.place(15)), (Some((5, 5)), None));
        assert_eq!(LineStarts::default().place(0), Some((1, 1)));
    }
}
