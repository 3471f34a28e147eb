//! A snapshot of a log.

use std::ops::Range;
use std::time::Duration;

use jitdump::extension::chunk::HEAD_SIZE;
use jitdump::extension::log::FIRST_CHUNK;
use jitdump::extension::{code, tail};

use crate::chunk::{self, ChunkHead, Step};
use crate::error::Error;
use crate::head::Head;
use crate::source::Source;
use crate::words::u64_at;

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

/// Offset in a group of the time when its code was unloaded.
const DIED: usize = tail::FIRST_PAYLOAD + code::DIED;

/// How much is read at a time. Little more than the beginning of a filler is read.
const STEP: usize = 1 << 16;

/// Limits on how much of a log is read. A log may claim content that does not exist, and its process may keep
/// changing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Maximum size of the snapshot in bytes.
    pub held: u64,
    /// Maximum number of bytes read for it. A chunk that changes while it is read is read again.
    pub read: u64,
    /// Maximum number of codes in it.
    pub codes: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { held: 1 << 30, read: 8 << 30, codes: 1 << 24 }
    }
}

/// The content of a log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// A jitdump: the log's header, its control words, and all valid groups, in the order of their timestamps.
    pub bytes: Vec<u8>,
    /// The control words.
    pub head: Head,
    /// Number of codes.
    pub codes: u64,
    /// Number of chunks that could not be read completely: damaged, or changing all the time.
    pub torn: u64,
    /// Whether the log exceeded the [`Budget`], so that the rest is left out.
    pub is_cut: bool,
}

/// Reads the log in `source`, within the default budget.
///
/// The snapshot contains all codes that were announced before the call, unless they were unloaded and their space was
/// reused. Of the codes announced during the call, it contains some.
///
/// # Errors
/// If there is no log, or it cannot be read.
pub fn snapshot(source: &impl Source) -> Result<Snapshot, Error> {
    snapshot_within(source, Budget::default())
}

/// Reads the log in `source` within a budget: see [`snapshot()`].
///
/// # Errors
/// If there is no log, or it cannot be read.
pub fn snapshot_within(source: &impl Source, budget: Budget) -> Result<Snapshot, Error> {
    snapshot_until(source, budget, None)
}

/// The log of a process's parent, as far as its codes belong to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inherited {
    /// Its address in the process.
    pub address: u64,
    /// Its size there.
    pub size: u64,
    /// The time of the fork. Codes that were announced later are not the process's, and codes that died later are alive in it.
    pub until: u64,
}

impl Inherited {
    /// What the log in `source` inherits. `None` if it has all of its codes itself.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(source: &impl Source, head: &Head) -> Result<Option<Self>, Error> {
        let Some(address) = head.inherited else { return Ok(None) };
        let mut bytes = [0; HEAD_SIZE];
        let count = read(source, FIRST_CHUNK as u64, &mut bytes)?;
        // The filler at the positions of these codes.
        let first = ChunkHead::parse(bytes.get(..count).unwrap_or_default());
        let span = first.map_or(0, |first| u64::from(first.span));
        let chunks = span.saturating_mul(u64::from(head.chunk_size));
        let size = chunks.saturating_add(FIRST_CHUNK as u64);
        Ok(Some(Self { address, size, until: head.forked }))
    }

    /// The codes in it that belong to the process. `source` is the memory at its address.
    ///
    /// # Errors
    /// As for [`snapshot()`].
    pub fn snapshot(&self, source: &impl Source) -> Result<Snapshot, Error> {
        snapshot_until(source, Budget::default(), Some(self.until))
    }
}

impl Snapshot {
    /// Adds the codes of another snapshot, which are older.
    pub fn add_older(&mut self, older: &Self) {
        let groups = older.bytes.get(FIRST_CHUNK..).unwrap_or_default();
        if self.bytes.try_reserve(groups.len()).is_err() {
            self.is_cut = true;
            return;
        }
        self.bytes.splice(FIRST_CHUNK..FIRST_CHUNK, groups.iter().copied());
        self.codes = self.codes.saturating_add(older.codes);
        self.torn = self.torn.saturating_add(older.torn);
        self.is_cut |= older.is_cut;
    }
}

fn snapshot_until(
    source: &impl Source,
    budget: Budget,
    until: Option<u64>,
) -> Result<Snapshot, Error> {
    let mut first = vec![0; FIRST_CHUNK];
    let count = read(source, 0, &mut first)?;
    first.truncate(count);
    let head = Head::parse(&first)?;
    if first.len() < FIRST_CHUNK {
        return Err(Error::NotALog("it is too short"));
    }
    let mut collected = GroupCollector {
        source,
        head: &head,
        budget,
        window: Window::default(),
        data: 0..0,
        bytes: Vec::new(),
        groups: Vec::new(),
        torn: 0,
        is_cut: false,
        searched: 0,
        waits: 0,
    };
    let mut number = 0;
    while number < head.chunks && !collected.is_cut {
        let there = collected.skip_hole(number)?;
        if there > number {
            // A chunk in use has been written to, so a hole is damage.
            collected.torn = collected.torn.saturating_add(1);
            number = there;
            continue;
        }
        match collected.chunk(number)? {
            Some(span) => number = number.saturating_add(span.max(1)),
            None => break,
        }
    }
    let GroupCollector { bytes, mut groups, torn, is_cut, .. } = collected;
    groups.retain(|group| until.is_none_or(|until| group.time <= until));
    groups.sort_by_key(|group| group.time);
    let mut out = first;
    reserve(&mut out, bytes.len(), 0)?;
    for group in &groups {
        let begin = out.len();
        out.extend_from_slice(bytes.get(group.range.clone()).unwrap_or_default());
        let died = begin.saturating_add(DIED)..begin.saturating_add(DIED).saturating_add(8);
        if let Some(until) = until
            && let Some(died) = out.get_mut(died)
            && died.first_chunk().is_some_and(|died| u64::from_ne_bytes(*died) > until)
        {
            died.fill(0);
        }
    }
    Ok(Snapshot { bytes: out, head, codes: groups.len() as u64, torn, is_cut })
}

/// Groups found so far.
struct GroupCollector<'s, S> {
    source: &'s S,
    head: &'s Head,
    /// The remaining budget.
    budget: Budget,
    window: Window,
    /// The last range that was found to be present.
    data: Range<u64>,
    bytes: Vec<u8>,
    groups: Vec<Group>,
    torn: u64,
    is_cut: bool,
    /// Heads before this chunk are not searched for again.
    searched: u32,
    /// How often the reader waited for a chunk that was being changed.
    waits: u32,
}

struct Group {
    time: u64,
    range: Range<usize>,
}

/// The result of reading a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// All valid groups were taken.
    Whole,
    /// The same, but some of its content is invalid.
    Damaged,
    /// The second pass did not find what the first had found.
    Changed,
}

impl<S: Source> GroupCollector<'_, S> {
    /// The first chunk from `number` on that has any data.
    fn skip_hole(&mut self, number: u32) -> Result<u32, Error> {
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
    fn chunk(&mut self, number: u32) -> Result<Option<u32>, Error> {
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
            let reading = self.groups_of(start, size)?;
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

    fn head_at(&mut self, at: u64) -> Result<HeadAt, Error> {
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
    fn without_head(&mut self, number: u32) -> Result<u32, Error> {
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

    /// Reads a chunk twice. What is valid in the first pass is complete in the second.
    fn groups_of(&mut self, start: u64, size: usize) -> Result<Reading, Error> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let (mut at, mut is_damaged) = (HEAD_SIZE, false);
        self.window.forget();
        while at < size {
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
                Step::Other(end) => at = end,
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
        self.groups.push(Group { time, range: begin..self.bytes.len() });
        self.budget = Budget { held, codes, ..self.budget };
        Ok(Some(Reading::Whole))
    }

    /// Whether all of this range is present.
    fn is_there(&self, range: Range<u64>) -> Result<bool, Error> {
        let error = |cause| Error::Read { at: range.start, cause };
        Ok(self.source.next_data(range.clone()).map_err(error)?.as_ref() == Some(&range))
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadAt {
    Found(ChunkHead),
    /// There is something else.
    None,
    /// The log ends.
    End,
}

fn chunk_start(head: &Head, number: u32) -> u64 {
    let chunks = u64::from(head.chunk_size).saturating_mul(u64::from(number));
    chunks.saturating_add(FIRST_CHUNK as u64)
}

fn read(source: &impl Source, at: u64, buffer: &mut [u8]) -> Result<usize, Error> {
    source.read_at(at, buffer).map_err(|cause| Error::Read { at, cause })
}

/// Reserves space. A process may claim more data than this process can hold.
fn reserve(bytes: &mut Vec<u8>, more: usize, at: u64) -> Result<(), Error> {
    bytes.try_reserve(more).map_err(|_| no_memory(at))
}

fn no_memory(at: u64) -> Error {
    Error::Read { at, cause: std::io::ErrorKind::OutOfMemory.into() }
}
