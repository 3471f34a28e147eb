//! One chunk, or several that belong together: which groups in it count.

use std::ops::Range;

use jitdump::extension::{chunk, code, tail};

use crate::words::{u32_at, u64_at};

/// What a chunk's head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHead {
    pub(crate) epoch: u64,
    /// Number of chunks from here on that belong together.
    pub(crate) span: u32,
}

impl ChunkHead {
    /// `None` where no head stands: within a run, or if the log is damaged.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        if u32_at(bytes, tail::OFFSET_WITHOUT_ENTRIES)? != tail::MAGIC {
            return None;
        }
        let item = tail::FIRST_PAYLOAD;
        Some(Self {
            epoch: u64_at(bytes, item.checked_add(chunk::EPOCH)?)?,
            span: u32_at(bytes, item.checked_add(chunk::SPAN)?)?.max(1),
        })
    }
}

/// Calls `found` with the range of each group in `bytes` that counts; `bytes` is a chunk with its head.
/// Returns the offset at which what follows makes no sense; `None` if all does.
pub(crate) fn groups(bytes: &[u8], mut found: impl FnMut(Range<usize>)) -> Option<usize> {
    let mut at = chunk::HEAD_SIZE;
    while at < bytes.len() {
        let Some((size, is_group)) = piece(bytes, at) else { return Some(at) };
        let end = at.saturating_add(size);
        if end > bytes.len() {
            return Some(at);
        }
        if is_group {
            found(at..end);
        }
        at = end;
    }
    None
}

/// Size of the group or filler at `at`, and whether it is a group that counts.
fn piece(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    let piece = bytes.get(at..)?;
    let size = u32_at(piece, 4)? as usize;
    if size < chunk::FILLER_MIN {
        return None;
    }
    let counts =
        size >= tail::FIRST_PAYLOAD && u32_at(piece, tail::OFFSET_WITHOUT_ENTRIES)? == tail::MAGIC;
    if !counts {
        return size.is_multiple_of(8).then_some((size, false));
    }
    let group = u32_at(piece, tail::FIRST_PAYLOAD.checked_add(code::GROUP_SIZE)?)? as usize;
    (group >= size && group.is_multiple_of(8)).then_some((group, true))
}
