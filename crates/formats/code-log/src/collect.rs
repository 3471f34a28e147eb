//! Collects the valid groups of chunks.

use std::ops::Range;
use std::time::Duration;

use jitdump::extension::chunk::HEAD_SIZE;
use jitdump::extension::log::FIRST_CHUNK;
use jitdump::extension::tail;

use crate::budget::Budget;
use crate::chunk::{self, ChunkHead, Step};
use crate::error::Error;
use crate::head::Head;
use crate::source::Source;
use crate::words::{u32_at, u64_at};

/// How often a chunk is read again if its space was reused while it was read. To reuse space in it once more, the
/// process must first fill all other chunks, so that a second time is rare.
const ATTEMPTS: usize = 8;

/// How long, and how often in total, to wait for chunks that are being changed. After that they are read as they are:
/// a process that was killed leaves them in this state.
const WAIT: Duration = Duration::from_millis(1);
const WAITS: u32 = 200;

/// A group larger than this must not have holes, because every byte of it was written.
const LARGE: usize = 1 << 16;

/// Minimum amount read from a source.
const PAGE: u64 = 4096;

/// How much is read at a time. Little more than the beginning of a filler is read.
const STEP: usize = 1 << 16;

/// Groups found so far.
pub(crate) struct GroupCollector<'s, S> {
    pub(crate) source: &'s S,
    pub(crate) head: &'s Head,
    /// The remaining budget.
    pub(crate) budget: Budget,
    window: Window,
    /// The last range that was found to be present.
    data: Range<u64>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) groups: Vec<Group>,
    /// Receives the places in the last walk where another group may appear, if they are requested.
    pub(crate) spaces: Option<Vec<Space>>,
    pub(crate) torn: u64,
    pub(crate) is_cut: bool,
    /// Heads before this chunk are not searched for again.
    searched: u32,
    /// How often the reader waited for a chunk that was being changed.
    waits: u32,
}

/// A group that was found.
pub(crate) struct Group {
    pub(crate) time: u64,
    /// Its offset in the log.
    pub(crate) at: u64,
    /// Its place in the collected bytes.
    pub(crate) range: Range<usize>,
}

/// The result of reading a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// All valid groups were taken.
    Whole,
    /// The same, but some of its content is invalid.
    Damaged,
    /// The second pass did not find what the first had found.
    Changed,
}

impl<'s, S: Source> GroupCollector<'s, S> {
    /// A collector that has found nothing yet.
    pub(crate) fn new(source: &'s S, head: &'s Head, budget: Budget) -> Self {
        Self {
            source,
            head,
            budget,
            window: Window::default(),
            data: 0..0,
            bytes: Vec::new(),
            groups: Vec::new(),
            spaces: None,
            torn: 0,
            is_cut: false,
            searched: 0,
            waits: 0,
        }
    }

    /// The first chunk from `number` on that has any data.
    pub(crate) fn skip_hole(&mut self, number: u32) -> Result<u32, Error> {
        let start = chunk_start(self.head, number);
        if self.data.contains(&start) {
            return Ok(number);
        }
        let end = chunk_start(self.head, self.head.chunks);
        let found = self.source.next_data(start..end);
        let Some(data) = found.map_err(|cause| Error::Read { at: start, cause })? else {
            return Ok(self.head.chunks);
        };
        let gap = data.start.saturating_sub(start);
        let skipped = gap.checked_div(self.head.chunk_size.into()).unwrap_or(0);
        self.data = data;
        Ok(number.saturating_add(u32::try_from(skipped).unwrap_or(u32::MAX)).min(self.head.chunks))
    }

    /// Collects the groups of a chunk. Returns how many chunks it covers; `None` at the end of the file.
    pub(crate) fn chunk(&mut self, number: u32) -> Result<Option<u32>, Error> {
        let start = chunk_start(self.head, number);
        let chunks_left = self.head.chunks.saturating_sub(number);
        for _ in 0..ATTEMPTS {
            let before = match self.steady_head_at(start)? {
                HeadAt::Found(before) => before,
                HeadAt::End => return Ok(None),
                HeadAt::None => return self.without_head(number).map(Some),
            };
            let span = before.span.min(chunks_left);
            let size = (self.head.chunk_size as usize).saturating_mul(span as usize);
            let (bytes, groups, budget) = (self.bytes.len(), self.groups.len(), self.budget);
            let reading = self.groups_of(start, HEAD_SIZE..size, size)?;
            if self.is_cut {
                return Ok(Some(span));
            }
            if reading != Reading::Changed && self.head_at(start)? == HeadAt::Found(before) {
                self.torn = self.torn.saturating_add(u64::from(reading == Reading::Damaged));
                return Ok(Some(span));
            }
            self.bytes.truncate(bytes);
            self.groups.truncate(groups);
            self.budget = Budget { read: self.budget.read, ..budget };
        }
        self.torn = self.torn.saturating_add(1);
        Ok(Some(1))
    }

    /// The head at `at` once it is no longer being changed. A change takes a few instructions, unless the thread that
    /// makes it was preempted or killed.
    fn steady_head_at(&mut self, at: u64) -> Result<HeadAt, Error> {
        loop {
            let found = self.head_at(at)?;
            let is_changing = matches!(found, HeadAt::Found(head) if head.is_changing());
            if !is_changing || self.waits >= WAITS || !self.source.may_change() {
                return Ok(found);
            }
            self.waits = self.waits.saturating_add(1);
            std::thread::sleep(WAIT);
        }
    }

    pub(crate) fn head_at(&mut self, at: u64) -> Result<HeadAt, Error> {
        // Examining it costs one page.
        self.budget.read = self.budget.read.saturating_sub(PAGE);
        self.is_cut |= self.budget.read == 0;
        let mut bytes = [0; HEAD_SIZE];
        if read(self.source, at, &mut bytes)? < HEAD_SIZE {
            return Ok(HeadAt::End);
        }
        Ok(ChunkHead::parse(&bytes).map_or(HeadAt::None, HeadAt::Found))
    }

    /// How many chunks to skip at `number`, where there is no head. They may belong to a chunk before them that was
    /// read by itself. In that case everything in them was dead, and they were joined to it later.
    pub(crate) fn without_head(&mut self, number: u32) -> Result<u32, Error> {
        for before in (self.searched..number).rev() {
            if let HeadAt::Found(found) = self.head_at(chunk_start(self.head, before))? {
                let left = before.saturating_add(found.span).saturating_sub(number);
                if left > 0 {
                    return Ok(left);
                }
                break;
            }
        }
        self.torn = self.torn.saturating_add(1);
        self.searched = number;
        Ok(1)
    }

    /// Reads a part of a chunk of `size` bytes twice. What is valid in the first pass is complete in the second.
    pub(crate) fn groups_of(
        &mut self,
        start: u64,
        part: Range<usize>,
        size: usize,
    ) -> Result<Reading, Error> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let (mut at, mut is_damaged) = (part.start, false);
        if let Some(spaces) = &mut self.spaces {
            spaces.clear();
        }
        self.window.forget();
        while at < part.end {
            let header = chunk::HEADER.min(size.saturating_sub(at));
            let header = self.window.get(
                self.source,
                start,
                at..at.saturating_add(header),
                size,
                &mut self.budget,
            )?;
            if header.is_empty() {
                break;
            }
            match chunk::step(header, at, size, self.head.chunk_size as usize) {
                Step::Group(end) => {
                    if found.len() as u64 >= self.budget.codes || found.try_reserve(1).is_err() {
                        self.is_cut = true;
                        break;
                    }
                    found.push(at..end);
                    at = end;
                }
                Step::Other(end) => {
                    if let Some(spaces) = &mut self.spaces
                        && let Some(space) = Space::of(header, at, end)
                        && spaces.try_reserve(1).is_ok()
                    {
                        spaces.push(space);
                    }
                    at = end;
                }
                Step::Damage => {
                    is_damaged = true;
                    break;
                }
            }
            if self.budget.read == 0 {
                self.is_cut = true;
                break;
            }
        }
        // What follows the part was known, and is no longer there.
        if at > part.end && part.end < size {
            return Ok(Reading::Changed);
        }
        self.window.forget();
        for range in found {
            match self.group(start, range, size)? {
                Some(Reading::Whole) => {}
                Some(Reading::Damaged) => is_damaged = true,
                Some(Reading::Changed) => return Ok(Reading::Changed),
                None => {
                    self.is_cut = true;
                    break;
                }
            }
        }
        Ok(if is_damaged { Reading::Damaged } else { Reading::Whole })
    }

    /// Takes a group, if the second pass finds it too. `None` if the budget does not suffice.
    fn group(
        &mut self,
        start: u64,
        range: Range<usize>,
        size: usize,
    ) -> Result<Option<Reading>, Error> {
        let length = range.len();
        let at = start.saturating_add(range.start as u64);
        if length > LARGE && !self.is_there(at..at.saturating_add(length as u64))? {
            return Ok(Some(Reading::Damaged));
        }
        let held = self.budget.held.checked_sub(length as u64);
        let (Some(held), Some(codes)) = (held, self.budget.codes.checked_sub(1)) else {
            return Ok(None);
        };
        let begin = self.bytes.len();
        reserve(&mut self.bytes, length, at)?;
        if length > STEP {
            if self.budget.read < length as u64 {
                return Ok(None);
            }
            self.budget.read = self.budget.read.saturating_sub(length as u64);
            self.bytes.resize(begin.saturating_add(length), 0);
            let count = read(self.source, at, self.bytes.get_mut(begin..).unwrap_or_default())?;
            self.bytes.truncate(begin.saturating_add(count));
        } else {
            let bytes = self.window.get(self.source, start, range, size, &mut self.budget)?;
            self.bytes.extend_from_slice(bytes);
        }
        let group = self.bytes.get(begin..).unwrap_or_default();
        if group.len() < length {
            // The file ends within the group.
            self.bytes.truncate(begin);
            return Ok(if self.budget.read == 0 { None } else { Some(Reading::Damaged) });
        }
        // Words read in the first pass may be from different moments: a tail that was already there, and a size that
        // was not.
        if !chunk::is_group(group) {
            self.bytes.truncate(begin);
            return Ok(Some(Reading::Changed));
        }
        let time = u64_at(group, 8).unwrap_or(0);
        self.groups.try_reserve(1).map_err(|_| no_memory(at))?;
        self.groups.push(Group { time, at, range: begin..self.bytes.len() });
        self.budget = Budget { held, codes, ..self.budget };
        Ok(Some(Reading::Whole))
    }

    /// Whether all of this range is present.
    fn is_there(&self, range: Range<u64>) -> Result<bool, Error> {
        let error = |cause| Error::Read { at: range.start, cause };
        Ok(self.source.next_data(range.clone()).map_err(error)?.as_ref() == Some(&range))
    }
}

/// A place in a chunk in which another group may appear: a filler, or what a thread is turning into a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    /// Its offset in the chunk.
    pub(crate) at: u32,
    /// The first word of its tail. With word 0, it determines whether there is a valid group.
    tail: u32,
    /// Its word 0.
    word: u64,
}

impl Space {
    /// How many bytes of it are compared.
    pub(crate) const SIZE: usize = tail::OFFSET_WITHOUT_ENTRIES + 4;

    /// What begins with `header`, from `at` to `end`. `None` if it is too small for a group.
    fn of(header: &[u8], at: usize, end: usize) -> Option<Self> {
        if end.saturating_sub(at) < chunk::HEADER {
            return None;
        }
        Self::read(header, u32::try_from(at).ok()?)
    }

    /// What is at `at` now.
    pub(crate) fn read(header: &[u8], at: u32) -> Option<Self> {
        let (word, tail) = (u64_at(header, 0)?, u32_at(header, tail::OFFSET_WITHOUT_ENTRIES)?);
        Some(Self { at, tail, word })
    }
}

/// A part of a chunk that was read.
#[derive(Default)]
struct Window {
    bytes: Vec<u8>,
    /// Its offset in the chunk.
    at: usize,
}

impl Window {
    /// Discards what was read.
    fn forget(&mut self) {
        self.bytes.clear();
    }

    /// The bytes in `range` of the chunk of `size` bytes that begins at `start`. Fewer at the end of the source, or
    /// of the budget.
    fn get(
        &mut self,
        source: &impl Source,
        start: u64,
        range: Range<usize>,
        size: usize,
        budget: &mut Budget,
    ) -> Result<&[u8], Error> {
        let is_inside = |this: &Self| {
            range.start >= this.at && range.end <= this.at.saturating_add(this.bytes.len())
        };
        if !is_inside(self) {
            let count = size.saturating_sub(range.start).min(STEP).max(range.len());
            let count = count.min(usize::try_from(budget.read).unwrap_or(usize::MAX));
            let from = start.saturating_add(range.start as u64);
            self.at = range.start;
            self.bytes.clear();
            reserve(&mut self.bytes, count, from)?;
            self.bytes.resize(count, 0);
            let count = read(source, from, &mut self.bytes)?;
            self.bytes.truncate(count);
            budget.read = budget.read.saturating_sub(count as u64);
        }
        let begin = range.start.saturating_sub(self.at);
        let end = begin.saturating_add(range.len()).min(self.bytes.len());
        Ok(self.bytes.get(begin..end).unwrap_or_default())
    }
}

/// What is where a chunk may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadAt {
    Found(ChunkHead),
    /// There is something else.
    None,
    /// The log ends.
    End,
}

pub(crate) fn chunk_start(head: &Head, number: u32) -> u64 {
    let chunks = u64::from(head.chunk_size).saturating_mul(u64::from(number));
    chunks.saturating_add(FIRST_CHUNK as u64)
}

pub(crate) fn read(source: &impl Source, at: u64, buffer: &mut [u8]) -> Result<usize, Error> {
    source.read_at(at, buffer).map_err(|cause| Error::Read { at, cause })
}

/// Reserves space. A process may claim more data than this process can hold.
pub(crate) fn reserve(bytes: &mut Vec<u8>, more: usize, at: u64) -> Result<(), Error> {
    bytes.try_reserve(more).map_err(|_| no_memory(at))
}

pub(crate) fn no_memory(at: u64) -> Error {
    Error::Read { at, cause: std::io::ErrorKind::OutOfMemory.into() }
}
