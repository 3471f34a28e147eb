//! A log as it was at one time.

use std::ops::Range;
use std::time::Duration;

use jitdump::extension::chunk::HEAD_SIZE;
use jitdump::extension::log::FIRST_CHUNK;

use crate::chunk::{ChunkHead, groups, is_group};
use crate::error::Error;
use crate::head::Head;
use crate::source::Source;
use crate::words::u64_at;

/// How often a chunk is read again when its room was used anew meanwhile. That takes the process as long as
/// filling all others, so that a second time is rare.
const ATTEMPTS: usize = 8;

/// How long, and how often in all, chunks that are being changed are waited for. Later they are read as they are: a
/// process that was killed has left them so.
const WAIT: Duration = Duration::from_millis(1);
const WAITS: u32 = 200;

/// What a log held.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// A jitdump: the log's header, its control words, and all groups that counted, in the order of
    /// their times.
    pub bytes: Vec<u8>,
    /// The control words.
    pub head: Head,
    /// Number of codes.
    pub codes: u64,
    /// Number of chunks that could not be read whole: damaged, or changing all the time.
    pub torn: u64,
}

/// Reads the log in `source`.
///
/// All codes are there that were announced before the call, unless they died and their room was used
/// anew; of those announced meanwhile, some.
///
/// # Errors
/// If there is no log, or it cannot be read.
pub fn snapshot(source: &impl Source) -> Result<Snapshot, Error> {
    let mut first = vec![0; FIRST_CHUNK];
    let count = read(source, 0, &mut first)?;
    first.truncate(count);
    let head = Head::parse(&first)?;
    if first.len() < FIRST_CHUNK {
        return Err(Error::NotALog("it is too short"));
    }
    let mut collected = Collected::default();
    let mut number = 0;
    while number < head.chunks {
        let span = collected.chunk(source, &head, number)?;
        match span {
            Some(span) => number = number.saturating_add(span),
            None => break,
        }
    }
    let Collected { bytes, mut groups, torn, .. } = collected;
    groups.sort_by_key(|group| group.time);
    let mut out = first;
    reserve(&mut out, bytes.len(), 0)?;
    for group in &groups {
        out.extend_from_slice(bytes.get(group.range.clone()).unwrap_or_default());
    }
    Ok(Snapshot { bytes: out, head, codes: groups.len() as u64, torn })
}

/// Groups found so far.
#[derive(Default)]
struct Collected {
    bytes: Vec<u8>,
    groups: Vec<Group>,
    torn: u64,
    /// Before this chunk no heads are looked for again.
    searched: u32,
    /// How often it was waited for a chunk that was being changed.
    waits: u32,
}

struct Group {
    time: u64,
    range: Range<usize>,
}

impl Collected {
    /// Collects the groups of a chunk. Returns how many chunks that were; `None` at the end of the file.
    fn chunk(
        &mut self,
        source: &impl Source,
        head: &Head,
        number: u32,
    ) -> Result<Option<u32>, Error> {
        let start = chunk_start(head, number);
        let chunks_left = head.chunks.saturating_sub(number);
        for _ in 0..ATTEMPTS {
            let before = match self.steady_head_at(source, start)? {
                HeadAt::Found(before) => before,
                HeadAt::End => return Ok(None),
                HeadAt::None => return self.without_head(source, head, number).map(Some),
            };
            let span = before.span.min(chunks_left);
            let size = (head.chunk_size as usize).saturating_mul(span as usize);
            let Some(stable) = read_stable(source, start, size, head.chunk_size as usize)? else {
                return Ok(None);
            };
            if stable.is_consistent && head_at(source, start)? == HeadAt::Found(before) {
                reserve(&mut self.bytes, stable.bytes.len(), start)?;
                self.add(&stable);
                return Ok(Some(span));
            }
        }
        self.torn = self.torn.saturating_add(1);
        Ok(Some(1))
    }

    /// What stands at `at`, when it is no more being changed. That takes some instructions, unless who does it has
    /// lost its processor, or is dead.
    fn steady_head_at(&mut self, source: &impl Source, at: u64) -> Result<HeadAt, Error> {
        loop {
            let found = head_at(source, at)?;
            let is_changing = matches!(found, HeadAt::Found(head) if head.is_changing());
            if !is_changing || self.waits >= WAITS || !source.may_change() {
                return Ok(found);
            }
            self.waits = self.waits.saturating_add(1);
            std::thread::sleep(WAIT);
        }
    }

    /// How many chunks to pass over at `number`, where no head stands. They may belong to one before them which
    /// was read alone: then all that lived in them was dead, and they were joined since.
    fn without_head(
        &mut self,
        source: &impl Source,
        head: &Head,
        number: u32,
    ) -> Result<u32, Error> {
        for before in (self.searched..number).rev() {
            if let HeadAt::Found(found) = head_at(source, chunk_start(head, before))? {
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

    fn add(&mut self, stable: &Stable) {
        for range in &stable.groups {
            let Some(group) = stable.bytes.get(range.clone()) else { continue };
            let start = self.bytes.len();
            self.bytes.extend_from_slice(group);
            let time = u64_at(group, 8).unwrap_or(0);
            self.groups.push(Group { time, range: start..self.bytes.len() });
        }
        self.torn = self.torn.saturating_add(u64::from(stable.is_damaged));
    }
}

/// A chunk, and those of its groups that were whole when its bytes were read.
struct Stable {
    bytes: Vec<u8>,
    groups: Vec<Range<usize>>,
    is_damaged: bool,
    /// Whether the second reading found what the first did.
    is_consistent: bool,
}

/// Reads a chunk twice: what counts by the first reading is whole in the second. `None` behind the end.
fn read_stable(
    source: &impl Source,
    at: u64,
    size: usize,
    chunk_size: usize,
) -> Result<Option<Stable>, Error> {
    let mut bytes = Vec::new();
    // Room by and by: the size comes from the log, the bytes are there or not.
    const STEP: usize = 1 << 20;
    while bytes.len() < size {
        let start = bytes.len();
        let end = size.min(start.saturating_add(STEP));
        reserve(&mut bytes, end.saturating_sub(start), at)?;
        bytes.resize(end, 0);
        let room = bytes.get_mut(start..).unwrap_or_default();
        let wanted = room.len();
        let count = read(source, at.saturating_add(start as u64), room)?;
        if count < wanted {
            bytes.truncate(start.saturating_add(count));
            break;
        }
    }
    if bytes.len() <= HEAD_SIZE {
        return Ok(None);
    }
    let mut found = Vec::new();
    let damaged = groups(&bytes, chunk_size, |range| found.push(range));
    let again = read(source, at, &mut bytes)?;
    found.retain(|range| range.end <= again);
    // Words of the first reading may be of different moments: a tail that was there, and a size that was not.
    let is_consistent = found.iter().all(|range| is_group(&bytes, range));
    Ok(Some(Stable { bytes, groups: found, is_damaged: damaged.is_some(), is_consistent }))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadAt {
    Found(ChunkHead),
    /// Something else stands there.
    None,
    /// The log ends.
    End,
}

fn head_at(source: &impl Source, at: u64) -> Result<HeadAt, Error> {
    let mut bytes = [0; HEAD_SIZE];
    if read(source, at, &mut bytes)? < HEAD_SIZE {
        return Ok(HeadAt::End);
    }
    Ok(ChunkHead::parse(&bytes).map_or(HeadAt::None, HeadAt::Found))
}

fn chunk_start(head: &Head, number: u32) -> u64 {
    let chunks = u64::from(head.chunk_size).saturating_mul(u64::from(number));
    chunks.saturating_add(FIRST_CHUNK as u64)
}

fn read(source: &impl Source, at: u64, room: &mut [u8]) -> Result<usize, Error> {
    source.read_at(at, room).map_err(|cause| Error::Read { at, cause })
}

/// What a process says that it holds may be more than this one can.
fn reserve(bytes: &mut Vec<u8>, more: usize, at: u64) -> Result<(), Error> {
    bytes
        .try_reserve(more)
        .map_err(|_| Error::Read { at, cause: std::io::ErrorKind::OutOfMemory.into() })
}
