//! Finds our lines after others have written between them.

use std::ops::Range;

use fallible::Vec;

use crate::error::{Cause, not_refused};
use crate::file::MapFile;
use crate::line;
use crate::table::{Piece, Table};

/// Number of bytes to read at a time.
const BATCH: usize = 64 << 10;

/// A line of ours somewhere behind where it was thought to be.
struct Sought {
    address: u64,
    piece: Piece,
    place: Place,
}

enum Place {
    Unknown,
    /// It begins at this offset.
    Own(u64),
    /// It is behind an incomplete line of another writer: readers take both for one.
    Joined(Vec<u8>),
}

/// The lines that must be written again, as they were: address and line.
pub(crate) type Joined = Vec<(u64, Vec<u8>)>;

/// Finds the lines of `table` from `range.start` on, which are in `range` of the file, and sets
/// their offsets.
pub(crate) fn find(file: &MapFile, range: Range<u64>, table: &mut Table) -> Result<Joined, Cause> {
    let pieces = table.pieces().filter(|(_, piece)| piece.offset >= range.start);
    // Ordered by address.
    let mut sought: Vec<Sought> =
        pieces.map(|(address, piece)| Sought { address, piece, place: Place::Unknown }).collect();
    each_line(file, range, |offset, line| match_line(&mut sought, offset, line))?;
    not_refused()?;
    let mut joined = Vec::new();
    for Sought { address, place, .. } in sought.into_iter() {
        match place {
            Place::Own(offset) => table.set_offset(address, offset),
            Place::Joined(line) => joined.push((address, line)),
            Place::Unknown => return Err(Cause::Damaged),
        }
    }
    not_refused()?;
    Ok(joined)
}

fn match_line(sought: &mut [Sought], offset: u64, line: &[u8]) {
    let is_it = |piece: &Piece, size: u64, line: &[u8]| {
        piece.size == size && usize::from(piece.length) == line.len()
    };
    if let Some((address, size)) = line::range(line)
        && let Ok(at) = sought.binary_search_by_key(&address, |sought| sought.address)
        && let Some(sought) = sought.get_mut(at)
        // Lines of others only move ours further back. Of two equal lines, the first is taken.
        && offset >= sought.piece.offset
        && is_it(&sought.piece, size, line)
    {
        if !matches!(sought.place, Place::Own(_)) {
            sought.place = Place::Own(offset);
        }
        return;
    }
    for sought in sought.iter_mut().filter(|sought| matches!(sought.place, Place::Unknown)) {
        let end = line.len().checked_sub(sought.piece.length.into());
        let end = end.filter(|joint| *joint > 0).and_then(|joint| line.get(joint..));
        if let Some(end) = end
            && line::range(end) == Some((sought.address, sought.piece.size))
        {
            sought.place = Place::Joined(Vec::from(end));
        }
    }
}

/// Calls `look` with each complete line in a part of the file, and its offset. Of a very long line,
/// only the end is looked at, in which there may be one of ours.
fn each_line(
    file: &MapFile,
    range: Range<u64>,
    mut look: impl FnMut(u64, &[u8]),
) -> Result<(), Cause> {
    let mut buffer = fallible::vec![0; 2 * BATCH];
    not_refused()?;
    // The offset of the first byte in the buffer, and how many are in it.
    let (mut start, mut filled) = (range.start, 0_usize);
    loop {
        let offset = start + filled as u64;
        let left = usize::try_from(range.end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let space = (buffer.len() - filled).min(left);
        let Some(place) = buffer.get_mut(filled..filled + space) else { return Ok(()) };
        let read = file.read(offset, place)?;
        if read == 0 {
            return Ok(());
        }
        filled += read;
        let mut done = 0;
        for line in buffer[..filled].split_inclusive(|byte| *byte == b'\n') {
            if line.ends_with(b"\n") {
                look(start + done as u64, line);
                done += line.len();
            }
        }
        if filled - done > BATCH {
            done = filled - line::LONGEST_LINE;
        }
        buffer.copy_within(done..filled, 0);
        (start, filled) = (start + done as u64, filled - done);
    }
}
