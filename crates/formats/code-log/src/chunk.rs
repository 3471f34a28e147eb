//! One chunk, or several that belong together: finds the valid groups in it.

use jitdump::RecordId;
use jitdump::extension::{chunk, code, tag, tail};

use crate::followed::Followed;
use crate::words::{u32_at, u64_at};

/// The content of a chunk's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHead {
    pub(crate) epoch: u64,
    /// Number of chunks, from this one on, that belong together.
    pub(crate) span: u32,
}

impl ChunkHead {
    /// Parses the head of a chunk. `None` if there is no head: within a run of chunks, or if the log is damaged.
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

    /// Whether space of dead groups is being freed at this moment.
    pub(crate) fn is_changing(self) -> bool {
        self.epoch % 2 == 1
    }
}

/// The next step of a walk over a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The end of a valid group.
    Group(usize),
    /// The end of something that describes no code.
    Other(usize),
    /// What follows is invalid.
    Damage,
}

/// Examines what is at `at` in a chunk, or several that belong together, of `size` bytes. `header` is what follows
/// there: up to [`HEADER`] bytes, fewer only at the end of `size`.
pub(crate) fn step(header: &[u8], at: usize, size: usize, chunk_size: usize) -> Step {
    let Some(piece) = piece(header, at) else { return Step::Damage };
    let end = at.saturating_add(piece.size);
    match piece.is_group {
        true if end <= size => Step::Group(end),
        false if end <= size => Step::Other(end),
        // While chunks are being joined or split, one filler may cover several.
        false if end.checked_rem(chunk_size) == Some(0) => Step::Other(end),
        _ => Step::Damage,
    }
}

/// How many bytes of a piece are needed to identify it.
pub(crate) const HEADER: usize = END_OF_CODE;

/// Whether exactly these bytes are a valid group.
pub(crate) fn is_group(bytes: &[u8]) -> bool {
    piece(bytes, 0).is_some_and(|piece| piece.is_group && piece.size == bytes.len())
}

/// A valid group, or a record that describes no code: a filler, or part of a group that is not valid.
struct Piece {
    size: usize,
    is_group: bool,
}

/// Parses the piece at the start of `piece`, which is `at` bytes into its chunk.
fn piece(piece: &[u8], at: usize) -> Option<Piece> {
    let size = u32_at(piece, 4)? as usize;
    if size < jitdump::RECORD_HEADER_SIZE as usize {
        return None;
    }
    let other = Some(Piece { size, is_group: false });
    // Groups are aligned. What is not aligned is within a group whose first record was cut and whose tail is not
    // written yet.
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
    // Its space is being cleared: word 0 already covers the whole group, and perhaps more.
    if size > group || (size == group && flags & code::WITHOUT_BYTES == 0) {
        return other;
    }
    group.is_multiple_of(8).then_some(Piece { size: group, is_group: true })
}

/// Offset of the number of entries in DEBUG_INFO.
const NR_ENTRY: usize = 24;
const FIRST_ITEM: usize = tail::OFFSET_WITHOUT_ENTRIES + tail::HEADER_SIZE;
/// Tag and detail of the CODE item.
const CODE_ITEM: [u8; 4] = {
    let [a, b] = tag::CODE.to_ne_bytes();
    [a, b, 0, 0]
};
const END_OF_CODE: usize = tail::FIRST_PAYLOAD + code::SIZE;

/// The size of the group that begins with `header`, of [`HEADER`] bytes.
pub(crate) fn group_size(header: &[u8]) -> Option<usize> {
    piece(header, 0).filter(|piece| piece.is_group).map(|piece| piece.size)
}

/// The code that a valid group, which is at `at` in the log, describes.
pub(crate) fn code(group: &[u8], at: u64) -> Option<Followed> {
    let size = u64_at(group, tail::FIRST_PAYLOAD.checked_add(code::CODE_SIZE)?)?;
    Followed::new(at, u64_at(group, ADDRESS)?, u64_at(group, TIME)?, size)
}

/// Offsets in a group of the time of its load and of the code's address.
const TIME: usize = 8;
const ADDRESS: usize = 16;
/// Offset in a group of the time when its code was unloaded.
pub(crate) const DIED: usize = tail::FIRST_PAYLOAD + code::DIED;
