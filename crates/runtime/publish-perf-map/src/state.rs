//! File and table together, under the lock.

use std::ops::Range;
use std::path::Path;

use fallible::{PathText, Vec};

use rustix::process::{Pid, getpid};

use crate::compact::{self, CopiedLines, SLACK};
use crate::error::{Cause, Error, not_refused};
use crate::file::MapFile;
use crate::find;
use crate::line;
use crate::open;
use crate::options::Options;
use crate::table::{Piece, Table};

#[derive(Debug)]
pub(crate) struct State {
    /// The process to which the file belongs.
    pid: Pid,
    path: PathText,
    file: MapFile,
    table: Table,
    /// Number of bytes of dead code at which the file is rewritten.
    patience: u64,
    /// Reused for every line.
    lines: Vec<u8>,
    /// A range with the addresses of all lines whose offset is not [certain](MapFile::sure_end).
    unsure: Range<u64>,
}

const NONE: Range<u64> = 0..0;

/// Whether code can exist in this range.
pub(crate) fn can_be(address: u64, size: u64) -> bool {
    size > 0 && address.checked_add(size).is_some()
}

impl State {
    pub fn create(options: &Options) -> Result<State, Error> {
        let path = open::path_in(options)?;
        let file = open::open(&path)?;
        let (table, lines) = (Table::default(), Vec::new());
        Ok(State { pid: getpid(), path, file, table, patience: SLACK, lines, unsure: NONE })
    }

    pub fn path(&self) -> &Path {
        self.path.as_path()
    }

    pub fn load(&mut self, address: u64, size: u64, name: &[u8]) -> Result<(), Cause> {
        if !can_be(address, size) {
            return Ok(());
        }
        let mut lines = std::mem::take(&mut self.lines);
        lines.clear();
        let length = line::push(&mut lines, address, size, name);
        let result = self.load_lines(&lines, &[(address, size, length)]);
        self.lines = lines;
        result
    }

    /// Loads codes whose lines are already formatted: address, size, length of the line.
    ///
    /// Nothing is written if an allocation failed while they were formatted: an incomplete line
    /// without newline would spoil the next one.
    pub fn load_lines(&mut self, lines: &[u8], codes: &[(u64, u64, u16)]) -> Result<(), Cause> {
        not_refused()?;
        match codes {
            [(address, size, _)] => {
                if self.file.is_check_due() {
                    self.check()?;
                }
                self.be_sure_of(*address..*address + *size)?;
            }
            // Lines of a batch may be changed by later ones of it, so their offsets must be
            // certain.
            _ => {
                self.check()?;
                self.file.be_careful();
            }
        }
        let mut offset = self.file.append(lines)?;
        for &(address, size, length) in codes {
            self.enter(address, Piece { size, offset, length, live: true })?;
            offset += u64::from(length);
        }
        self.compact_if_due()
    }

    /// Enters a line that was just written. It is written before older lines are resized, so that
    /// no address is without a name if the process is killed in between; of two lines, the later
    /// one is valid.
    fn enter(&mut self, address: u64, piece: Piece) -> Result<(), Cause> {
        let changes = self.table.free_range(&(address..address + piece.size));
        if let Some(tail) = changes.tail {
            let (named_at, named_by) = tail.named_by;
            let name = self.name(named_at, &named_by)?;
            let mut line = Vec::new();
            let length = line::push(&mut line, tail.address, tail.size, &name);
            if !self.file.is_alone() {
                // Even if the file was just deleted: offsets in it must stay the same until
                // everything is entered.
                self.file.is_deleted()?;
            }
            not_refused()?;
            let offset = self.file.append(&line)?;
            self.table.insert_tail(&tail, offset, length);
            self.note_unsure(tail.address, tail.size);
        }
        for resize in changes.resizes {
            self.file.resize(resize)?;
        }
        self.table.insert(address, piece);
        self.note_unsure(address, piece.size);
        Ok(())
    }

    pub fn unload(&mut self, address: u64, size: u64) -> Result<(), Cause> {
        self.table.unload(address, size);
        self.compact_if_due()
    }

    pub fn moved(&mut self, from: u64, to: u64, size: u64) -> Result<(), Cause> {
        if from == to || !can_be(to, size) {
            return Ok(());
        }
        if self.file.sure_end().is_some() {
            self.check()?;
        }
        let Some((address, piece)) = self.table.unload(from, size) else { return Ok(()) };
        let name = self.name(address, &piece)?;
        self.load(to, size, &name)
    }

    /// The name in the line of the piece at `address`.
    fn name(&self, address: u64, piece: &Piece) -> Result<Vec<u8>, Cause> {
        let mut text = fallible::vec![0; piece.length.into()];
        let filled = self.file.read(piece.offset, &mut text)?;
        if text.len() < usize::from(piece.length) {
            return Err(Cause::Memory);
        }
        Ok(Vec::from(line::name(&text[..filled], address)?))
    }

    /// Examines the file. Restores it if it was deleted, for example by a cleaner of `/tmp`.
    fn check(&mut self) -> Result<(), Cause> {
        if !self.examine()? {
            return Ok(());
        }
        if self.pid != getpid() {
            // This is a child that did not call `forked`: the name belongs to its parent.
            return Err(Cause::Replaced);
        }
        self.file = compact::compact(&self.path, &self.file, &mut self.table)?;
        Ok(())
    }

    /// Examines the file, so that the offsets of all lines are certain. Returns whether it was
    /// deleted.
    fn examine(&mut self) -> Result<bool, Cause> {
        let is_deleted = self.file.is_deleted()?;
        if let Some(range) = self.file.unsure() {
            let joined = find::find(&self.file, range, &mut self.table)?;
            self.file.are_found();
            for (address, line) in joined.iter() {
                let offset = self.file.append(line)?;
                self.table.set_offset(*address, offset);
                self.file.is_deleted()?;
            }
        }
        self.unsure = NONE;
        Ok(is_deleted)
    }

    /// Makes sure that the offsets of all lines are certain.
    fn be_sure(&mut self) -> Result<(), Cause> {
        if self.file.sure_end().is_some() { self.examine().map(drop) } else { Ok(()) }
    }

    /// Makes sure of the offsets of lines that overlap with a range: they will be changed.
    fn be_sure_of(&mut self, range: Range<u64>) -> Result<(), Cause> {
        if range.start >= self.unsure.end || self.unsure.start >= range.end {
            return Ok(());
        }
        let sure_end = self.file.sure_end().unwrap_or(u64::MAX);
        if self.table.overlapping(&range).any(|piece| piece.offset >= sure_end) {
            self.check()?;
        }
        Ok(())
    }

    fn note_unsure(&mut self, address: u64, size: u64) {
        if self.file.sure_end().is_some() {
            let all = &mut self.unsure;
            let start = if all.is_empty() { address } else { all.start.min(address) };
            *all = start..all.end.max(address + size);
        }
    }

    /// Rewrites the file when most of it belongs to dead code. Not if another writer has it open,
    /// which would go on writing to the deleted file.
    fn compact_if_due(&mut self) -> Result<(), Cause> {
        let ours = self.file.end() - self.file.foreign();
        let live = self.table.live_bytes();
        let stale = ours.saturating_sub(live);
        let due = stale > self.patience.max(live) && self.file.foreign() == 0;
        if !due || self.pid != getpid() {
            return Ok(());
        }
        self.be_sure()?;
        if self.file.foreign() > 0 {
            return Ok(());
        }
        match compact::compact(&self.path, &self.file, &mut self.table) {
            Ok(file) => {
                self.file = file;
                self.patience = SLACK;
                Ok(())
            }
            // The old file is still valid. There may be space for the new one later.
            Err(Cause::System { .. } | Cause::SizeLimit | Cause::Contested | Cause::Memory) => {
                self.patience = stale.saturating_mul(2);
                Ok(())
            }
            Err(cause) => Err(cause),
        }
    }

    /// In the child of a fork: creates a file of its own. The parent's file is only read, and only
    /// if its descriptors are unchanged.
    pub fn forked(&mut self, options: &Options) -> Result<(), Error> {
        if self.pid == getpid() {
            return Ok(());
        }
        let mut child = State::create(options)?;
        if self.file.is_ours() {
            self.be_sure().map_err(|cause| {
                open::remove(&child.path, child.file.identity());
                Error::new(child.path.as_path(), cause)
            })?;
            let moved = compact::copy(&self.file, &mut child.file, &self.table, CopiedLines::Live);
            let moved = moved.map_err(|cause| {
                open::remove(&child.path, child.file.identity());
                Error::new(child.path.as_path(), cause)
            })?;
            self.table.relocate(moved);
        } else {
            self.table = Table::default();
        }
        self.pid = child.pid;
        self.path = child.path;
        self.patience = SLACK;
        self.file = child.file;
        self.unsure = NONE;
        Ok(())
    }

    /// Deletes the file, unless it belongs to the parent.
    pub fn remove(&self) {
        if self.pid == getpid() {
            open::remove(&self.path, self.file.identity());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cause, Options, State};
    use crate::table::Resize;

    #[test]
    fn an_incomplete_line_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = State::create(&Options::new().directory(folder.path())).unwrap();
        state.load(0x1000, 0x40, b"whole").unwrap();
        let written = || std::fs::read(state.path()).unwrap();
        let before = written();
        assert_eq!(before, b"1000 40 whole\n");

        let resize = Resize { address: 0x1000, offset: 0, from: 0x40, to: 0x10 };
        let _ = fallible::attempt(|| {
            fallible::refuse();
            assert!(matches!(state.file.resize(resize), Err(Cause::Memory)));
        });
        assert_eq!(written(), before);
        let _ = fallible::attempt(|| {
            fallible::refuse();
            assert!(matches!(state.load(0x1010, 0x10, b"half"), Err(Cause::Memory)));
        });
        assert_eq!(std::fs::read(state.path()).unwrap(), before);
    }
}
