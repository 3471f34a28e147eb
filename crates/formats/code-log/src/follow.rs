//! A log that is read again and again: of a log that was read before, only what has changed.
//!
//! In a chunk whose epoch is the same, groups stay where they are, and others appear only in the places where there was space. So
//! a reader that remembers the epoch of each chunk, and the first words of each space in it, knows by reading these whether there
//! is a group that it has not seen. That a code was unloaded changes neither: it is read when somebody asks for the code.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use jitdump::extension::chunk::HEAD_SIZE;
use jitdump::extension::log::FIRST_CHUNK;

use crate::budget::Budget;
use crate::chunk::{self, ChunkHead, DIED};
use crate::collect::{GroupCollector, HeadAt, Reading, Space, chunk_start, no_memory, read};
use crate::error::Error;
use crate::followed::Followed;
use crate::head::{FILE_HEADER, Head};
use crate::source::Source;
use crate::words::u64_at;

/// How often a chunk is read again if its space was reused while it was read. After that, it is left to the next update.
const ATTEMPTS: usize = 4;

/// Spaces that are at most this far apart are read at once.
const NEAR: u32 = 4096;

/// What an update did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Update {
    /// Number of chunks of which a part was read, because something in them had changed.
    pub chunks_read: u64,
    /// Number of bytes that were read, with those by which changes are recognized.
    pub bytes_read: u64,
    /// Number of times that something was read.
    pub reads: u64,
    /// Number of codes that are new.
    pub added: u64,
    /// Number of codes whose space was reused.
    pub removed: u64,
    /// Number of chunks that are damaged, or that changed while they were read. They are read again by the next update.
    pub torn: u64,
    /// Whether the [`Budget`] did not suffice, so that the rest is left to the next update, or left out.
    pub is_cut: bool,
}

/// Reads a log again and again.
///
/// It keeps a few words of each code, and finds the rest in the log when it is asked for. After [`Self::update`], it has the
/// codes that [`snapshot`](crate::snapshot()) would find. In a chunk whose space is being freed at that moment, it may have dead codes that
/// are no longer there.
///
/// ```
/// # fn follow(log: &impl code_log::Source) -> Result<(), code_log::Error> {
/// let mut follower = code_log::Follower::new(None);
/// follower.update(log, code_log::Budget::default(), |_| 0)?;
/// for code in follower.codes() {
///     if let Some(dump) = follower.code(log, code, 1 << 20)? {
///         // A jitdump with this code.
///         println!("{:x}: {:?}", code.address, jitdump::Dump::parse(&dump));
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Follower {
    until: Option<u64>,
    head: Option<Head>,
    file_header: [u8; FILE_HEADER],
    chunks: BTreeMap<u32, Chunk>,
    codes: u64,
}

/// A chunk, or several that belong together, as it was read.
#[derive(Clone, Debug)]
struct Chunk {
    head: ChunkHead,
    /// Whether it was read completely.
    is_whole: bool,
    codes: Box<[Followed]>,
    spaces: Box<[Space]>,
}

impl Follower {
    /// Follows a log of which nothing has been read yet. `until` is the time after which its codes do not belong to the process, for
    /// a log of the process's parent.
    #[must_use]
    pub fn new(until: Option<u64>) -> Self {
        Self { until, head: None, file_header: [0; FILE_HEADER], chunks: BTreeMap::new(), codes: 0 }
    }

    /// The log's control words at the last update.
    #[must_use]
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// Number of codes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.codes
    }

    /// Whether there is no code.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.codes == 0
    }

    /// The codes, in the order of their places in the log.
    pub fn codes(&self) -> impl Iterator<Item = &Followed> {
        self.chunks.values().flat_map(|chunk| &chunk.codes)
    }

    /// Memory that the codes take, in bytes.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.chunks.values().fold(0, |sum, chunk| {
            let parts = size_of::<(u32, Chunk)>()
                .saturating_add(size_of_val(&*chunk.codes))
                .saturating_add(size_of_val(&*chunk.spaces));
            sum.saturating_add(parts as u64)
        })
    }

    /// Reads what has changed since the last update. `tag` gets each new code, as a jitdump with this code alone.
    ///
    /// It does not wait: what is being changed is read as it is, and again by the next update.
    ///
    /// # Errors
    /// If there is no log, or it cannot be read. What was read before remains.
    pub fn update(
        &mut self,
        source: &impl Source,
        budget: Budget,
        mut tag: impl FnMut(&[u8]) -> u64,
    ) -> Result<Update, Error> {
        let source = &Counted { source, bytes: Cell::new(0), reads: Cell::new(0) };
        let mut first = [0; Head::SIZE];
        let count = read(source, 0, &mut first)?;
        let head = Head::parse(first.get(..count).unwrap_or_default())?;
        let is_other = |known: &Head| {
            (known.pid, known.chunk_size, known.arch_timestamp)
                != (head.pid, head.chunk_size, head.arch_timestamp)
        };
        let mut update = Update::default();
        if self.head.as_ref().is_some_and(is_other) {
            self.chunks.clear();
            update.removed = std::mem::take(&mut self.codes);
        }
        self.head = Some(head);
        if let Some(header) = first.first_chunk() {
            self.file_header = *header;
        }
        let mut collected = GroupCollector::new(source, &head, budget);
        collected.spaces = Some(Vec::new());
        let mut number = 0;
        while number < head.chunks && !collected.is_cut {
            let there = collected.skip_hole(number)?;
            if there > number {
                collected.torn = collected.torn.saturating_add(1);
                update.removed = update.removed.saturating_add(self.forget(number..there));
                number = there;
                continue;
            }
            let Some(span) = self.chunk(&mut collected, number, budget, &mut tag, &mut update)?
            else {
                break;
            };
            let next = number.saturating_add(span.max(1));
            // They belong to this one now.
            update.removed =
                update.removed.saturating_add(self.forget(number.saturating_add(1)..next));
            number = next;
        }
        if !collected.is_cut {
            update.removed = update.removed.saturating_add(self.forget(number..u32::MAX));
        }
        update.torn = collected.torn;
        update.is_cut = collected.is_cut;
        update.bytes_read = source.bytes.get();
        update.reads = source.reads.get();
        Ok(update)
    }

    /// Forgets chunks that are no longer there. Returns the number of their codes.
    fn forget(&mut self, chunks: Range<u32>) -> u64 {
        let mut count = 0_u64;
        if !chunks.is_empty() {
            while let Some((&number, _)) = self.chunks.range(chunks.clone()).next() {
                let codes = self.chunks.remove(&number).map_or(0, |chunk| chunk.codes.len());
                count = count.saturating_add(codes as u64);
            }
        }
        self.codes = self.codes.saturating_sub(count);
        count
    }

    /// Brings a chunk up to date. Returns how many chunks it covers; `None` at the end of the log.
    fn chunk<S: Source>(
        &mut self,
        collected: &mut GroupCollector<'_, Counted<'_, S>>,
        number: u32,
        budget: Budget,
        tag: &mut impl FnMut(&[u8]) -> u64,
        update: &mut Update,
    ) -> Result<Option<u32>, Error> {
        let head = collected.head;
        let start = chunk_start(head, number);
        let chunks_left = head.chunks.saturating_sub(number);
        for _ in 0..ATTEMPTS {
            let now = match collected.head_at(start)? {
                HeadAt::Found(now) => now,
                HeadAt::End => return Ok(None),
                HeadAt::None => return collected.without_head(number).map(Some),
            };
            let span = now.span.min(chunks_left);
            let size = (head.chunk_size as usize).saturating_mul(span as usize);
            let known = self.chunks.get(&number).filter(|known| known.head == now);
            let whole = HEAD_SIZE..size;
            let parts = match known.filter(|known| known.is_whole) {
                Some(known) => known.changed_parts(collected.source, start, size)?,
                None => vec![whole.clone()],
            };
            if parts.is_empty() {
                return Ok(Some(span));
            }
            // Codes of this chunk that are read again do not count twice.
            let before = self.chunks.get(&number).map_or(0, |known| known.codes.len() as u64);
            let is_all = parts.first() == Some(&whole);
            let others = self.codes.saturating_sub(if is_all { before } else { 0 });
            collected.budget.codes = budget.codes.saturating_sub(others);
            collected.budget.held = budget.held;
            collected.bytes.clear();
            collected.groups.clear();
            let mut spaces = Vec::new();
            let mut reading = Reading::Whole;
            for part in &parts {
                match collected.groups_of(start, part.clone(), size)? {
                    Reading::Whole => {}
                    other if reading != Reading::Changed => reading = other,
                    _ => {}
                }
                spaces.append(collected.spaces.get_or_insert_default());
            }
            if collected.head_at(start)? != HeadAt::Found(now) {
                reading = Reading::Changed;
            }
            if reading == Reading::Changed {
                if !is_all && let Some(known) = self.chunks.get_mut(&number) {
                    known.is_whole = false;
                }
                continue;
            }
            let is_whole = reading == Reading::Whole && !collected.is_cut;
            collected.torn = collected.torn.saturating_add(u64::from(reading == Reading::Damaged));
            update.chunks_read = update.chunks_read.saturating_add(1);
            let kept = known.filter(|_| !is_all);
            let chunk = self.merged(collected, now, &parts, kept, spaces, is_whole, number, tag)?;
            let (added, removed) = difference(
                self.chunks.get(&number).map_or(&[], |known| &known.codes),
                &chunk.codes,
            );
            update.added = update.added.saturating_add(added);
            update.removed = update.removed.saturating_add(removed);
            self.codes = self.codes.saturating_add(added).saturating_sub(removed);
            self.chunks.insert(number, chunk);
            return Ok(Some(span));
        }
        collected.torn = collected.torn.saturating_add(1);
        if let Some(known) = self.chunks.get_mut(&number) {
            known.is_whole = false;
        }
        Ok(Some(1))
    }

    /// The chunk as it is now: what is `kept` of it outside of the parts that were read, and what was found in these.
    #[expect(clippy::too_many_arguments, reason = "all that is known of a chunk")]
    fn merged<S: Source>(
        &self,
        collected: &GroupCollector<'_, S>,
        head: ChunkHead,
        parts: &[Range<usize>],
        kept: Option<&Chunk>,
        mut spaces: Vec<Space>,
        is_whole: bool,
        number: u32,
        tag: &mut impl FnMut(&[u8]) -> u64,
    ) -> Result<Chunk, Error> {
        let at = chunk_start(collected.head, number);
        let old = self.chunks.get(&number).map_or(&[][..], |known| &known.codes);
        let mut codes: Vec<Followed> = kept.map_or_else(Vec::new, |kept| kept.codes.to_vec());
        codes.try_reserve(collected.groups.len()).map_err(|_| no_memory(at))?;
        let mut dump = Vec::new();
        for group in &collected.groups {
            if self.until.is_some_and(|until| group.time > until) {
                continue;
            }
            let bytes = collected.bytes.get(group.range.clone()).unwrap_or_default();
            let Some(mut code) = chunk::code(bytes, group.at) else { continue };
            let same = old.binary_search_by_key(&code.at, |known| known.at).ok();
            match same.and_then(|same| old.get(same)).filter(|same| same.is_same(&code)) {
                Some(same) => code.tag = same.tag,
                None => {
                    dump.clear();
                    dump.try_reserve(bytes.len().saturating_add(FILE_HEADER))
                        .map_err(|_| no_memory(group.at))?;
                    dump.extend_from_slice(&self.file_header);
                    dump.extend_from_slice(bytes);
                    code.tag = tag(&dump);
                }
            }
            codes.push(code);
        }
        codes.sort_unstable_by_key(|code| code.at);
        codes.dedup_by_key(|code| code.at);
        if let Some(kept) = kept {
            let is_outside =
                |space: &&Space| !parts.iter().any(|part| part.contains(&(space.at as usize)));
            spaces.extend(kept.spaces.iter().filter(is_outside));
        }
        spaces.sort_unstable_by_key(|space| space.at);
        Ok(Chunk { head, is_whole, codes: codes.into(), spaces: spaces.into() })
    }

    /// A jitdump with one code: what the log has of it now. `None` if the space of its chunk was reused since the last update, if it
    /// has more bytes than `most`, or if it is not a code of this log.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn code(
        &self,
        source: &impl Source,
        code: &Followed,
        most: usize,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.unchanged(source, code, || {
            let at = code.at();
            let mut header = [0; chunk::HEADER];
            if read(source, at, &mut header)? < header.len() {
                return Ok(None);
            }
            let Some(size) = chunk::group_size(&header).filter(|size| *size <= most) else {
                return Ok(None);
            };
            let mut dump = Vec::new();
            dump.try_reserve(size.saturating_add(FILE_HEADER)).map_err(|_| no_memory(at))?;
            dump.extend_from_slice(&self.file_header);
            dump.resize(size.saturating_add(FILE_HEADER), 0);
            let group = dump.get_mut(FILE_HEADER..).unwrap_or_default();
            let is_there = read(source, at, group)? == size
                && chunk::is_group(group)
                && chunk::code(group, at).is_some_and(|found| found.is_same(code));
            if let Some(until) = self.until
                && let Some(died) = group.get_mut(DIED..DIED.saturating_add(8))
                && died.first_chunk().is_some_and(|died| u64::from_ne_bytes(*died) > until)
            {
                died.fill(0);
            }
            Ok(is_there.then_some(dump))
        })
    }

    /// When a code was unloaded; 0 while it is loaded. `None` as for [`Self::code`].
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn died(&self, source: &impl Source, code: &Followed) -> Result<Option<u64>, Error> {
        self.unchanged(source, code, || {
            let mut word = [0; 8];
            let count = read(source, code.at().saturating_add(DIED as u64), &mut word)?;
            let died = u64_at(&word, 0).filter(|_| count == word.len());
            let is_of_process = |died: &u64| self.until.is_none_or(|until| *died <= until);
            Ok(died.map(|died| Some(died).filter(is_of_process).unwrap_or(0)))
        })
    }

    /// The result of `read`, if the space of the code's chunk was not reused, neither before nor while it reads.
    fn unchanged<T>(
        &self,
        source: &impl Source,
        code: &Followed,
        read: impl FnOnce() -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let Some(head) = &self.head else { return Ok(None) };
        let behind = code.at().saturating_sub(FIRST_CHUNK as u64);
        let number = behind.checked_div(head.chunk_size.into()).unwrap_or(0);
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        // A code may be in a chunk that begins before.
        let Some((&number, chunk)) = self.chunks.range(..=number).next_back() else {
            return Ok(None);
        };
        let known = chunk.codes.binary_search_by_key(&code.at, |known| known.at).ok();
        if !known.and_then(|at| chunk.codes.get(at)).is_some_and(|known| known.is_same(code)) {
            return Ok(None);
        }
        let start = chunk_start(head, number);
        let is_same = || Ok(head_at(source, start)? == HeadAt::Found(chunk.head));
        if !is_same()? {
            return Ok(None);
        }
        let found = read()?;
        Ok(if is_same()? { found } else { None })
    }
}

impl Chunk {
    /// The parts in which there may be other groups than at the last reading.
    fn changed_parts(
        &self,
        source: &impl Source,
        start: u64,
        size: usize,
    ) -> Result<Vec<Range<usize>>, Error> {
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut buffer = Vec::new();
        let mut spaces: &[Space] = &self.spaces;
        while let Some(first) = spaces.first() {
            let near = spaces.partition_point(|space| space.at.saturating_sub(first.at) < NEAR);
            let (together, rest) = spaces.split_at_checked(near.max(1)).unwrap_or((spaces, &[]));
            spaces = rest;
            let distance = |space: &Space| space.at.saturating_sub(first.at) as usize;
            let length = together.last().map_or(0, distance).saturating_add(Space::SIZE);
            buffer.resize(length, 0);
            let from = start.saturating_add(first.at.into());
            let count = read(source, from, &mut buffer)?;
            let bytes = buffer.get(..count).unwrap_or_default();
            for space in together {
                let now = bytes.get(distance(space)..);
                if now.and_then(|now| Space::read(now, space.at)) != Some(*space) {
                    self.add_part(&mut parts, start, space.at as usize, size);
                }
            }
        }
        Ok(parts)
    }

    /// Adds the part from `at` to the next code that is known.
    fn add_part(&self, parts: &mut Vec<Range<usize>>, start: u64, at: usize, size: usize) {
        if parts.last().is_some_and(|last| at < last.end) {
            return;
        }
        let place = start.saturating_add(at as u64);
        let next = self.codes.partition_point(|code| code.at() < place);
        let next = self.codes.get(next).map(|code| code.at().saturating_sub(start));
        let end = next.and_then(|next| usize::try_from(next).ok()).unwrap_or(size);
        parts.push(at..end.min(size));
    }
}

/// How many codes are only in the second list, and how many only in the first. Both are in the order of their places.
fn difference(old: &[Followed], new: &[Followed]) -> (u64, u64) {
    let (mut old, mut added, mut removed) = (old.iter().peekable(), 0_u64, 0_u64);
    for code in new {
        while old.next_if(|old| old.at < code.at).is_some() {
            removed = removed.saturating_add(1);
        }
        match old.next_if(|old| old.at == code.at) {
            Some(old) if old.is_same(code) => {}
            Some(_) => {
                removed = removed.saturating_add(1);
                added = added.saturating_add(1);
            }
            None => added = added.saturating_add(1),
        }
    }
    (added, removed.saturating_add(old.count() as u64))
}

fn head_at(source: &impl Source, at: u64) -> Result<HeadAt, Error> {
    let mut bytes = [0; HEAD_SIZE];
    if read(source, at, &mut bytes)? < HEAD_SIZE {
        return Ok(HeadAt::End);
    }
    Ok(ChunkHead::parse(&bytes).map_or(HeadAt::None, HeadAt::Found))
}

/// A source whose bytes are counted.
struct Counted<'s, S> {
    source: &'s S,
    bytes: Cell<u64>,
    reads: Cell<u64>,
}

impl<S: Source> Source for Counted<'_, S> {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read_at(at, buffer)?;
        self.bytes.set(self.bytes.get().saturating_add(count as u64));
        self.reads.set(self.reads.get().saturating_add(1));
        Ok(count)
    }

    fn next_data(&self, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
        self.source.next_data(range)
    }

    fn may_change(&self) -> bool {
        false
    }
}
