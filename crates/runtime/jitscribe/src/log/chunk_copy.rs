//! Copies of the chunks of a parent's log, with the codes that were alive at the fork.

use std::ops::Range;
use std::sync::atomic::{
    Ordering::{Acquire, Relaxed},
    fence,
};
use std::time::Duration;

use fallible::Vec;
use jitdump::RecordId;
use jitdump::extension::tail::MAGIC as TAIL_MAGIC;
use jitdump::extension::{chunk as chunk_item, tag};

use super::Log;
use super::chunks::Chunks;
use super::layout::{
    CHUNK, FILLER_MIN, FIRST_ITEM, HEAD_SIZE, TAIL, chunk, code, item_word, load, record_word,
    unpair,
};
use super::mapping::Mapping;
use super::memory::Errno;
use super::records::{Piece, State, load_record, pieces};
use crate::system;

/// How often a chunk is read again when its space is reused in between.
const ATTEMPTS: usize = 16;
/// How long, and how often in total, to wait for chunks that the parent is changing: the parent may be dead.
const WAIT: Duration = Duration::from_millis(1);
const WAITS: u32 = 200;

/// A copy of one chunk, or of a run of chunks, with its head.
#[derive(Debug)]
pub(crate) struct ChunkCopy {
    /// What the child's log is to have there: the codes that were alive at the fork at their positions, and fillers between them.
    pub(crate) bytes: Vec<u8>,
    /// The number of codes in it.
    pub(crate) live: u32,
    /// The size of the fillers.
    pub(crate) space: usize,
    /// Codes that were alive at the fork, and whose space the parent has reused since: in all chunks so far.
    pub(crate) lost: u64,
    waits: u32,
}

impl ChunkCopy {
    /// With enough memory for any chunk or run.
    pub(crate) fn new(chunks: &Chunks) -> Result<Self, Errno> {
        let mut bytes = Vec::new();
        let largest = chunks.ranges().map(|(_, range)| range.len() + HEAD_SIZE).max().unwrap_or(0);
        bytes.try_reserve_exact(largest).map_err(|_| Errno::NOMEM)?;
        Ok(Self { bytes, live: 0, space: 0, lost: 0, waits: 0 })
    }

    /// Reads the chunk or run with this number and these groups, from a second mapping of the parent's log.
    pub(crate) fn read(&mut self, log: &Log, from: &Mapping, number: usize, range: Range<usize>) {
        self.clear(log, number, range.len());
        for _ in 0..ATTEMPTS {
            let start = range.start - HEAD_SIZE;
            let Some(epoch) = self.steady_epoch(from, start) else { break };
            self.read_groups(log, from, number, range.clone());
            fence(Acquire);
            if epoch_at(from, start) == Some(epoch) {
                break;
            }
            self.clear(log, number, range.len());
        }
        if self.live == 0 {
            self.fill(log, HEAD_SIZE, range.len());
        }
        self.lost += log.chunks.live_in(number).saturating_sub(self.live.into());
    }

    /// Only the head.
    fn clear(&mut self, log: &Log, number: usize, length: usize) {
        (self.live, self.space) = (0, 0);
        self.bytes.clear();
        // There is enough memory for it.
        self.bytes.resize(HEAD_SIZE + length, 0);
        let head = log.head_words(number, (HEAD_SIZE + length).div_ceil(CHUNK));
        for (at, word) in (0..).step_by(8).zip(head) {
            self.set_word(at, word);
        }
    }

    fn read_groups(&mut self, log: &Log, from: &Mapping, number: usize, range: Range<usize>) {
        let start = range.start - HEAD_SIZE;
        let (last_load, last_unload) = log.chunks.last_times(number);
        // A run had one code, at its beginning. The rest may be separate chunks by now, whose space is reused without changing
        // the run's head.
        let is_run = range.len() > CHUNK;
        let mut end = range.start;
        for piece in pieces(from, range.clone()).take(if is_run { 1 } else { usize::MAX }) {
            let died_before = match piece.state {
                State::Filler => continue,
                State::Alive => false,
                State::Dead(died) => died <= last_unload,
            };
            let time = from.word(piece.at + code::TIME).load(Acquire);
            // The gap between two codes consisted of pieces, too; otherwise the content has changed.
            let is_in_place = piece.at == end || piece.at >= end + FILLER_MIN;
            if died_before || time > last_load || !is_in_place {
                continue;
            }
            self.fill(log, end - start, piece.at - end);
            self.read_group(log, from, piece, start);
            end = piece.at + piece.size;
        }
        if self.live > 0 {
            self.fill(log, end - start, range.end - end);
        }
    }

    fn read_group(&mut self, log: &Log, from: &Mapping, piece: Piece, start: usize) {
        let at = piece.at - start;
        let words = from.many_words(piece.at, piece.size).unwrap_or_default();
        let space = self.bytes.get_mut(at..at + piece.size).unwrap_or_default();
        for (space, word) in space.as_chunks_mut().0.iter_mut().zip(words) {
            *space = word.load(Acquire).to_ne_bytes();
        }
        self.set_word(at + code::DIED, 0);
        if let Some(record) = self.load_record(at, piece.size) {
            let pid = log.pid.load(Relaxed);
            self.set_bytes(record + load::PID, &pid.to_ne_bytes());
        }
        self.live += 1;
    }

    /// Offset of the LOAD record in a group, if it has one.
    fn load_record(&self, at: usize, size: usize) -> Option<usize> {
        let half = |at: usize| {
            let bytes = self.bytes.get(at..)?.first_chunk()?;
            Some(u32::from_ne_bytes(*bytes))
        };
        load_record(at, size, half)
    }

    /// Writes a filler, of which only these words are not 0.
    fn fill(&mut self, log: &Log, at: usize, size: usize) {
        if size > 0 {
            self.set_word(at, record_word(RecordId::DEBUG_INFO.0, size));
            self.set_word(at + code::TIME, log.began.load(Relaxed));
            self.space += size;
        }
    }

    fn set_word(&mut self, at: usize, word: u64) {
        self.set_bytes(at, &word.to_ne_bytes());
    }

    fn set_bytes(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    /// The epoch of the chunk at `start` once it is not being changed. `None` if it belongs to a run by now, or if the parent
    /// cannot finish the change.
    fn steady_epoch(&mut self, from: &Mapping, start: usize) -> Option<u64> {
        loop {
            let epoch = epoch_at(from, start)?;
            if epoch.is_multiple_of(2) {
                return Some(epoch);
            }
            self.waits = self.waits.checked_add(1).filter(|waits| *waits < WAITS)?;
            system::nap(WAIT);
        }
    }
}

/// The epoch of the chunk at `start` as published in the log; `None` if it belongs to a run.
fn epoch_at(from: &Mapping, start: usize) -> Option<u64> {
    let word = |at: usize| from.word(start + at).load(Acquire);
    let is_head = unpair(word(TAIL)).0 == TAIL_MAGIC
        && word(FIRST_ITEM) == item_word(tag::CHUNK, 0, chunk_item::SIZE);
    is_head.then(|| word(chunk::EPOCH))
}
