//! A snapshot of a log.

use jitdump::extension::chunk::HEAD_SIZE;
use jitdump::extension::log::FIRST_CHUNK;

use crate::budget::Budget;
use crate::chunk::{ChunkHead, DIED};
use crate::collect::{GroupCollector, read, reserve};
use crate::error::Error;
use crate::head::Head;
use crate::source::Source;

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
    let mut collected = GroupCollector::new(source, &head, budget);
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
