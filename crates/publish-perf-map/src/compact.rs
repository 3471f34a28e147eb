//! Writing the file anew with what it must still say.

use std::path::{Path, PathBuf};

use rustix::fs::{CWD, renameat};
use rustix::io::Errno;

use crate::descriptor::Identity;
use crate::error::Cause;
use crate::file::MapFile;
use crate::line;
use crate::open;
use crate::table::{Piece, Table};

/// The file is not written anew before so many of its bytes are of dead code: a quarter
/// megabyte, some five thousand lines.
pub(crate) const SLACK: u64 = 256 << 10;

/// Of dead code's lines the youngest are kept, up to so many bytes: the samples taken in that
/// code still need their names. At half the slack, as many bytes again must die before the
/// next time, so that the work stays a constant for each event.
const KEPT: u64 = SLACK / 2;

/// How much is written at once.
const BATCH: usize = 64 << 10;

/// Which lines are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Live,
    LiveAndYoungestDead,
}

/// Writes a new file beside `path` and renames it over the old one, whose name must be `old`'s
/// or nobody's.
pub(crate) fn compact(path: &Path, old: &MapFile, table: &mut Table) -> Result<MapFile, Cause> {
    let (beside, mut new) = create_beside(path)?;
    let moved = copy(old, &mut new, table, Which::LiveAndYoungestDead)
        .and_then(|moved| swap(&beside, path, old, &mut new).map(|()| moved));
    match moved {
        Ok(moved) => {
            table.relocate(moved);
            Ok(new)
        }
        Err(cause) => {
            open::remove(&beside, new.identity());
            Err(cause)
        }
    }
}

fn swap(beside: &Path, path: &Path, old: &MapFile, new: &mut MapFile) -> Result<(), Cause> {
    let there = open::examine(path)?;
    if there.is_some_and(|stat| Identity::of(&stat) != old.identity()) {
        return Err(Cause::Replaced);
    }
    renameat(CWD, beside, CWD, path).map_err(Cause::system("rename the new one over it"))?;
    // A writer that opened the old file since we last looked may have written to it.
    let _ = new.rescue(old);
    Ok(())
}

/// A new file `perf-PID.map.XXXX`.
fn create_beside(path: &Path) -> Result<(PathBuf, MapFile), Cause> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    for attempt in 0..8 {
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{:04x}", (now.tv_nsec.wrapping_add(attempt * 7919)) & 0xffff));
        match open::create(Path::new(&beside)) {
            Ok(file) => return Ok((beside.into(), file)),
            Err(Cause::System { error, .. })
                if error.raw_os_error() == Some(Errno::EXIST.raw_os_error()) => {}
            Err(cause) => return Err(cause),
        }
    }
    Err(Cause::Contested)
}

/// Copies the lines in the order in which they were written. The answer is where they are now,
/// in the order of addresses.
pub(crate) fn copy(
    old: &MapFile,
    new: &mut MapFile,
    table: &Table,
    which: Which,
) -> Result<Vec<(u64, Piece)>, Cause> {
    let mut pieces: Vec<(u64, Piece)> =
        table.pieces().filter(|(_, piece)| piece.live || which != Which::Live).collect();
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
        // The numbers come from the table: while a child copies its parent's file, the parent
        // goes on changing sizes there.
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

/// The stretch of the old file that was read last.
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
