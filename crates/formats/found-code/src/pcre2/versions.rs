//! Versions of PCRE2.

use memchr::memmem::Finder;

/// What is in front of a version in a library: the end of the text before it, and the major version.
const BEFORE: &[u8] = b"\x0010.";
/// The most bytes of a version in a library, with what is in front of it.
pub const LONGEST: usize = 40;
/// The minor versions whose opcodes are known.
const KNOWN: std::ops::RangeInclusive<u8> = 32..=47;

/// Versions of PCRE2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Versions(u64);

impl Versions {
    /// All whose opcodes are known.
    pub const ALL: Self = Self(((1 << 48) - 1) & !((1 << 32) - 1));

    /// Some whose opcodes are not known.
    pub const OTHER: Self = Self(1 << 63);

    /// Version 10.`minor`.
    #[must_use]
    pub fn of(minor: u8) -> Self {
        let is_known = KNOWN.contains(&minor);
        if is_known { Self(1_u64.wrapping_shl(minor.into())) } else { Self::OTHER }
    }

    /// The versions that are named in the bytes of a library, as in `10.42 2022-12-11`.
    pub(crate) fn find(bytes: &[u8]) -> Self {
        let all = Finder::new(BEFORE);
        let rests = all.find_iter(bytes).filter_map(|at| bytes.get(at..)?.get(BEFORE.len()..));
        rests.filter_map(named).fold(Self::default(), Self::and)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The minor numbers of those whose opcodes are known.
    pub(crate) fn minors(self) -> impl Iterator<Item = u8> {
        KNOWN.filter(move |minor| self.0 & Self::of(*minor).0 != 0)
    }
}

/// The version whose minor number and date are here: `42 2022-12-11`, or `45-RC1 2024-11-27`.
fn named(rest: &[u8]) -> Option<Versions> {
    let (number, rest) = rest.split_first_chunk::<2>()?;
    let minor = std::str::from_utf8(number).ok()?.parse().ok()?;
    let end = rest.iter().take(32).position(|byte| *byte == 0)?;
    let (_, date) = std::str::from_utf8(rest.get(..end)?).ok()?.rsplit_once(' ')?;
    let is_date = date.len() == 10
        && date.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    is_date.then(|| Versions::of(minor))
}
