//! The kinds of lines.

use crate::place::split_once;

/// A line that begins or ends a section: `[TIME] {NAME` or `[TIME] NAME}`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark<'t> {
    pub(crate) time: u64,
    pub(crate) name: &'t [u8],
    pub(crate) is_end: bool,
}

impl<'t> Mark<'t> {
    pub(crate) fn parse(line: &'t [u8]) -> Option<Self> {
        let (time, name) = split_once(line.strip_prefix(b"[")?, b"] ")?;
        let time = hexadecimal(time)?;
        match (name.strip_prefix(b"{"), name.strip_suffix(b"}")) {
            (Some(name), _) => Some(Self { time, name, is_end: false }),
            (None, Some(name)) => Some(Self { time, name, is_end: true }),
            (None, None) => None,
        }
    }
}

/// The line that says where code is: `NAME has address 0xSTART to 0xEND`, with `(bootstrap 0xENTRY)` for a loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses<'t> {
    /// `Loop 1 (…)` or `bridge out of Guard 0x…`.
    pub(crate) name: &'t [u8],
    pub(crate) start: u64,
    /// Where the code for failing guards begins.
    pub(crate) end: u64,
    pub(crate) bootstrap: Option<u64>,
}

impl<'t> Addresses<'t> {
    pub(crate) fn parse(line: &'t [u8]) -> Option<Self> {
        let (name, rest) = split_once(line, b" has address ")?;
        let (start, rest) = split_once(rest, b" to ")?;
        let (end, rest) = split_once(rest, b" ").unwrap_or((rest, b""));
        let bootstrap = rest.strip_prefix(b"(bootstrap ").and_then(|it| it.strip_suffix(b")"));
        let bootstrap = bootstrap.and_then(address);
        Some(Self { name, start: address(start)?, end: address(end)?, bootstrap })
    }
}

/// A line `NAME: 0xADDRESS`, indented.
pub(crate) fn part(line: &[u8]) -> Option<(&[u8], u64)> {
    let (name, value) = split_once(line.trim_ascii(), b": ")?;
    Some((name, address(value)?))
}

/// A line `+OFFSET: OPERATION`.
pub(crate) fn operation(line: &[u8]) -> Option<(u64, &[u8])> {
    let (offset, operation) = split_once(line.strip_prefix(b"+")?, b": ")?;
    Some((std::str::from_utf8(offset).ok()?.parse().ok()?, operation))
}

/// A line `debug_merge_point(DEPTH, CALL, 'PLACE')`: the depth and the place.
pub(crate) fn merge_point(line: &[u8]) -> Option<(u32, &[u8])> {
    let inner = line.strip_prefix(b"debug_merge_point(")?.strip_suffix(b"')")?;
    let (numbers, place) = split_once(inner, b", '")?;
    let (depth, _) = split_once(numbers, b", ")?;
    Some((std::str::from_utf8(depth).ok()?.parse().ok()?, place))
}

/// The number of a guard: behind `Guard 0x` in the name of a bridge, behind `<Guard0x` in an operation.
pub(crate) fn guard(text: &[u8]) -> Option<u64> {
    let (_, rest) = split_once(text, b"Guard")?;
    let digits = rest.trim_ascii_start().strip_prefix(b"0x")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(digits.len());
    hexadecimal(digits.get(..end)?)
}

fn address(text: &[u8]) -> Option<u64> {
    hexadecimal(text.strip_prefix(b"0x")?)
}

fn hexadecimal(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}
