//! Bytes of code that were read from the processes while they were recorded.
//!
//! Perf maps have no code bytes, and nothing describes some memory that samples were taken in. `record` therefore reads
//! executable memory without a file now and then, and writes what it finds as a jitdump: a LOAD with bytes is memory that
//! was new or had changed at that time, a LOAD without bytes is memory that was still the same.
//!
//! Memory may change between two readings, so bytes are used only if all readings agree: see [`CapturedMemory::bytes`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::path::Path;

use code_timeline::AddressSpaceId;
use jitdump::{CodeEvent, DumpFile, OpenError};

use crate::Warning;
use crate::files::SourceFiles;
use crate::recording::recording_index::RecordingIndex;

/// The unit in which memory is kept.
pub const PAGE: u64 = 4096;
/// Number of pages that are kept: 256 MiB.
const MOST_PAGES: usize = 1 << 16;
/// Number of contents of one page that are kept.
const MOST_CONTENTS: usize = 16;
/// Number of parts that the contents of one range may be put together from: a range of 8 pages, of which each changed 16 times.
const MOST_PARTS: usize = 1 << 11;
/// Bytes of one code that are asked for. Hardly any code is larger.
const LARGEST: u64 = 1 << 20;

/// The pages whose content is needed.
#[derive(Debug, Default)]
pub struct NeededPages(BTreeSet<(AddressSpaceId, u64)>);

impl NeededPages {
    /// Adds the pages of a range.
    pub fn add(&mut self, space: AddressSpaceId, range: &Range<u64>) {
        if range.is_empty() || range.end - range.start > LARGEST {
            return;
        }
        for page in range.start / PAGE..=(range.end - 1) / PAGE {
            if self.0.len() < MOST_PAGES {
                self.0.insert((space, page));
            }
        }
    }
}

/// The content of needed pages.
#[derive(Debug, Default)]
pub struct CapturedMemory {
    pages: BTreeMap<(AddressSpaceId, u64), Vec<Content>>,
    /// Number of pages of content.
    held: usize,
}

/// What a page contained during a span of time.
#[derive(Debug)]
struct Content {
    /// When it was read first.
    from: u64,
    /// When it was last the same.
    until: u64,
    bytes: Box<[u8]>,
}

/// What a range of addresses contained during a span of time.
#[derive(Debug, PartialEq, Eq)]
pub struct RangeContent {
    /// When it was read first.
    pub from: u64,
    /// When it was last the same.
    pub until: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl CapturedMemory {
    /// Reads the content of `needed` pages from the files that `record` wrote.
    pub fn read<'p>(
        paths: impl IntoIterator<Item = &'p Path>,
        files: &dyn SourceFiles,
        index: &RecordingIndex,
        needed: &NeededPages,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let mut captured = Self::default();
        for path in paths {
            if let Err(error) = captured.read_file(path, files, index, needed) {
                let cause = error.to_string();
                warnings.push(Warning::Unreadable { path: path.to_owned(), cause });
            }
        }
        captured
    }

    fn read_file(
        &mut self,
        path: &Path,
        files: &dyn SourceFiles,
        index: &RecordingIndex,
        needed: &NeededPages,
    ) -> Result<(), OpenError> {
        let file = files.open(path, None)?;
        let size = file.metadata()?.len();
        let mut dump = DumpFile::open(file, size)?;
        let quirks = dump.quirks()?;
        dump.for_each_code(quirks, |event| {
            if let Ok(CodeEvent::Load(load)) = event
                // Without this clock, the times of memory and of samples cannot be compared.
                && index.clock.monotonic
                && let Some(space) = index.processes.at(load.pid, load.timestamp)
            {
                let range = load.address..load.address.saturating_add(load.size);
                if load.bytes.is_empty() {
                    self.unchanged(space, &range, load.timestamp);
                } else {
                    self.add(space, load.address, load.bytes, load.timestamp, needed);
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    fn add(
        &mut self,
        space: AddressSpaceId,
        address: u64,
        bytes: &[u8],
        time: u64,
        needed: &NeededPages,
    ) {
        if !address.is_multiple_of(PAGE) {
            return;
        }
        for (page, bytes) in (address / PAGE..).zip(bytes.chunks_exact(PAGE as usize)) {
            if !needed.0.contains(&(space, page)) || self.held >= MOST_PAGES {
                continue;
            }
            let contents = self.pages.entry((space, page)).or_default();
            if let Some(last) = contents.last_mut().filter(|last| *last.bytes == *bytes) {
                last.until = time;
            } else if contents.len() < MOST_CONTENTS {
                contents.push(Content { from: time, until: time, bytes: bytes.into() });
                self.held += 1;
            }
        }
    }

    fn unchanged(&mut self, space: AddressSpaceId, range: &Range<u64>, time: u64) {
        let pages = (space, range.start / PAGE)..(space, range.end.div_ceil(PAGE));
        if pages.start >= pages.end {
            return;
        }
        for contents in self.pages.range_mut(pages).map(|(_, contents)| contents) {
            if let Some(last) = contents.last_mut() {
                last.until = time.max(last.until);
            }
        }
    }

    /// Whether any memory of `space` was read.
    pub fn has(&self, space: AddressSpaceId) -> bool {
        self.pages.range((space, 0)..=(space, u64::MAX)).next().is_some()
    }

    /// What `range` contained, in the order of time: each change once. Times at which a part of it is not known are left out.
    pub fn contents(&self, space: AddressSpaceId, range: &Range<u64>) -> Vec<RangeContent> {
        let mut contents: Vec<RangeContent> = Vec::new();
        if range.is_empty() || range.end - range.start > LARGEST {
            return contents;
        }
        let first = range.start / PAGE;
        let pages: Option<Vec<&[Content]>> = (first..=(range.end - 1) / PAGE)
            .map(|page| self.pages.get(&(space, page)).map(Vec::as_slice))
            .collect();
        let Some(pages) = pages else { return contents };
        let times: BTreeSet<u64> =
            pages.iter().flat_map(|page| page.iter().map(|content| content.from)).collect();
        if times.len().saturating_mul(pages.len()) > MOST_PARTS {
            return contents;
        }
        for time in times {
            let at_time = |page: &&[Content]| {
                let later = page.partition_point(|content| content.from <= time);
                later.checked_sub(1)
            };
            let places: Option<Vec<usize>> = pages.iter().map(at_time).collect();
            let Some(places) = places else { continue };
            let mut bytes = Vec::with_capacity((range.end - range.start) as usize);
            let mut until = u64::MAX;
            for ((page, place), number) in pages.iter().zip(places).zip(first..) {
                let Some(content) = page.get(place) else { continue };
                let start = number * PAGE;
                let part = range.start.max(start) - start..(range.end - start).min(PAGE);
                let part = content.bytes.get(part.start as usize..part.end as usize);
                bytes.extend_from_slice(part.unwrap_or_default());
                until = until.min(content.until);
            }
            let until = until.max(time);
            match contents.last_mut() {
                Some(last) if last.bytes == bytes => last.until = until,
                _ => contents.push(RangeContent { from: time, until, bytes }),
            }
        }
        contents
    }

    /// The bytes of code that was seen running at `first` for the first time, if the memory leaves no doubt: the code was
    /// there when the memory was read, and all readings agree, except that a part was not written yet in earlier ones.
    pub fn bytes(&self, space: AddressSpaceId, range: &Range<u64>, first: u64) -> Option<Vec<u8>> {
        let mut contents = self.contents(space, range);
        contents.retain(|content| content.bytes.iter().any(|&byte| byte != 0));
        let last = contents.pop()?;
        let is_earlier = |content: &RangeContent| {
            let mut pairs = content.bytes.iter().zip(&last.bytes);
            pairs.all(|(before, now)| before == now || is_filler(*before))
        };
        (last.until >= first && contents.iter().all(is_earlier)).then_some(last.bytes)
    }
}

/// Whether runtimes fill free memory for code with this byte: zeros, or x86's breakpoints.
fn is_filler(byte: u8) -> bool {
    matches!(byte, 0 | 0xcc)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recording::recording_index::RecordingIndex;

    fn space() -> AddressSpaceId {
        RecordingIndex::made(Vec::new()).processes.at(1, 0).expect("an address space")
    }

    fn page(bytes: &[u8]) -> Vec<u8> {
        let mut page = vec![0; PAGE as usize];
        page[..bytes.len()].copy_from_slice(bytes);
        page
    }

    fn captured(readings: &[(u64, u64, &[u8])]) -> CapturedMemory {
        let (mut captured, mut needed) = (CapturedMemory::default(), NeededPages::default());
        needed.add(space(), &(0x1000..0x4000));
        for &(time, address, bytes) in readings {
            captured.add(space(), address, &page(bytes), time, &needed);
        }
        captured
    }

    #[test]
    fn bytes_are_used_only_if_all_readings_agree() {
        let code = 0x1000..0x1004;
        let bytes =
            |readings: &[(u64, u64, &[u8])], first| captured(readings).bytes(space(), &code, first);
        assert_eq!(bytes(&[(5, 0x1000, &[1, 2, 3, 4])], 5), Some(vec![1, 2, 3, 4]));
        assert_eq!(bytes(&[(5, 0x1000, &[1, 2, 3, 4])], 6), None, "read before the code ran");
        let written: [(u64, u64, &[u8]); 3] =
            [(1, 0x1000, &[]), (5, 0x1000, &[1, 0xcc]), (7, 0x1000, &[1, 2, 3, 4])];
        assert_eq!(bytes(&written, 2), Some(vec![1, 2, 3, 4]));
        let replaced: [(u64, u64, &[u8]); 2] = [(5, 0x1000, &[9, 2]), (7, 0x1000, &[1, 2, 3, 4])];
        assert_eq!(bytes(&replaced, 2), None);
        assert_eq!(bytes(&[(5, 0x2000, &[1])], 2), None, "another page");
    }

    #[test]
    fn memory_that_stayed_the_same_is_known_for_longer() {
        let mut memory = captured(&[(5, 0x1000, &[1]), (5, 0x2000, &[2])]);
        memory.unchanged(space(), &(0x1000..0x2000), 9);
        let both = 0x1ff0..0x2001;
        assert_eq!(memory.contents(space(), &both)[0].until, 5);
        assert_eq!(memory.contents(space(), &(0x1000..0x1001))[0].until, 9);
        assert!(memory.bytes(space(), &both, 6).is_none());
        assert_eq!(memory.bytes(space(), &both, 5).expect("bytes").last(), Some(&2));
    }

    proptest! {
        /// What is read last before a time is the content at that time.
        #[test]
        fn contents_follow_the_readings(
            readings in prop::collection::vec((1u64..4, 0u64..3, 0u8..4), 0..12),
            start in 0x1000u64..0x3000, size in 1u64..0x1800,
        ) {
            let mut time = 0;
            let mut memory = captured(&[]);
            let mut needed = NeededPages::default();
            needed.add(space(), &(0x1000..0x4000));
            let mut now: BTreeMap<u64, u8> = BTreeMap::new();
            let mut expected: Vec<(u64, Vec<u8>)> = Vec::new();
            let range = start..(start + size).min(0x4000);
            for (step, page, byte) in readings {
                time += step;
                let address = 0x1000 + page * PAGE;
                memory.add(space(), address, &vec![byte; PAGE as usize], time, &needed);
                now.insert(address / PAGE, byte);
                let all: Option<Vec<u8>> =
                    range.clone().map(|at| now.get(&(at / PAGE)).copied()).collect();
                if let Some(all) = all
                    && expected.last().is_none_or(|(_, last)| *last != all)
                {
                    expected.push((time, all));
                }
            }
            let contents = memory.contents(space(), &range);
            let found: Vec<_> =
                contents.into_iter().map(|content| (content.from, content.bytes)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
