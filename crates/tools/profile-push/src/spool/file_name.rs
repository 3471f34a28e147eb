//! Files of a spool by their names, which say what is in them.

use crate::profile_body::{BodyId, BodyKind};

/// A profile in the spool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spooled {
    pub(super) number: u64,
    pub(super) id: BodyId,
    pub(super) kind: BodyKind,
    pub(super) state: FileState,
    pub(super) size: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FileState {
    Waiting,
    Rejected,
    Damaged,
}

/// Files take whole blocks: this bounds their number, too.
pub(super) const BLOCK: u64 = 4096;

impl Spooled {
    pub(super) fn parse(name: &str, size: u64) -> Option<Self> {
        let (number, rest) = name.split_once('-')?;
        let (id, rest) = rest.split_once('.')?;
        let (extension, state) = match rest.split_once('.') {
            None => (rest, FileState::Waiting),
            Some((extension, "rejected")) => (extension, FileState::Rejected),
            Some((extension, "damaged")) => (extension, FileState::Damaged),
            Some(_) => return None,
        };
        let kinds = [BodyKind::Otlp, BodyKind::Pyroscope];
        let kind = kinds.into_iter().find(|kind| kind.extension() == extension)?;
        let is_number = number.len() == 20 && number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse().ok().filter(|_| is_number)?;
        Some(Self { number, id: BodyId::parse(id)?, kind, state, size })
    }

    pub(super) fn name(&self) -> String {
        let Self { number, id, kind, state, .. } = self;
        let suffix = match state {
            FileState::Waiting => "",
            FileState::Rejected => ".rejected",
            FileState::Damaged => ".damaged",
        };
        format!("{number:020}-{id}.{}{suffix}", kind.extension())
    }

    pub(super) fn space(&self) -> u64 {
        space(self.size)
    }

    /// The identity of its body.
    #[must_use]
    pub fn id(&self) -> BodyId {
        self.id
    }
}

pub(super) fn space(size: u64) -> u64 {
    size.max(1).checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX)
}
