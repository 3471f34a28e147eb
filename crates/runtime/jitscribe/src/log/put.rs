//! Building blocks of groups.

use jitdump::extension::tag;

use super::layout::{item_word, pair};
use jit_code::{Inlined, Line};

/// Number of files of a line table that are searched for duplicates, before one is written twice.
const FILES: usize = 16;

/// Numbers the files of a line table, deterministically.
struct Files<'a> {
    known: [&'a [u8]; FILES],
    count: u32,
    latest: (&'a [u8], u32),
}

impl<'a> Files<'a> {
    fn new() -> Self {
        Self { known: [b""; FILES], count: 0, latest: (b"", u32::MAX) }
    }

    /// The number of `file`, and whether it is a new one.
    #[inline]
    fn number(&mut self, file: &'a [u8]) -> (u32, bool) {
        let (latest, number) = self.latest;
        // Most often this is the very same string.
        if std::ptr::eq(latest, file) && number != u32::MAX {
            return (number, false);
        }
        self.search(file)
    }

    fn search(&mut self, file: &'a [u8]) -> (u32, bool) {
        let known = self.known.get(..self.count as usize).unwrap_or(&self.known);
        // By address first: a runtime with many lines has each name only once.
        let same = known.iter().position(|known| std::ptr::eq(*known, file));
        let same = same.or_else(|| known.iter().position(|known| *known == file));
        let (number, new) = match same {
            Some(number) => (number as u32, false),
            None => {
                if let Some(place) = self.known.get_mut(self.count as usize) {
                    *place = file;
                }
                self.count += 1;
                (self.count - 1, true)
            }
        };
        self.latest = (file, number);
        (number, new)
    }
}

/// The file of all these lines, if it is the very same string each time. Most codes have this, and it can be
/// written fast.
pub(crate) fn one_file<'a>(lines: &[Line<'a>]) -> Option<&'a [u8]> {
    let file = lines.first()?.file;
    lines.iter().all(|line| std::ptr::eq(line.file, file)).then_some(file)
}

/// Size of the payload of a line table.
pub(crate) fn lines_size(lines: &[Line<'_>]) -> usize {
    if let Some(file) = one_file(lines) {
        return 8 + 16 * lines.len() + file.len() + 1;
    }
    let mut files = Files::new();
    let names: usize = lines
        .iter()
        .map(|line| match files.number(line.file) {
            (_, true) => line.file.len() + 1,
            (_, false) => 0,
        })
        .sum();
    8 + 16 * lines.len() + names
}

/// Whether two names are equal. Most often they are the very same string.
#[inline]
fn same(one: &[u8], other: &[u8]) -> bool {
    std::ptr::eq(one, other) || one == other
}

/// Size of the payload of inlined calls.
pub(crate) fn inlined_size(calls: &[Inlined<'_>]) -> usize {
    let mut size = 8;
    let mut file: &[u8] = b"";
    for call in calls {
        size += 16 + 8 * call.ranges.len() + call.name.len() + 1 + 1;
        if !same(call.file, file) {
            size += call.file.len();
            file = call.file;
        }
    }
    size
}

/// Writes one field after the other; what does not fit is dropped, which the sizes of `Plan` rule out.
pub(crate) struct Put<'b>(pub(crate) &'b mut [u8]);

impl<'b> Put<'b> {
    fn next(&mut self, length: usize) -> Option<&'b mut [u8]> {
        let (next, rest) = std::mem::take(&mut self.0).split_at_mut_checked(length)?;
        self.0 = rest;
        Some(next)
    }

    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        if let Some(buffer) = self.next(bytes.len()) {
            buffer.copy_from_slice(bytes);
        }
    }

    /// Writes several 64-bit fields, or pairs of smaller ones, with one check for space.
    #[inline]
    pub(crate) fn words<const N: usize>(&mut self, words: [u64; N]) {
        let buffer = self.next(8 * N).map(|buffer| buffer.as_chunks_mut().0);
        if let Some(buffer) = buffer.and_then(|buffer| buffer.first_chunk_mut()) {
            *buffer = words.map(u64::to_ne_bytes);
        }
    }

    pub(crate) fn item(&mut self, tag: u16, detail: u16, size: usize) {
        self.words([item_word(tag, detail, size)]);
    }

    /// Writes a name, without characters that would break the lines of tools that print it.
    fn name(&mut self, name: &[u8]) {
        if let Some(buffer) = self.next(name.len()) {
            copy_name(buffer, name);
        }
    }

    /// Writes a name and a NUL. Returns what was written.
    #[inline]
    pub(crate) fn terminated_name(&mut self, name: &[u8]) -> &'b [u8] {
        let Some(buffer) = self.next(name.len() + 1) else { return &[] };
        if let Some((end, buffer)) = buffer.split_last_mut() {
            copy_name(buffer, name);
            *end = 0;
        }
        buffer
    }

    #[inline]
    pub(crate) fn padded_name(&mut self, name: &[u8]) {
        if let Some(buffer) = self.next_padded(name.len()) {
            copy_name(buffer, name);
        }
    }

    pub(crate) fn padded(&mut self, bytes: &[u8]) {
        if let Some(buffer) = self.next_padded(bytes.len()) {
            buffer.copy_from_slice(bytes);
        }
    }

    /// Space for a payload of this length, with zeros up to the next multiple of 8.
    #[inline]
    fn next_padded(&mut self, length: usize) -> Option<&'b mut [u8]> {
        let buffer = self.next(length.next_multiple_of(8))?;
        if let Some(last) = buffer.last_chunk_mut::<8>() {
            *last = [0; 8];
        }
        buffer.get_mut(..length)
    }

    fn pad(&mut self, length: usize) {
        if let Some(buffer) = self.next(length.next_multiple_of(8) - length) {
            buffer.fill(0);
        }
    }

    pub(crate) fn line_table(&mut self, detail: u16, lines: &[Line<'_>], size: usize) {
        self.item(tag::LINES, detail, size);
        let (rows, names) = (16 * lines.len(), size - 8 - 16 * lines.len());
        let counts = self.next(8);
        let rows = self.next(rows).unwrap_or_default();
        if let Some(file) = one_file(lines) {
            for (row, line) in rows.as_chunks_mut::<16>().0.iter_mut().zip(lines) {
                let words = [pair(line.offset, line.line), pair(line.column, 0)];
                row.copy_from_slice(words.map(u64::to_ne_bytes).as_flattened());
            }
            self.terminated_name(file);
            Put(counts.unwrap_or_default()).words([pair(lines.len() as u32, 1)]);
            self.pad(size);
            return;
        }
        let mut put_rows = Put(rows);
        let mut put_names = Put(self.next(names).unwrap_or_default());
        let mut files = Files::new();
        for line in lines {
            let (file, new) = files.number(line.file);
            if new {
                put_names.terminated_name(line.file);
            }
            put_rows.words([pair(line.offset, line.line), pair(line.column, file)]);
        }
        Put(counts.unwrap_or_default()).words([pair(lines.len() as u32, files.count)]);
        self.pad(size);
    }

    pub(crate) fn inlined(&mut self, calls: &[Inlined<'_>], size: usize) {
        self.item(tag::INLINED, 0, size);
        let ranges = calls.iter().map(|call| call.ranges.len() as u32).sum();
        self.words([pair(calls.len() as u32, ranges)]);
        for call in calls {
            let parent = call.parent.unwrap_or(tag::NO_PARENT);
            self.words([pair(parent, call.line), pair(call.column, call.ranges.len() as u32)]);
        }
        for range in calls.iter().flat_map(|call| call.ranges) {
            self.words([pair(range.start, range.end)]);
        }
        let mut file: &[u8] = b"";
        for call in calls {
            self.terminated_name(call.name);
            if !same(call.file, file) {
                self.name(call.file);
                file = call.file;
            }
            self.bytes(&[0]);
        }
        self.pad(size);
    }
}

/// Copies a name to a buffer of its size, without characters that would break the lines of tools that print it.
///
/// It copies in blocks for which there are instructions; the last one overlaps the previous one. Names are
/// short, and calling a function to copy them takes longer.
#[inline]
fn copy_name(buffer: &mut [u8], name: &[u8]) {
    if name.len() >= 8 {
        copy_blocks(buffer, name);
    } else {
        for (place, byte) in buffer.iter_mut().zip(name) {
            *place = clean(*byte);
        }
    }
}

#[inline]
fn copy_blocks(buffer: &mut [u8], name: &[u8]) {
    if let (Some(place), Some(block)) = (buffer.last_chunk_mut::<8>(), name.last_chunk::<8>()) {
        *place = clean_block(*block);
    }
    for (place, block) in buffer.as_chunks_mut::<8>().0.iter_mut().zip(name.as_chunks::<8>().0) {
        *place = clean_block(*block);
    }
}

/// All bytes at once, by arithmetic within each: a compiler that optimizes for size makes no vector instructions of a loop.
#[inline]
fn clean_block(block: [u8; 8]) -> [u8; 8] {
    const ONES: u64 = u64::MAX / 0xff;
    let bytes = u64::from_ne_bytes(block);
    // Without the highest bit, so that no sum of two bytes carries into the next.
    let low = bytes & (ONES * 0x7f);
    let is_not_below_space = low.wrapping_add(ONES * 0x60);
    let is_delete = low.wrapping_add(ONES);
    let is_control = (!is_not_below_space | is_delete) & !bytes & (ONES * 0x80);
    let control = (is_control >> 7).wrapping_mul(0xff);
    (bytes & !control | control & (ONES * b' ' as u64)).to_ne_bytes()
}

#[inline]
fn clean(byte: u8) -> u8 {
    if byte < b' ' || byte == 0x7f { b' ' } else { byte }
}

#[cfg(test)]
mod tests {
    use super::copy_name;

    #[test]
    fn control_characters_in_names_are_replaced() {
        let all: Vec<u8> = (0..=255).collect();
        for start in 0..all.len() {
            for name in [&all[start..], &all[..start]] {
                let mut buffer = vec![1; name.len()];
                copy_name(&mut buffer, name);
                let control = |byte: &u8| *byte < 0x20 || *byte == 0x7f;
                let expected = name.iter().map(|byte| if control(byte) { b' ' } else { *byte });
                assert!(buffer.into_iter().eq(expected), "from {start}");
            }
        }
    }
}
