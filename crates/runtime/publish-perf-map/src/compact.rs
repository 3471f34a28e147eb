//! Rewrites the file with the lines that are still needed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use fallible::{PathText, Refused, Vec};

use rustix::fs::{CWD, renameat};
use rustix::io::Errno;

use crate::descriptor::Identity;
use crate::error::Cause;
use crate::file::MapFile;
use crate::line;
use crate::open;
use crate::table::{Piece, Table};

/// The file is not rewritten before this many of its bytes belong to dead code: a quarter megabyte,
/// about five thousand lines.
pub(crate) const SLACK: u64 = 256 << 10;

/// The youngest lines of dead code, up to this many bytes, are kept: samples taken in that code
/// still need their names. With half of the slack, as many bytes must die again before the next
/// time, so the work per event is constant.
const KEPT: u64 = SLACK / 2;

/// Number of bytes to write at a time.
const BATCH: usize = 64 << 10;

/// The lines to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopiedLines {
    Live,
    LiveAndYoungestDead,
}

/// Writes a new file next to `path` and renames it over the old one. The name must still belong to
/// `old`, or to no file.
pub(crate) fn compact(path: &PathText, old: &MapFile, table: &mut Table) -> Result<MapFile, Cause> {
    let (temporary, mut new) = create_temporary(path)?;
    let moved = copy(old, &mut new, table, CopiedLines::LiveAndYoungestDead)
        .and_then(|moved| swap(&temporary, path, old, &mut new).map(|()| moved));
    match moved {
        Ok(moved) => {
            table.relocate(moved);
            Ok(new)
        }
        Err(cause) => {
            open::remove(&temporary, new.identity());
            Err(cause)
        }
    }
}

fn swap(
    temporary: &PathText,
    path: &PathText,
    old: &MapFile,
    new: &mut MapFile,
) -> Result<(), Cause> {
    let there = open::examine(path)?;
    if there.is_some_and(|stat| Identity::of(&stat) != old.identity()) {
        return Err(Cause::Replaced);
    }
    renameat(CWD, temporary.as_c_str(), CWD, path.as_c_str())
        .map_err(Cause::system("rename the new one over it"))?;
    // A writer that opened the old file since the last check may have written to it.
    let _ = new.rescue(old);
    Ok(())
}

/// Creates a file `perf-PID.map.XXXX`.
fn create_temporary(path: &PathText) -> Result<(PathText, MapFile), Cause> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    for attempt in 0..8 {
        let end = (now.tv_nsec.wrapping_add(attempt * 7919)) & 0xffff;
        let name = path.as_path().file_name().unwrap_or_default().as_bytes();
        let name = fallible::attempt(|| {
            let mut name = Vec::from(name);
            name.extend_from_slice(fallible::text!(".{end:04x}").as_bytes());
            name
        });
        let name = name.map_err(|Refused| Cause::Memory)?;
        let temporary = path.with_file_name(OsStr::from_bytes(&name)).ok_or(Cause::Memory)?;
        match open::create(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(Cause::System { error, .. })
                if error.raw_os_error() == Some(Errno::EXIST.raw_os_error()) => {}
            Err(cause) => return Err(cause),
        }
    }
    Err(Cause::Contested)
}

/// Copies the lines in the order in which they were written. Returns their new places, ordered by
/// address.
pub(crate) fn copy(
    old: &MapFile,
    new: &mut MapFile,
    table: &Table,
    lines: CopiedLines,
) -> Result<Vec<(u64, Piece)>, Cause> {
    fallible::attempt(|| copy_here(old, new, table, lines)).unwrap_or(Err(Cause::Memory))
}

/// [`copy`], within an attempt.
fn copy_here(
    old: &MapFile,
    new: &mut MapFile,
    table: &Table,
    lines: CopiedLines,
) -> Result<Vec<(u64, Piece)>, Cause> {
    let mut pieces: Vec<(u64, Piece)> =
        table.pieces().filter(|(_, piece)| piece.live || lines != CopiedLines::Live).collect();
    pieces.sort_unstable_by_key(|(_, piece)| piece.offset);
    let dead = pieces.iter().filter(|(_, piece)| !piece.live);
    let dead: u64 = dead.map(|(_, piece)| u64::from(piece.length)).sum();
    let mut surplus = dead.saturating_sub(KEPT);
    pieces.retain(|(_, piece)| {
        let dropped = !piece.live && surplus > 0;
        if dropped {
            surplus = surplus.saturating_sub(piece.length.into());
        }
        !dropped
    });

    let mut window = Window { start: 0, bytes: Vec::new() };
    let mut batch = Vec::with_capacity(BATCH + line::LONGEST_LINE);
    let mut first_of_batch = 0;
    for at in 0..pieces.len() {
        let (address, piece) = pieces[at];
        let text = window.line(old, &piece)?;
        let name = line::name(text, address)?;
        let offset = batch.len();
        // Take the numbers from the table: while a child copies its parent's file, the parent goes
        // on changing sizes in it.
        let length = line::push(&mut batch, address, piece.size, name);
        pieces[at].1 = Piece { offset: u64::try_from(offset).unwrap_or(0), length, ..piece };
        if batch.len() >= BATCH || at + 1 == pieces.len() {
            let base = new.append(&batch)?;
            for (_, piece) in &mut pieces[first_of_batch..=at] {
                piece.offset += base;
            }
            first_of_batch = at + 1;
            batch.clear();
        }
    }
    pieces.sort_unstable_by_key(|&(address, _)| address);
    Ok(pieces)
}

/// The part of the old file that was read last.
struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    fn line(&mut self, file: &MapFile, piece: &Piece) -> Result<&[u8], Cause> {
        let length = usize::from(piece.length);
        let found = |window: &Window| {
            let from = usize::try_from(piece.offset.checked_sub(window.start)?).ok()?;
            (from + length <= window.bytes.len()).then_some(from..from + length)
        };
        if found(self).is_none() {
            self.bytes.resize(BATCH.max(length), 0);
            let filled = file.read(piece.offset, &mut self.bytes)?;
            self.bytes.truncate(filled);
            self.start = piece.offset;
        }
        found(self).and_then(|range| self.bytes.get(range)).ok_or(Cause::Damaged)
    }
}
