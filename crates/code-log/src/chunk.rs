//! One chunk, or several that belong together: which groups in it count.

use std::ops::Range;

use jitdump::RecordId;
use jitdump::extension::{chunk, code, tag, tail};

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
        let is_head = u32_at(bytes, tail::OFFSET_WITHOUT_ENTRIES)? == tail::MAGIC
            && bytes.get(FIRST_ITEM..).and_then(|item| item.first_chunk())
                == Some(&tag::CHUNK.to_ne_bytes());
        if !is_head {
            return None;
        }
        let item = tail::FIRST_PAYLOAD;
        Some(Self {
            epoch: u64_at(bytes, item.checked_add(chunk::EPOCH)?)?,
            span: u32_at(bytes, item.checked_add(chunk::SPAN)?)?.max(1),
        })
    }

    /// Whether dead room is just being made room for others.
    pub(crate) fn is_changing(self) -> bool {
        self.epoch % 2 == 1
    }
}

/// Calls `found` with the range of each group in `bytes` that counts; `bytes` is a chunk, or several that belong
/// together, with its head. Returns the offset at which what follows makes no sense; `None` if all does.
pub(crate) fn groups(
    bytes: &[u8],
    chunk_size: usize,
    mut found: impl FnMut(Range<usize>),
) -> Option<usize> {
    let mut at = chunk::HEAD_SIZE;
    while at < bytes.len() {
        let Some(piece) = piece(bytes, at) else { return Some(at) };
        let end = at.saturating_add(piece.size);
        if end > bytes.len() {
            // While chunks are joined or split, one filler may cover several.
            let is_room = !piece.is_group && end.checked_rem(chunk_size) == Some(0);
            return (!is_room).then_some(at);
        }
        if piece.is_group {
            found(at..end);
        }
        at = end;
    }
    None
}

/// Whether a group of just this range counts.
pub(crate) fn is_group(bytes: &[u8], range: &Range<usize>) -> bool {
    piece(bytes, range.start).is_some_and(|piece| {
        piece.is_group && Some(piece.size) == range.end.checked_sub(range.start)
    })
}

/// A group that counts, or a record that tells of no code: a filler, or part of a group that does not count.
struct Piece {
    size: usize,
    is_group: bool,
}

fn piece(bytes: &[u8], at: usize) -> Option<Piece> {
    let piece = bytes.get(at..)?;
    let size = u32_at(piece, 4)? as usize;
    if size < jitdump::RECORD_HEADER_SIZE as usize {
        return None;
    }
    let other = Some(Piece { size, is_group: false });
    // Groups are aligned. What is not is within one whose first record is cut, and whose tail is not there yet.
    let may_be_group = at.is_multiple_of(8)
        && RecordId(u32_at(piece, 0)?) == RecordId::DEBUG_INFO
        && u64_at(piece, NR_ENTRY) == Some(0)
        && u32_at(piece, tail::OFFSET_WITHOUT_ENTRIES) == Some(tail::MAGIC)
        && u32_at(piece, FIRST_ITEM) == Some(u32::from_ne_bytes(CODE_ITEM))
        && size >= END_OF_CODE;
    if !may_be_group {
        return other;
    }
    let group = u32_at(piece, tail::FIRST_PAYLOAD.checked_add(code::GROUP_SIZE)?)? as usize;
    let flags = *piece.get(tail::FIRST_PAYLOAD.checked_add(code::FLAGS)?)?;
    // Its room is being cleared: word 0 takes in all of the group already, and perhaps more.
    if size > group || (size == group && flags & code::LEAN == 0) {
        return other;
    }
    group.is_multiple_of(8).then_some(Piece { size: group, is_group: true })
}

/// Offset of the number of entries in DEBUG_INFO.
const NR_ENTRY: usize = 24;
const FIRST_ITEM: usize = tail::OFFSET_WITHOUT_ENTRIES + tail::HEADER_SIZE;
/// Tag and detail of the item of a code.
const CODE_ITEM: [u8; 4] = {
    let [a, b] = tag::CODE.to_ne_bytes();
    [a, b, 0, 0]
};
const END_OF_CODE: usize = tail::FIRST_PAYLOAD + code::SIZE;
