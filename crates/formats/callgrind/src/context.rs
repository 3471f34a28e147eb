//! How callgrind names code that it does not know.

use crate::line::{decimal, hexadecimal};

/// callgrind's name for objects and files that it does not know.
pub(crate) const UNKNOWN: &[u8] = b"???";

/// The name of a context whose function callgrind did not know: `0x0000000004a3c010'2'caller'…`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Context {
    /// The address at which it is entered.
    pub(crate) address: u64,
    /// Its recursion level, from 1.
    pub(crate) level: u32,
    /// The callers, each preceded by `'`.
    pub(crate) callers: Box<[u8]>,
}

impl Context {
    /// Parses a name; `None` if it is not an address.
    pub(crate) fn parse(name: &[u8]) -> Option<Self> {
        let (own, rest) = split_part(name);
        let address = address(own)?;
        let (level, callers) = match rest.strip_prefix(b"'").map(split_part) {
            Some((digits, callers)) if decimal(digits).is_some_and(|level| level <= 9999) => {
                (decimal(digits).map_or(1, |level| level as u32), callers)
            }
            _ => (1, rest),
        };
        Some(Self { address, level, callers: callers.into() })
    }

    /// Whether [`Self::parse`] accepts `name`.
    pub(crate) fn is_one(name: &[u8]) -> bool {
        address(split_part(name).0).is_some()
    }
}

fn address(name: &[u8]) -> Option<u64> {
    hexadecimal(name.strip_prefix(b"0x")?)
}

/// The first part of a name with callers, and the rest.
pub(crate) fn split_part(name: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr(b'\'', name).unwrap_or(name.len());
    name.split_at_checked(end).unwrap_or((name, b""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_code_is_known_by_its_name() {
        let parse = |name: &[u8]| {
            let context = Context::parse(name);
            assert_eq!(context.is_some(), Context::is_one(name));
            context.map(|context| {
                let callers = String::from_utf8_lossy(&context.callers).into_owned();
                (context.address, context.level, callers)
            })
        };
        assert_eq!(parse(b"0x0000000004a3c010"), Some((0x4a3_c010, 1, String::new())));
        assert_eq!(parse(b"0x10'2"), Some((0x10, 2, String::new())));
        assert_eq!(parse(b"0x10'2'main'0x20"), Some((0x10, 2, "'main'0x20".into())));
        assert_eq!(parse(b"0x10'main"), Some((0x10, 1, "'main".into())));
        for other in [&b"main"[..], b"0x", b"0xg", b"0x11112222333344445", b""] {
            assert_eq!(parse(other), None);
        }
    }
}
