//! The worker task that reads executable memory without a file, again and again, and answers with what has changed.
//!
//! Each request is one reading. The process is not stopped. Only pages that are present are read, so that none is allocated.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::time::ClockId;
use serde::{Deserialize, Serialize};

use super::logs::nanoseconds;
use super::memory::{Mappings, Memory};
use super::source::read_all;
use crate::foreign::{Output, Progress, Target};

/// The unit in which changes are found.
pub const PAGE: u64 = 4096;
/// Pages that are read at a time.
const RUN: u64 = 64;
/// The limit for pages that are read for one request: 256 MiB.
const EXAMINED: u64 = 1 << 16;
/// The limit for pages that are sent in all: 64 MiB.
const SENT: u64 = 1 << 14;
/// How often one page is sent. Code that changes more often is data, or is patched all the time.
const CHANGES: u8 = 12;
/// The task: read the executable memory of a process, once for each request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadExecutable {
    /// The process.
    pub pid: u32,
}

/// Memory that is in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading<'a> {
    /// It is new or has changed.
    Changed {
        /// Its address, a multiple of [`PAGE`].
        address: u64,
        /// Its content: whole pages.
        bytes: &'a [u8],
    },
    /// All of it was read, and is as it was sent last.
    Unchanged {
        /// Its address.
        address: u64,
        /// Its size.
        size: u64,
    },
}

impl Reading<'_> {
    /// The readings in an answer, up to one that is malformed, and the processor time that the worker says they took.
    pub fn all(answer: &[u8]) -> (impl Iterator<Item = Reading<'_>>, Duration) {
        let (mut answer, took) = answer.split_last_chunk().unwrap_or((&[], &[0; 8]));
        let readings = std::iter::from_fn(move || {
            let (reading, rest) = Reading::first(answer)?;
            answer = rest;
            Some(reading)
        });
        (readings, Duration::from_nanos(u64::from_ne_bytes(*took)))
    }

    /// The first reading of an answer, and the rest.
    fn first(answer: &[u8]) -> Option<(Reading<'_>, &[u8])> {
        let (head, rest) = answer.split_first_chunk::<24>()?;
        let mut fields = head.as_chunks().0.iter().map(|field| u64::from_ne_bytes(*field));
        let (address, size, has_bytes) = (fields.next()?, fields.next()?, fields.next()?);
        let is_valid = address.is_multiple_of(PAGE)
            && size.is_multiple_of(PAGE)
            && size > 0
            && address.checked_add(size).is_some();
        if !is_valid {
            return None;
        }
        if has_bytes == 0 {
            return Some((Reading::Unchanged { address, size }, rest));
        }
        let (bytes, rest) = rest.split_at_checked(usize::try_from(size).ok()?)?;
        Some((Reading::Changed { address, bytes }, rest))
    }

    fn send(self, output: &mut Output) -> io::Result<()> {
        let head = |address: u64, size: u64, has_bytes: u64| {
            [address, size, has_bytes].map(u64::to_ne_bytes).concat()
        };
        match self {
            Self::Changed { address, bytes } => {
                output.bytes(&head(address, bytes.len() as u64, 1))?;
                output.bytes(bytes)
            }
            Self::Unchanged { address, size } => output.bytes(&head(address, size, 0)),
        }
    }
}

impl ReadExecutable {
    /// Answers requests until the command sends no more.
    pub fn perform(&self, output: &mut Output) -> io::Result<()> {
        let target = Target::open(self.pid)?;
        let owner = target.owner()?;
        // All of the same program: a descriptor refers to the memory of the program that ran when it was opened.
        let mut reader = ExecutableReader {
            memory: target.file("mem", OFlags::RDONLY)?,
            pages: target.file("pagemap", OFlags::RDONLY)?,
            mappings: Mappings(target.file("maps", OFlags::RDONLY)?.into()),
            known: HashMap::new(),
            sent: 0,
        };
        if target.owner()? != owner {
            return Err(Errno::SRCH.into());
        }
        owner.lock_down()?;
        let mut used = 0;
        while output.wait_for_request() {
            let done = reader.read(output).and_then(|()| {
                let before = std::mem::replace(&mut used, nanoseconds(ClockId::ProcessCPUTime));
                output.bytes(&used.saturating_sub(before).to_ne_bytes())
            });
            output.finish(done)?;
        }
        Ok(())
    }
}

/// What is open of a process, and what was sent.
struct ExecutableReader {
    memory: OwnedFd,
    pages: OwnedFd,
    mappings: Mappings,
    /// For each page: a hash of its last content, and how often it was sent.
    known: HashMap<u64, (u64, u8)>,
    /// Number of pages that were sent.
    sent: u64,
}

impl ExecutableReader {
    fn read(&mut self, output: &mut Output) -> io::Result<()> {
        let ranges = self.ranges()?;
        let mut left = EXAMINED;
        for range in ranges {
            let mut at = range.start;
            while at < range.end {
                let run = at..range.end.min(at.saturating_add(RUN * PAGE));
                at = run.end;
                let progress = Progress::new(output);
                let memory = Memory::new(&self.memory, Some(&self.pages), &progress);
                let Some(present) = memory.present(&run) else { continue };
                progress.report();
                for part in present {
                    let pages = (part.end - part.start) / PAGE;
                    let Some(rest) = left.checked_sub(pages) else { return Ok(()) };
                    left = rest;
                    self.read_part(&part, output)?;
                }
            }
        }
        Ok(())
    }

    /// Reads pages that follow one another.
    fn read_part(&mut self, part: &Range<u64>, output: &mut Output) -> io::Result<()> {
        let size = usize::try_from(part.end - part.start).unwrap_or(0);
        let mut bytes = vec![0; size];
        // They may be gone by now.
        let count = read_all(&self.memory, part.start, &mut bytes).unwrap_or(0);
        let pages = bytes.get(..count).unwrap_or_default().as_chunks::<{ PAGE as usize }>().0;
        let mut changed: Vec<u8> = Vec::new();
        let mut changed_from = part.start;
        let mut at = part.start;
        let mut is_unsent = false;
        for page in pages {
            let hash = hash(page);
            let (last, count) = self.known.entry(at).or_insert((0, 0));
            let is_sent = *last != hash && *count < CHANGES && self.sent < SENT;
            is_unsent |= *last != hash && !is_sent;
            if is_sent {
                (*last, *count) = (hash, *count + 1);
                self.sent += 1;
                if changed.is_empty() {
                    changed_from = at;
                }
                changed.extend_from_slice(page);
            } else if !changed.is_empty() {
                Reading::Changed { address: changed_from, bytes: &changed }.send(output)?;
                changed.clear();
            }
            at += PAGE;
        }
        if !changed.is_empty() {
            Reading::Changed { address: changed_from, bytes: &changed }.send(output)?;
        }
        if at > part.start && !is_unsent {
            Reading::Unchanged { address: part.start, size: at - part.start }.send(output)?;
        }
        Ok(())
    }

    /// Where executable memory without a file is mapped.
    fn ranges(&mut self) -> io::Result<Vec<Range<u64>>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        self.mappings.each(|mapping| {
            if !mapping.is_executable || !mapping.is_anonymous() {
                return;
            }
            match ranges.last_mut() {
                Some(last) if last.end == mapping.range.start => last.end = mapping.range.end,
                _ => ranges.push(mapping.range),
            }
        })?;
        Ok(ranges)
    }
}

/// A hash of a page; 0 if all of it is 0.
fn hash(page: &[u8; PAGE as usize]) -> u64 {
    let words = page.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word));
    words
        .fold(0, |hash: u64, word| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::process::memory::Mapping;

    #[test]
    fn zeros_have_the_hash_of_memory_that_was_never_seen() {
        let mut page = [0; PAGE as usize];
        assert_eq!(hash(&page), 0);
        page[4095] = 1;
        let one = hash(&page);
        page.swap(4095, 0);
        assert!(one != 0 && hash(&page) != one);
    }

    #[test]
    fn only_memory_without_a_file_is_read() {
        let mapping = |line: &str| Mapping::parse(line.as_bytes()).expect("a mapping");
        for anonymous in [
            "7f00-7f10 r-xp 00000000 00:00 0",
            "7f00-7f10 rwxp 00000000 00:00 0 [anon:v8]",
            "7f00-7f10 r-xs 00000000 00:01 34 /memfd:doublemapper (deleted)",
        ] {
            let mapping = mapping(anonymous);
            assert!(mapping.is_executable && mapping.is_anonymous(), "{anonymous}");
        }
        for file in [
            "7f00-7f10 r-xp 00000000 08:01 34 /usr/bin/node",
            "7f00-7f10 r-xp 00000000 00:00 0                          [vdso]",
        ] {
            assert!(!mapping(file).is_anonymous(), "{file}");
        }
        assert!(!mapping("7f00-7f10 rw-p 00000000 00:00 0").is_executable);
    }

    proptest! {
        /// A worker may have been taken over: any answer is read to its end, and only whole pages come out of it.
        #[test]
        fn any_answer_is_read(
            heads in prop::collection::vec((0u64..5, 0u64..4, 0u64..2, 0usize..9000), 0..6),
            cut in 0usize..200,
        ) {
            let mut answer = Vec::new();
            for (address, size, has_bytes, bytes) in heads {
                for field in [address * PAGE / 2, size * PAGE, has_bytes] {
                    answer.extend(field.to_ne_bytes());
                }
                answer.extend(std::iter::repeat_n(7, bytes));
            }
            answer.truncate(answer.len().saturating_sub(cut));
            let mut total = 0;
            for reading in Reading::all(&answer).0 {
                if let Reading::Changed { address, bytes } = reading {
                    prop_assert!(address.is_multiple_of(PAGE));
                    prop_assert!(bytes.len().is_multiple_of(PAGE as usize) && !bytes.is_empty());
                    total += bytes.len();
                }
            }
            prop_assert!(total <= answer.len());
        }
    }
}
