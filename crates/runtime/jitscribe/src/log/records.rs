//! Walks the records of a chunk, and turns them into fillers.

use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use jitdump::RecordId;
use jitdump::extension::tail::MAGIC as TAIL_MAGIC;
use jitdump::extension::{code as code_item, tag};

use super::layout::{FILLER_MIN, FIRST_ITEM, TAIL, code, item_word, load, record_word, unpair};
use super::mapping::{Mapping, Words};

/// A group, or a record that describes no code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) at: usize,
    pub(crate) size: usize,
    pub(crate) state: State,
}

/// The current state of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Free space, or a record of a group that is not committed yet, or not any more.
    Filler,
    Alive,
    /// Died at this time.
    Dead(u64),
}

/// The pieces in `range`, which begins with one.
pub(crate) fn pieces(mapping: &Mapping, range: Range<usize>) -> impl Iterator<Item = Piece> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let piece = piece(mapping, at, range.end)?;
        at += piece.size;
        Some(piece)
    })
}

/// Offset of the LOAD record in a group of `size` bytes at `at`, if it has one. `half` reads 32 bits.
pub(crate) fn load_record(
    at: usize,
    size: usize,
    half: impl Fn(usize) -> Option<u32>,
) -> Option<usize> {
    let end = at + size;
    let mut record = at + half(at + 4)? as usize;
    while record + load::NAME <= end {
        let (id, size) = (half(record)?, half(record + 4)?);
        if id == RecordId::LOAD.0 {
            return Some(record);
        }
        if size < 16 {
            return None;
        }
        record += size as usize;
    }
    None
}

fn piece(mapping: &Mapping, at: usize, end: usize) -> Option<Piece> {
    let left = end.checked_sub(at).filter(|left| *left >= FILLER_MIN)?;
    if !at.is_multiple_of(8) {
        // Groups and fillers are aligned. So this is within a group whose first record is written and whose tail
        // is not yet. Its records were written before.
        let size = half_anywhere(mapping, at + 4) as usize;
        return (16..=left).contains(&size).then_some(Piece { at, size, state: State::Filler });
    }
    if left < code::END {
        // Too small for a group.
        let size = unpair(mapping.word(at).load(Acquire)).1 as usize;
        return (16..=left).contains(&size).then_some(Piece { at, size, state: State::Filler });
    }
    let words = mapping.words::<{ code::END / 8 }>(at);
    // Loaded in the opposite order of the stores: a tail is valid only when the filler is cut.
    let has_tail = unpair(words.at::<TAIL>().load(Acquire)).0 == TAIL_MAGIC
        && words.at::<{ code::ENTRIES }>().load(Relaxed) == 0;
    let (id, size) = unpair(words.at::<0>().load(Acquire));
    let size = size as usize;
    if size < 16 || size > left {
        return None;
    }
    let filler = Piece { at, size, state: State::Filler };
    if !has_tail || id != RecordId::DEBUG_INFO.0 {
        return Some(filler);
    }
    let item = item_word(tag::CODE, 0, code_item::SIZE);
    if words.at::<FIRST_ITEM>().load(Relaxed) != item {
        return Some(filler);
    }
    let group = unpair(words.at::<{ code::GROUP_SIZE }>().load(Relaxed)).0 as usize;
    let is_without_bytes =
        mapping.byte(at + code::FLAGS).load(Relaxed) & code_item::WITHOUT_BYTES != 0;
    // Being cleared: word 0 already covers the whole group, and perhaps more.
    if size > group || (size == group && !is_without_bytes) {
        return Some(filler);
    }
    if group > left || !group.is_multiple_of(8) {
        return None;
    }
    // The thread that unloaded the code had read it before: from then on, its space may be written with plain
    // stores.
    let died = words.at::<{ code::DIED }>().load(Acquire);
    let state = if died == 0 { State::Alive } else { State::Dead(died) };
    Some(Piece { at, size: group, state })
}

/// A number that need not be aligned: records within a group are not.
pub(super) fn half_anywhere(mapping: &Mapping, at: usize) -> u32 {
    u32::from_ne_bytes(std::array::from_fn(|byte| mapping.byte(at + byte).load(Relaxed)))
}

/// Writes a filler of `size` bytes at `at`, in memory that no other thread writes. `time` is the file's timestamp.
///
/// If there were dead groups, the first store covers all of them, and the last store removes the tail of the
/// first one. In the opposite order, a dead group with a LOAD record would look alive to tools that do not know
/// about tails.
#[inline]
pub(crate) fn fill(mapping: &Mapping, at: usize, size: usize, time: u64) {
    if size >= FIRST_ITEM {
        let filler = mapping.words::<{ FIRST_ITEM / 8 }>(at);
        fill_fields(filler, size, time);
        filler.at::<TAIL>().store(0, Release);
    } else {
        fill_fields(mapping.words::<{ FILLER_MIN / 8 }>(at), size, time);
    }
}

#[inline]
fn fill_fields<const N: usize>(filler: Words<'_, N>, size: usize, time: u64) {
    filler.at::<0>().store(record_word(RecordId::DEBUG_INFO.0, size), Release);
    filler.at::<{ code::TIME }>().store(time, Release);
    filler.at::<{ code::ADDRESS }>().store(0, Release);
    filler.at::<{ code::ENTRIES }>().store(0, Release);
}
