//! Lines: how ours are spelled, and what of one can be changed where it stands.

use crate::error::Cause;

/// Longest name in bytes; what is longer is cut and ends with `...`. perf takes any length, but
/// others read lines into buffers of a few kilobytes.
const LONGEST_NAME: usize = 2000;

/// Two numbers of at most 16 digits, each with a blank behind it.
pub(crate) const LONGEST_HEAD: usize = 34;

pub(crate) const LONGEST_LINE: usize = LONGEST_HEAD + LONGEST_NAME + 1;

/// Appends a line to `out`; the answer is its length. A name that was in such a line is spelled
/// the same again.
pub(crate) fn push(out: &mut Vec<u8>, address: u64, size: u64, name: &[u8]) -> u16 {
    let before = out.len();
    // A byte that is not UTF-8 becomes three.
    if name.len() <= LONGEST_NAME / 3 {
        perf_map::push_line(out, address, size, name);
    } else {
        let looked_at = &name[..name.len().min(4 * LONGEST_NAME)];
        let mut name = perf_map::safe_name(looked_at).into_owned();
        if name.len() > LONGEST_NAME {
            name.truncate(name.floor_char_boundary(LONGEST_NAME - 3));
            name.push_str("...");
        }
        perf_map::push_line(out, address, size, name.as_bytes());
    }
    // LONGEST_LINE is well below 64 KiB.
    u16::try_from(out.len() - before).unwrap_or(u16::MAX)
}

/// The name in a line of ours that says `address`.
pub(crate) fn name(line: &[u8], address: u64) -> Result<&[u8], Cause> {
    let head = Head::read(line)?;
    let name = line.get(head.size.end + 1..).and_then(|name| name.strip_suffix(b"\n"));
    name.filter(|name| head.address == address && !name.contains(&b'\n')).ok_or(Cause::Damaged)
}

/// The digits with which `to` replaces the size in a line that begins as `line` and says that
/// `from` bytes are at `address`, and where in the line they go. They are as many as were there.
pub(crate) fn resized(
    line: &[u8],
    address: u64,
    from: u64,
    to: u64,
) -> Result<(usize, String), Cause> {
    let head = Head::read(line)?;
    if head.address != address || head.size_value != from || to > from {
        return Err(Cause::Damaged);
    }
    Ok((head.size.start, format!("{to:0width$x}", width = head.size.len())))
}

/// The two numbers that a line begins with.
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
            let line = String::from_utf8(line).unwrap();
            assert!(line.ends_with("...\n") && !line.contains('\u{fffd}'), "{line}");
            assert!(line.len() < LONGEST_NAME + LONGEST_HEAD);
        }
    }

    #[test]
    fn the_longest_line_holds_whatever_the_name() {
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
    fn a_size_is_replaced_digit_by_digit() {
        let mut line = Vec::new();
        push(&mut line, 0x7f00_1000, 0x1a0, b"fib");
        assert_eq!(resized(&line, 0x7f00_1000, 0x1a0, 0x20).unwrap(), (9, "020".to_owned()));
        assert!(resized(&line, 0x7f00_1001, 0x1a0, 0).is_err());
        assert!(resized(&line, 0x7f00_1000, 0x1a1, 0).is_err());
        assert!(resized(b"junk", 0x7f00_1000, 0x1a0, 0).is_err());
        assert_eq!(name(&line, 0x7f00_1000).unwrap(), b"fib");
        assert!(name(b"7f001000 1a0 f\nb\n", 0x7f00_1000).is_err());
    }
}
