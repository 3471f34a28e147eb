//! A log as it was at one time.

use std::ops::Range;

use jitdump::extension::chunk::HEAD_SIZE;
use jitdump::extension::log::FIRST_CHUNK;

use crate::chunk::{ChunkHead, groups};
use crate::error::Error;
use crate::head::Head;
use crate::source::Source;
use crate::words::u64_at;

/// How often a chunk is read again when its room was used anew meanwhile. That takes the process as long as
/// filling all others, so that a second time is rare.
const ATTEMPTS: usize = 8;

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
    let Collected { bytes, mut groups, torn } = collected;
    groups.sort_by_key(|group| group.time);
    let mut out = first;
    out.reserve(bytes.len());
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
            let Some(before) = read_head(source, start)? else {
                // Within a run that was joined since the head of the log was read, or damage.
                self.torn = self.torn.saturating_add(1);
                return Ok(Some(1));
            };
            let span = before.span.min(chunks_left);
            let size = (head.chunk_size as usize).saturating_mul(span as usize);
            let Some(stable) = read_stable(source, start, size)? else { return Ok(None) };
            if read_head(source, start)? == Some(before) {
                self.add(&stable);
                return Ok(Some(span));
            }
        }
        self.torn = self.torn.saturating_add(1);
        Ok(Some(1))
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
}

/// Reads a chunk twice: what counts by the first reading is whole in the second. `None` behind the end.
fn read_stable(source: &impl Source, at: u64, size: usize) -> Result<Option<Stable>, Error> {
    let mut bytes = Vec::new();
    // Room by and by: the size comes from the log, the bytes are there or not.
    const STEP: usize = 1 << 20;
    while bytes.len() < size {
        let start = bytes.len();
        bytes.resize(size.min(start.saturating_add(STEP)), 0);
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
    let damaged = groups(&bytes, |range| found.push(range));
    let again = read(source, at, &mut bytes)?;
    found.retain(|range| range.end <= again);
    Ok(Some(Stable { bytes, groups: found, is_damaged: damaged.is_some() }))
}

fn read_head(source: &impl Source, at: u64) -> Result<Option<ChunkHead>, Error> {
    let mut bytes = [0; HEAD_SIZE];
    let count = read(source, at, &mut bytes)?;
    Ok(bytes.get(..count).and_then(ChunkHead::parse))
}

fn chunk_start(head: &Head, number: u32) -> u64 {
    let chunks = u64::from(head.chunk_size).saturating_mul(u64::from(number));
    chunks.saturating_add(FIRST_CHUNK as u64)
}

fn read(source: &impl Source, at: u64, room: &mut [u8]) -> Result<usize, Error> {
    source.read_at(at, room).map_err(|cause| Error::Read { at, cause })
}
