//! A code of a log, in few words.

/// Groups begin at multiples of this.
const UNIT: u64 = 8;

/// A code of a log that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// Its address.
    pub address: u64,
    /// When it was loaded, by the clock of the log.
    pub loaded: u64,
    /// What the caller of [`Follower::update`](crate::Follower::update) computed of it.
    pub tag: u64,
    /// Its size in bytes.
    pub size: u32,
    /// The place of its group in the log, in units of 8 bytes.
    pub(crate) at: u32,
}

impl Followed {
    /// The offset of its description in the log.
    #[must_use]
    pub fn at(&self) -> u64 {
        u64::from(self.at).saturating_mul(UNIT)
    }

    /// Whether both are one code.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.at, self.address, self.loaded, self.size)
            == (other.at, other.address, other.loaded, other.size)
    }

    /// A code whose group is at `at` in the log.
    pub(crate) fn new(at: u64, address: u64, loaded: u64, size: u64) -> Option<Self> {
        let at = at.checked_div(UNIT).and_then(|at| u32::try_from(at).ok())?;
        Some(Self { address, loaded, tag: 0, size: u32::try_from(size).unwrap_or(u32::MAX), at })
    }
}
