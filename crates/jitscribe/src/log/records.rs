//! Walking the records of a chunk, and making fillers of them.

use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use jitdump::RecordId;
use jitdump::extension::tail::MAGIC as TAIL_MAGIC;

use super::layout::{FILLER_MIN, FIRST_ITEM, TAIL, code, record_word, unpair};
use super::mapping::Mapping;

/// A group or a filler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) at: usize,
    pub(crate) size: usize,
    pub(crate) state: State,
}

/// What a piece is at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Room, or a group that does not count yet.
    Filler,
    Alive,
    /// Died at this time.
    Dead(u64),
}

/// The pieces in `range`, which begins with one.
pub(crate) fn pieces(mapping: &Mapping, range: Range<usize>) -> impl Iterator<Item = Piece> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        if range.end.checked_sub(at)? < FILLER_MIN {
            return None;
        }
        let piece = piece(mapping, at)?;
        at = at.checked_add(piece.size)?;
        (at <= range.end).then_some(piece)
    })
}

fn piece(mapping: &Mapping, at: usize) -> Option<Piece> {
    // Loaded in the order opposite to that of the stores: a tail counts only when the filler is cut.
    let has_tail = at + FIRST_ITEM <= mapping.size()
        && unpair(mapping.word(at + TAIL).load(Acquire)).0 == TAIL_MAGIC;
    let size = unpair(mapping.word(at).load(Acquire)).1 as usize;
    if size < FILLER_MIN {
        return None;
    }
    if size < FIRST_ITEM || !has_tail {
        return Some(Piece { at, size, state: State::Filler });
    }
    let size = mapping.half(at + code::GROUP_SIZE).load(Relaxed) as usize;
    let died = mapping.word(at + code::DIED).load(Relaxed);
    let state = if died == 0 { State::Alive } else { State::Dead(died) };
    Some(Piece { at, size, state })
}

/// Makes a filler of `size` bytes at `at`, of memory that nobody else writes. `time` is that of the file.
///
/// Where dead groups stood, the first store covers them all; the last one takes away what made the first of them
/// count.
pub(crate) fn fill(mapping: &Mapping, at: usize, size: usize, time: u64) {
    mapping.word(at).store(record_word(RecordId::DEBUG_INFO.0, size), Release);
    mapping.word(at + code::TIME).store(time, Relaxed);
    mapping.word(at + code::ADDRESS).store(0, Relaxed);
    mapping.word(at + code::ENTRIES).store(0, Relaxed);
    if size >= FIRST_ITEM {
        mapping.word(at + TAIL).store(0, Release);
    }
}
