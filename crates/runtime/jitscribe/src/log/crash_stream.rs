//! Writes the stream of a minidump that describes the code on the stacks, in the process that crashed: without allocating, into a
//! buffer of the caller, whose end serves as working memory during the call.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use crash_stream::layout::{
    CODE_BYTES_HEADER, DUMP_HEADER, HEADER_SIZE, Header, MOST_CODE_BYTES, refers_to,
};
use jitdump::extension::code as code_item;

use super::Log;
use super::group;
use super::layout::{code, unpair};
use super::lookup::{FoundCode, LogView};
use super::machine::MACHINE;
use crate::system::OwnMemory;

/// How much of a stack is read at a time.
const STEP: usize = 512;

/// What was written so far. It is a copy that is restored when a chunk is read again.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    /// The end of the groups in the buffer.
    end: usize,
    codes: u32,
    left_out: u64,
}

/// Words that may refer to code: at the end of a buffer, as big-endian bytes, whose order is that of the numbers.
struct Words<'b> {
    space: &'b mut [[u8; 8]],
    count: usize,
    bounds: Range<u64>,
    /// Whether there was no space for all of them.
    is_cut: bool,
}

impl Log {
    /// Writes the stream of all live codes to which `words` refer, or the words in the `stacks`, which are ranges of addresses. Returns
    /// its size; `None` if the buffer is too small for any.
    pub(crate) fn write_crash_stream(
        &self,
        stacks: impl IntoIterator<Item = Range<u64>>,
        words: &[u64],
        buffer: &mut [u8],
    ) -> Option<usize> {
        let memory = OwnMemory::open();
        let start = HEADER_SIZE + DUMP_HEADER;
        let mut bounds = (u64::MAX, 0);
        self.each_view(|view| view.bounds(&mut bounds));

        let space = buffer.get_mut(start..)?;
        let whole = space.len() / 8 * 8;
        let found = {
            let space = space.get_mut(..whole)?.as_chunks_mut().0;
            let bounds = bounds.0..bounds.1.saturating_add(1);
            let mut found = Words { space, count: 0, bounds, is_cut: false };
            words.iter().for_each(|word| found.add(*word));
            if let Some(memory) = &memory {
                stacks.into_iter().for_each(|stack| found.add_stack(memory, stack));
            }
            found.sort();
            found.move_to_end()
        };
        let (groups, words) = buffer.split_at_mut_checked(start + whole - 8 * found)?;
        let words = words.get(..8 * found)?.as_chunks().0;

        let mut written = Written { end: start, ..Written::default() };
        self.each_view(|view| view.copy_groups(words, groups, &mut written));
        let header = groups.get_mut(HEADER_SIZE..start)?;
        let (pid, began) = (self.pid.load(Relaxed), self.began.load(Relaxed));
        group::write_file_header(header, MACHINE, pid, began, self.options.clock);

        let mut end = written.end;
        let mut code_bytes = 0;
        if let Some(memory) = &memory {
            let mut at = start;
            while at < written.end {
                let group = GroupCopy::at(buffer, at)?;
                if let Some(next) = group.write_bytes(buffer, end, memory) {
                    end = next;
                    code_bytes += 1;
                }
                at += group.group_size;
            }
        }
        let header = Header {
            codes: written.codes,
            code_bytes,
            dump_size: (written.end - HEADER_SIZE) as u64,
            left_out: written.left_out,
        };
        *buffer.first_chunk_mut()? = header.to_bytes();
        Some(end)
    }
}

impl LogView<'_> {
    /// Extends the range of all codes: the lowest address, and the highest end.
    fn bounds(&self, bounds: &mut (u64, u64)) {
        self.each_code(bounds, |(lowest, highest), code| {
            *lowest = (*lowest).min(code.address);
            *highest = (*highest).max(code.address.saturating_add(code.size));
        });
    }

    /// Appends the groups of codes to which one of the words refers.
    fn copy_groups(&self, words: &[[u8; 8]], buffer: &mut [u8], written: &mut Written) {
        self.each_code(written, |written, code| {
            if !is_referred_to(words, &code) {
                return;
            }
            let place = written.end.checked_add(code.group_size);
            let place = place.and_then(|end| buffer.get_mut(written.end..end));
            let from = self.mapping.many_words(code.at, code.group_size);
            let Some((place, from)) = place.zip(from) else {
                written.left_out += 1;
                return;
            };
            for (place, word) in place.as_chunks_mut().0.iter_mut().zip(from) {
                *place = word.load(Relaxed).to_ne_bytes();
            }
            // A code that died after a fork is alive in the child.
            if let Some(died) = place.get_mut(code::DIED..).and_then(|rest| rest.first_chunk_mut())
            {
                *died = [0; 8];
            }
            written.end += code.group_size;
            written.codes += 1;
        });
    }
}

fn is_referred_to(words: &[[u8; 8]], code: &FoundCode) -> bool {
    let at = words.partition_point(|word| u64::from_be_bytes(*word) < code.address);
    let word = words.get(at).map(|word| u64::from_be_bytes(*word));
    word.is_some_and(|word| refers_to(word, code.address, code.size))
}

impl Words<'_> {
    fn add(&mut self, word: u64) {
        if !self.bounds.contains(&word) {
            return;
        }
        if self.count == self.space.len() && !self.is_cut {
            // Most words on stacks are there several times.
            self.sort();
            self.is_cut = self.count == self.space.len();
        }
        if let Some(place) = self.space.get_mut(self.count) {
            *place = word.to_be_bytes();
            self.count += 1;
        }
    }

    fn add_stack(&mut self, memory: &OwnMemory, stack: Range<u64>) {
        let mut at = stack.start.next_multiple_of(8);
        while at < stack.end {
            let mut bytes = [0; STEP];
            let size = (stack.end - at).min(STEP as u64) as usize / 8 * 8;
            let Some(bytes) = bytes.get_mut(..size).filter(|bytes| !bytes.is_empty()) else {
                return;
            };
            // What cannot be read is not part of the stack.
            if memory.read(at, bytes) {
                bytes.as_chunks().0.iter().for_each(|word| self.add(u64::from_ne_bytes(*word)));
            }
            at = at.saturating_add(size as u64);
        }
    }

    /// Sorts the words, and removes duplicates.
    fn sort(&mut self) {
        let Some(words) = self.space.get_mut(..self.count) else { return };
        words.sort_unstable();
        let mut kept = 0_usize;
        for at in 0..words.len() {
            let word = words.get(at).copied();
            let before = kept.checked_sub(1).and_then(|last: usize| words.get(last).copied());
            if word != before
                && let (Some(word), Some(place)) = (word, words.get_mut(kept))
            {
                *place = word;
                kept += 1;
            }
        }
        self.count = kept;
    }

    /// Moves the words to the end of the space. Returns how many they are.
    fn move_to_end(self) -> usize {
        let start = self.space.len() - self.count;
        self.space.copy_within(..self.count, start);
        self.count
    }
}

/// A group in the buffer.
#[derive(Clone, Copy, Debug)]
struct GroupCopy {
    group_size: usize,
    address: u64,
    size: u64,
    is_without_bytes: bool,
}

impl GroupCopy {
    fn at(buffer: &[u8], at: usize) -> Option<Self> {
        let group = buffer.get(at..)?;
        let word = |at: usize| Some(u64::from_ne_bytes(*group.get(at..)?.first_chunk()?));
        let flags = *group.get(code::FLAGS)?;
        let group_size = unpair(word(code::GROUP_SIZE)?).0 as usize;
        Some(Self {
            // Not endless, whatever another thread has written there.
            group_size: group_size.max(code::END),
            address: word(code::ADDRESS)?,
            size: word(code::CODE_SIZE)?,
            is_without_bytes: flags & code_item::WITHOUT_BYTES != 0,
        })
    }

    /// Writes the code's bytes at `at` in the buffer. Returns where they end; `None` if the log has them, or if they do not fit or
    /// cannot be read.
    fn write_bytes(&self, buffer: &mut [u8], at: usize, memory: &OwnMemory) -> Option<usize> {
        let size = self.size.min(MOST_CODE_BYTES) as usize;
        if !self.is_without_bytes || size == 0 {
            return None;
        }
        let place = buffer.get_mut(at..at + CODE_BYTES_HEADER + size.next_multiple_of(8))?;
        let (head, bytes) = place.split_at_mut(CODE_BYTES_HEADER);
        let (bytes, padding) = bytes.split_at_mut_checked(size)?;
        if !memory.read(self.address, bytes) {
            return None;
        }
        padding.fill(0);
        let (address, length) = head.split_at_mut_checked(8)?;
        address.copy_from_slice(&self.address.to_ne_bytes());
        length.copy_from_slice(&(size as u64).to_ne_bytes());
        Some(at + CODE_BYTES_HEADER + size.next_multiple_of(8))
    }
}
