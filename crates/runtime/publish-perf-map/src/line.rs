//! Lines: how ours are written, and how the size in one is changed in place.

use fallible::{Text, Vec};

use crate::error::Cause;

/// Maximum length of a name in bytes; longer names are cut and end with `...`. perf accepts any
/// length, but other tools read lines into buffers of a few kilobytes.
const LONGEST_NAME: usize = 2000;
/// The end of a name that was cut.
const DOTS: &[u8] = b"...";
/// perf drops lines with shorter names.
const SHORTEST: usize = 3;

/// Two numbers of at most 16 digits, each followed by a blank.
pub(crate) const LONGEST_HEAD: usize = 34;

pub(crate) const LONGEST_LINE: usize = LONGEST_HEAD + LONGEST_NAME + 1;

/// Appends a line to `out`, and returns its length. A name from such a line is written identically
/// again.
pub(crate) fn push(out: &mut Vec<u8>, address: u64, size: u64, name: &[u8]) -> u16 {
    let before = out.len();
    push_head(out, address, size);
    let start = out.len();
    if is_plain(name) {
        out.extend_from_slice(name);
        out.push(b'\n');
        return u16::try_from(out.len() - before).unwrap_or(u16::MAX);
    }
    let looked_at = &name[..name.len().min(4 * LONGEST_NAME)];
    for piece in perf_map::safe_pieces(looked_at) {
        let filled = out.len() - start;
        if filled + piece.len() > LONGEST_NAME {
            // Part of it may have to make way for the dots.
            out.extend_from_slice(
                &piece.as_bytes()[..printable::floor_char_boundary(piece, LONGEST_NAME - filled)],
            );
            cut(out, start);
            break;
        }
        out.extend_from_slice(piece.as_bytes());
    }
    // perf drops names of one or two bytes.
    while out.len().saturating_sub(start) < SHORTEST && out.try_push(b' ').is_ok() {}
    out.push(b'\n');
    // LONGEST_LINE is well below 64 KiB.
    u16::try_from(out.len() - before).unwrap_or(u16::MAX)
}

/// Appends the two numbers. By hand, because formatting takes as long as a fifth of the system call
/// that writes the line.
fn push_head(out: &mut Vec<u8>, address: u64, size: u64) {
    let mut head = [0; LONGEST_HEAD];
    let mut length = 0;
    for number in [address, size] {
        let digits = 16 - number.leading_zeros().min(63) as usize / 4;
        for digit in (0..digits).rev() {
            let digit = (number >> (4 * digit) & 15) as u8;
            head[length] = if digit < 10 { b'0' + digit } else { b'a' - 10 + digit };
            length += 1;
        }
        head[length] = b' ';
        length += 1;
    }
    out.extend_from_slice(&head[..length]);
}

/// Whether a name, as most are, needs no change: printable ASCII, no blank at either end, and
/// neither too short nor too long.
fn is_plain(name: &[u8]) -> bool {
    let is_blank_at_an_end = name.first() == Some(&b' ') || name.last() == Some(&b' ');
    (SHORTEST..=LONGEST_NAME).contains(&name.len())
        && !is_blank_at_an_end
        // Without an early end, which the compiler turns into a few instructions for many bytes.
        && name.iter().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'))
}

/// Cuts a name that begins at `start` and is too long, so that it ends with dots.
fn cut(out: &mut Vec<u8>, start: usize) {
    let name = str::from_utf8(out.get(start..).unwrap_or_default()).unwrap_or_default();
    let end = start + printable::floor_char_boundary(name, LONGEST_NAME - DOTS.len());
    out.truncate(end);
    out.extend_from_slice(DOTS);
}

/// The name in one of our lines, which contains `address`.
pub(crate) fn name(line: &[u8], address: u64) -> Result<&[u8], Cause> {
    let head = Head::read(line)?;
    let name = line.get(head.size.end + 1..).and_then(|name| name.strip_suffix(b"\n"));
    name.filter(|name| head.address == address && !name.contains(&b'\n')).ok_or(Cause::Damaged)
}

/// Address and size in a line; `None` if it is none.
pub(crate) fn range(line: &[u8]) -> Option<(u64, u64)> {
    Head::read(line).ok().map(|head| (head.address, head.size_value))
}

/// The digits that replace the size in a line by `to`, and their offset in the line. The line must
/// contain `from` bytes at `address`. The number of digits stays the same.
pub(crate) fn resized(
    line: &[u8],
    address: u64,
    from: u64,
    to: u64,
) -> Result<(usize, Text), Cause> {
    let head = Head::read(line)?;
    if head.address != address || head.size_value != from || to > from {
        return Err(Cause::Damaged);
    }
    Ok((head.size.start, fallible::text!("{to:0width$x}", width = head.size.len())))
}

/// The two numbers at the beginning of a line.
struct Head {
    address: u64,
    size: std::ops::Range<usize>,
    size_value: u64,
}

impl Head {
    fn read(line: &[u8]) -> Result<Head, Cause> {
        let blank = |from: usize| {
            let rest = line.get(from..).unwrap_or(&[]);
            rest.iter().take(17).position(|&byte| byte == b' ').map(|at| from + at)
        };
        let number = |at: std::ops::Range<usize>| {
            let digits = line.get(at).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
            u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
        };
        let read = || {
            let first = blank(0)?;
            let second = blank(first + 1)?;
            let size = first + 1..second;
            Some(Head { address: number(0..first)?, size_value: number(size.clone())?, size })
        };
        read().ok_or(Cause::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_between_characters() {
        for filler in 0..4 {
            let name = [vec![b'x'; filler], "ü€😀".repeat(1000).into_bytes()].concat();
            let mut line = Vec::new();
            push(&mut line, 0x1000, 0x20, &name);
            let line = String::from_utf8(line.into_inner()).unwrap();
            assert!(line.ends_with("...\n") && !line.contains('\u{fffd}'), "{line}");
            assert!(line.len() < LONGEST_NAME + LONGEST_HEAD);
        }
    }

    #[test]
    fn the_longest_line_fits_any_name() {
        for name in [vec![0xff; 100_000], vec![0x80; LONGEST_NAME], vec![0xff; LONGEST_NAME / 3]] {
            let mut line = Vec::new();
            let length = push(&mut line, u64::MAX, u64::MAX, &name);
            assert_eq!(usize::from(length), line.len());
            assert!(line.len() <= LONGEST_LINE, "{}", line.len());
            let spelled = super::name(&line, u64::MAX).unwrap();
            let mut again = Vec::new();
            push(&mut again, u64::MAX, u64::MAX, spelled);
            assert_eq!(line, again);
        }
    }

    #[test]
    fn numbers_and_plain_names_are_as_if_formatted() {
        let numbers = [0, 1, 9, 0xa, 0xf, 0x10, 0x1a0, 0x7f00_1234_abcd, u64::MAX >> 1, u64::MAX];
        let names: [&[u8]; 9] =
            [b"fib", b"fi", b" fib", b"fib ", b"a b", b"a\tb", b"a\x7fb", b"~!{}", b"\xc3\xbcx"];
        for (address, size) in numbers.iter().flat_map(|a| numbers.map(|b| (*a, b))) {
            for name in names {
                let mut line = Vec::new();
                let length = push(&mut line, address, size, name);
                let name: String = perf_map::safe_pieces(name).collect();
                let blanks = " ".repeat(SHORTEST.saturating_sub(name.len()));
                let expected = format!("{address:x} {size:x} {name}{blanks}\n");
                assert_eq!(line.as_slice(), expected.as_bytes());
                assert_eq!(usize::from(length), line.len());
            }
        }
    }

    #[test]
    fn a_size_is_replaced_digit_by_digit() {
        let mut line = Vec::new();
        push(&mut line, 0x7f00_1000, 0x1a0, b"fib");
        assert_eq!(resized(&line, 0x7f00_1000, 0x1a0, 0x20).unwrap(), (9, Text::from("020")));
        assert!(resized(&line, 0x7f00_1001, 0x1a0, 0).is_err());
        assert!(resized(&line, 0x7f00_1000, 0x1a1, 0).is_err());
        assert!(resized(b"junk", 0x7f00_1000, 0x1a0, 0).is_err());
        assert_eq!(name(&line, 0x7f00_1000).unwrap(), b"fib");
        assert!(name(b"7f001000 1a0 f\nb\n", 0x7f00_1000).is_err());
    }
}
