//! Finds codes in a log without a lock and without memory of its own, so that a signal handler may do it at any instant.
//!
//! Other threads may be writing during a lookup. A chunk whose space was reused while it was read is read again: its epoch has changed,
//! as readers in other processes recognize it. What a reader found is checked once more after it was copied. Words that a thread is
//! writing with plain stores are behind the first item of a group, and are read only if the group was valid a moment before. Their
//! values count only if the epoch is still the same.

use std::sync::atomic::{
    Ordering::{Acquire, Relaxed},
    fence,
};

use jitdump::extension::tail::MAGIC as TAIL_MAGIC;
use jitdump::extension::{chunk as chunk_item, tag};

use super::layout::{
    CHUNK, FIRST_CHUNK, FIRST_ITEM, HEAD_SIZE, TAIL, chunk, code, control, item_word, unpair,
};
use super::mapping::Mapping;
use super::records::{Piece, State, pieces};

/// How often a chunk is read whose space is reused again and again. That takes all other chunks to be filled in between.
const ATTEMPTS: usize = 32;

/// A log as one reader sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogView<'m> {
    pub(crate) mapping: &'m Mapping,
    /// For the log of a parent: the time of the fork, as of which it is read.
    pub(crate) until: Option<u64>,
}

/// A code that is alive, as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundCode {
    /// The offset and size of its group.
    pub(crate) at: usize,
    pub(crate) group_size: usize,
    pub(crate) address: u64,
    pub(crate) size: u64,
    time: u64,
    index: u64,
    died: u64,
    /// The offset of its chunk, and that chunk's head.
    chunk: usize,
    head: ChunkHead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChunkHead {
    epoch: u64,
    span: usize,
}

impl<'m> LogView<'m> {
    /// The code at `pc` that was announced last.
    pub(crate) fn find(&self, pc: u64) -> Option<FoundCode> {
        let mut newest: Option<FoundCode> = None;
        self.each_code(&mut newest, |newest, code| {
            let is_newer = newest.is_none_or(|newest| newest.time <= code.time);
            if is_newer && pc.wrapping_sub(code.address) < code.size {
                *newest = Some(code);
            }
        });
        newest
    }

    /// Calls `look` with each code that is alive. When a chunk is read again, `state` is set back to what it was before the chunk.
    pub(crate) fn each_code<S: Copy>(
        &self,
        state: &mut S,
        mut look: impl FnMut(&mut S, FoundCode),
    ) {
        let in_use = self.mapping.half(control::CHUNKS).load(Acquire) as usize;
        let in_use = in_use.min((self.mapping.size() - FIRST_CHUNK) / CHUNK);
        let mut number = 0;
        while number < in_use {
            let at = FIRST_CHUNK + number * CHUNK;
            let mut span = 1;
            for attempt in 1..=ATTEMPTS {
                // Without a head: a part of a run that was joined just now.
                let Some(head) = self.head(at) else { break };
                span = head.span.clamp(1, in_use - number);
                let mut found = *state;
                for piece in pieces(self.mapping, at + HEAD_SIZE..at + span * CHUNK) {
                    if let Some(code) = self.alive(piece, at, head) {
                        look(&mut found, code);
                    }
                }
                fence(Acquire);
                if self.head(at) == Some(head) || attempt == ATTEMPTS {
                    *state = found;
                    break;
                }
            }
            number += span;
        }
    }

    /// Whether `code` is still where it was found, so that what was read of it since is its description.
    pub(crate) fn is_unchanged(&self, code: &FoundCode) -> bool {
        fence(Acquire);
        let word = |offset: usize| self.mapping.word(code.at + offset).load(Relaxed);
        word(code::INDEX) == code.index
            && word(code::DIED) == code.died
            && self.head(code.chunk) == Some(code.head)
    }

    /// The code of a piece, if it is alive.
    fn alive(&self, piece: Piece, chunk: usize, head: ChunkHead) -> Option<FoundCode> {
        let died = match piece.state {
            State::Filler => return None,
            State::Alive => 0,
            State::Dead(died) => died,
        };
        let word = |offset: usize| self.mapping.word(piece.at + offset).load(Relaxed);
        let time = word(code::TIME);
        let is_alive = match self.until {
            None => died == 0,
            Some(until) => time <= until && (died == 0 || died > until),
        };
        is_alive.then(|| FoundCode {
            at: piece.at,
            group_size: piece.size,
            address: word(code::ADDRESS),
            size: word(code::CODE_SIZE),
            time,
            index: word(code::INDEX),
            died,
            chunk,
            head,
        })
    }

    /// The head of the chunk at this offset; `None` within a run.
    fn head(&self, at: usize) -> Option<ChunkHead> {
        let word = |offset: usize| self.mapping.word(at + offset).load(Acquire);
        let is_head = unpair(word(TAIL)).0 == TAIL_MAGIC
            && word(FIRST_ITEM) == item_word(tag::CHUNK, 0, chunk_item::SIZE);
        is_head.then(|| ChunkHead {
            epoch: word(chunk::EPOCH),
            span: unpair(word(chunk::SPAN)).0 as usize,
        })
    }
}
