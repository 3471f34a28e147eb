//! File and table together, behind the lock.

use std::path::{Path, PathBuf};

use rustix::process::{Pid, getpid};

use crate::compact::{self, SLACK, Which};
use crate::error::{Cause, Error};
use crate::file::MapFile;
use crate::line;
use crate::open;
use crate::options::Options;
use crate::table::{Piece, Table};

#[derive(Debug)]
pub(crate) struct State {
    /// The process whose file it is.
    pid: Pid,
    path: PathBuf,
    file: MapFile,
    table: Table,
    /// How many bytes may be of dead code before the file is written anew.
    patience: u64,
    /// Reused for every line.
    lines: Vec<u8>,
}

/// Whether code can be there at all.
pub(crate) fn can_be(address: u64, size: u64) -> bool {
    size > 0 && address.checked_add(size).is_some()
}

impl State {
    pub fn create(options: &Options) -> Result<State, Error> {
        let path = open::path_in(&options.directory);
        let file = open::open(&path)?;
        let (table, lines) = (Table::default(), Vec::new());
        Ok(State { pid: getpid(), path, file, table, patience: SLACK, lines })
    }

    pub fn path(&self) -> &Path {
        &self.path
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

    /// Loads codes whose lines are spelled already: address, size, length of the line.
    pub fn load_lines(&mut self, lines: &[u8], codes: &[(u64, u64, u16)]) -> Result<(), Cause> {
        self.restore_if_deleted()?;
        let mut offset = self.file.append(lines)?;
        for &(address, size, length) in codes {
            self.enter(address, Piece { size, offset, length, live: true })?;
            offset += u64::from(length);
        }
        self.compact_if_due()
    }

    /// Enters a line that was just written. It is written before older lines give way, so that
    /// no address is without a name if the process is killed in between; of two lines the later
    /// one counts.
    fn enter(&mut self, address: u64, piece: Piece) -> Result<(), Cause> {
        let room = self.table.make_room(&(address..address + piece.size));
        if let Some(tail) = room.tail {
            let (named_at, named_by) = tail.named_by;
            let name = self.name(named_at, &named_by)?;
            let mut line = Vec::new();
            let length = line::push(&mut line, tail.address, tail.size, &name);
            // Even if the file was deleted just now: places in it must stay what they are until
            // all is entered.
            self.file.is_deleted()?;
            let offset = self.file.append(&line)?;
            self.table.insert_tail(&tail, offset, length);
        }
        for resize in room.resizes {
            self.file.resize(resize)?;
        }
        self.table.insert(address, piece);
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
        let Some((address, piece)) = self.table.unload(from, size) else { return Ok(()) };
        let name = self.name(address, &piece)?;
        self.load(to, size, &name)
    }

    /// The name in the line of the piece at `address`.
    fn name(&self, address: u64, piece: &Piece) -> Result<Vec<u8>, Cause> {
        let mut text = vec![0; piece.length.into()];
        let filled = self.file.read(piece.offset, &mut text)?;
        Ok(line::name(&text[..filled], address)?.to_vec())
    }

    /// Brings a file back that somebody deleted, as cleaners of `/tmp` do.
    fn restore_if_deleted(&mut self) -> Result<(), Cause> {
        if !self.file.is_deleted()? {
            return Ok(());
        }
        if self.pid != getpid() {
            // A child that did not say so: the name is its parent's.
            return Err(Cause::Replaced);
        }
        self.file = compact::compact(&self.path, &self.file, &mut self.table)?;
        Ok(())
    }

    /// Writes the file anew when most of it is of dead code. Not if another writer has it open:
    /// it would go on writing to the old file, which has no name any more.
    fn compact_if_due(&mut self) -> Result<(), Cause> {
        let ours = self.file.end() - self.file.foreign();
        let live = self.table.live_bytes();
        let stale = ours.saturating_sub(live);
        let due = stale > self.patience.max(live) && self.file.foreign() == 0;
        if !due || self.pid != getpid() {
            return Ok(());
        }
        match compact::compact(&self.path, &self.file, &mut self.table) {
            Ok(file) => {
                self.file = file;
                self.patience = SLACK;
                Ok(())
            }
            // The old file is as good as it was. Later there may be room for the new one.
            Err(Cause::System { .. } | Cause::SizeLimit | Cause::Contested) => {
                self.patience = stale.saturating_mul(2);
                Ok(())
            }
            Err(cause) => Err(cause),
        }
    }

    /// In the child of a fork: a file of its own. The parent's is only read, and only if its
    /// descriptors are still what they were.
    pub fn forked(&mut self, options: &Options) -> Result<(), Error> {
        if self.pid == getpid() {
            return Ok(());
        }
        let mut child = State::create(options)?;
        if self.file.is_ours() {
            let moved = compact::copy(&self.file, &mut child.file, &self.table, Which::Live);
            let moved = moved.map_err(|cause| {
                open::remove(&child.path, child.file.identity());
                Error::new(&child.path, cause)
            })?;
            self.table.relocate(moved);
        } else {
            self.table = Table::default();
        }
        self.pid = child.pid;
        self.path = child.path;
        self.patience = SLACK;
        self.file = child.file;
        Ok(())
    }

    /// Deletes the file, unless it is a parent's.
    pub fn remove(&self) {
        if self.pid == getpid() {
            open::remove(&self.path, self.file.identity());
        }
    }
}
