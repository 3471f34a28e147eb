//! The compressed line table of a method (HotSpot's `compressedStream.hpp`, `unsigned5.hpp`, `CompressedLineNumberReadStream`).
//!
//! It is a list of steps: how much further the bytecode is, and the line. A small step is one byte. An escape precedes two signed
//! numbers of one to five bytes. A zero ends the table.

use super::structs::{Field, value};

/// How numbers of several bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// Up to version 19: bytes below 192 end a number.
    WithZeros,
    /// Since version 20: the same, but no byte is zero.
    WithoutZeros,
}

/// The escape of a step that does not fit in a byte.
const ESCAPE: u8 = 0xff;
/// A number has at most so many bytes.
const LONGEST: u32 = 5;
/// A byte that does not end a number stands for six bits.
const BITS: u32 = 6;
/// Number of byte values that do not end a number.
const CONTINUING: u32 = 1 << BITS;
/// The first version without zero bytes in numbers.
const WITHOUT_ZEROS: u64 = 20;

impl Compression {
    /// That of the running JVM, by its version.
    #[allow(unsafe_code, reason = "a variable where HotSpot says that it is")]
    pub(crate) fn of(field: impl Fn(&str) -> Option<Field>) -> Option<Self> {
        let major = field("Abstract_VM_Version::_vm_major_version")
            .or_else(|| field("VM_Version::_vm_major_version"))?;
        // SAFETY: a static variable of the JVM, which stays.
        let major = unsafe { value(0, major) };
        Some(if major < WITHOUT_ZEROS { Self::WithZeros } else { Self::WithoutZeros })
    }

    /// Replaces `lines` by those of a table: bytecode indices and lines, in its order, without what does not fit in two bytes, which a
    /// class file cannot have. `None` if the table has no end.
    pub(crate) fn lines(self, mut table: &[u8], lines: &mut Vec<(u16, u16)>) -> Option<()> {
        lines.clear();
        let (mut index, mut line) = (0_i32, 0_i32);
        loop {
            let (step, behind) = table.split_first()?;
            table = behind;
            match *step {
                0 => return Some(()),
                ESCAPE => {
                    index = index.wrapping_add(self.signed(&mut table)?);
                    line = line.wrapping_add(self.signed(&mut table)?);
                }
                step => {
                    index = index.wrapping_add(i32::from(step >> 3));
                    line = line.wrapping_add(i32::from(step & 7));
                }
            }
            if let (Ok(index), Ok(line)) = (index.try_into(), line.try_into()) {
                lines.push((index, line));
            }
        }
    }

    /// Takes a number off, whose lowest bit is its sign.
    fn signed(self, bytes: &mut &[u8]) -> Option<i32> {
        let least = u32::from(self == Self::WithoutZeros);
        let mut sum = 0_u32;
        for place in 0..LONGEST {
            let (byte, behind) = bytes.split_first()?;
            *bytes = behind;
            let digit = u32::from(*byte).checked_sub(least)?;
            sum = sum.wrapping_add(digit.wrapping_shl(BITS * place));
            if digit < 256 - CONTINUING - least {
                break;
            }
        }
        Some((sum >> 1).cast_signed() ^ -(sum & 1).cast_signed())
    }
}

/// Sorts bytecode indices with their lines. A class file may have them in any order; of two for one bytecode, the first is valid, as for
/// the JVM.
pub(crate) fn ascending(lines: &mut Vec<(u16, u16)>) {
    lines.sort_by_key(|(start, _)| *start);
    lines.dedup_by_key(|(start, _)| *start);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As HotSpot writes them.
    fn compressed(compression: Compression, lines: &[(u16, u16)]) -> Vec<u8> {
        let mut table = Vec::new();
        let (mut index, mut line) = (0_i32, 0_i32);
        for &(at, number) in lines {
            let steps = [i32::from(at) - index, i32::from(number) - line];
            (index, line) = (at.into(), number.into());
            match steps {
                // All that is less than this fits in a byte, which is neither the escape nor the end.
                [step @ 0..31, further @ 0..8] if (step, further) != (0, 0) => {
                    table.push((step << 3 | further) as u8);
                }
                _ => {
                    table.push(ESCAPE);
                    for step in steps {
                        write(
                            compression,
                            ((step << 1) ^ (step >> 31)).cast_unsigned(),
                            &mut table,
                        );
                    }
                }
            }
        }
        table.push(0);
        table
    }

    fn write(compression: Compression, number: u32, table: &mut Vec<u8>) {
        let least = u32::from(compression == Compression::WithoutZeros);
        let ends_below = 256 - 64 - least;
        let mut sum = number;
        for _ in 1..LONGEST {
            if sum < ends_below {
                break;
            }
            sum -= ends_below;
            table.push((least + ends_below + sum % 64) as u8);
            sum /= 64;
        }
        table.push((least + sum) as u8);
    }

    proptest::proptest! {
        #[test]
        fn what_hotspot_writes_is_read(lines: Vec<(u16, u16)>) {
            for compression in [Compression::WithZeros, Compression::WithoutZeros] {
                let mut read = vec![(1, 1)];
                let table = compressed(compression, &lines);
                proptest::prop_assert_eq!(compression.lines(&table, &mut read), Some(()));
                proptest::prop_assert_eq!(&read, &lines);
                proptest::prop_assert_eq!(compression.lines(&table[..table.len() - 1], &mut read), None);
            }
        }

        #[test]
        fn any_bytes_are_read(table: Vec<u8>) {
            for compression in [Compression::WithZeros, Compression::WithoutZeros] {
                compression.lines(&table, &mut Vec::new());
            }
        }
    }

    #[test]
    fn numbers_are_those_of_hotspot() {
        // 191 and 192 as unsigned numbers, up to version 19 and since 20.
        let of = |compression: Compression, bytes: &[u8]| compression.signed(&mut &*bytes);
        assert_eq!(of(Compression::WithZeros, &[191]), Some(-96));
        assert_eq!(of(Compression::WithZeros, &[192, 0]), Some(96));
        assert_eq!(of(Compression::WithoutZeros, &[192, 1]), Some(-96));
        assert_eq!(of(Compression::WithoutZeros, &[193, 1]), Some(96));
        assert_eq!(of(Compression::WithoutZeros, &[0]), None);
    }
}
