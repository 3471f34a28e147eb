//! A watched file: how far it has been read, and the entries in it.
#![forbid(unsafe_code)]

use std::ffi::c_int;

use fallible::Vec;

use crate::announce::Announcer;
use crate::buffer::part;
use crate::names::Kind;
use crate::sys::{self, Status};
use crate::tail::{FileEntry, Tail};

/// Number of bytes to read at a time.
const CHUNK: usize = 1 << 16;
/// Number of bytes of a file written through a mapping that are compared between two reads.
const COMPARED: usize = 1 << 20;

/// A watched file.
#[derive(Debug)]
pub(crate) struct File {
    kind: Kind,
    /// Device and inode number.
    pub(crate) identity: (u64, u64),
    /// Our own descriptor of it.
    pub(crate) reader: c_int,
    /// How far it has been read.
    offset: u64,
    tail: Tail,
    /// Whether the last read reached the end of the file, and something was new.
    is_at_end: bool,
    /// Whether it was open when this process was forked: what the parent writes belongs to the parent.
    pub(crate) is_inherited: bool,
    /// If it is written through a mapping: the content behind `offset` at the last read.
    previous: Option<Vec<u8>>,
}

/// When a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// After something was written.
    Written,
    /// From time to time.
    Polled,
    /// For the last time: it is closed, or the process ends.
    Last,
}

impl File {
    pub(crate) fn new(kind: Kind, reader: c_int, status: Status) -> Self {
        Self {
            kind,
            identity: status.identity,
            reader,
            offset: status.size,
            tail: Tail::new(kind, status.size),
            is_at_end: false,
            is_inherited: false,
            previous: None,
        }
    }

    /// The file is opened again. What others wrote while it was closed is theirs.
    pub(crate) fn reopened(&mut self, status: Status, number: usize, announcer: &mut Announcer) {
        if status.size < self.offset {
            self.restart(0, number, announcer);
        } else if status.size > self.offset {
            self.skip_to(status.size);
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether there is nothing to read in it.
    pub(crate) fn is_ignored(&self) -> bool {
        self.tail.is_ignored()
    }

    /// Whether to remember how far it was read after it is closed: some runtimes reopen a map for each line.
    pub(crate) fn is_kept(&self) -> bool {
        self.kind == Kind::Map && !self.is_ignored()
    }

    /// From now on it is written through a mapping.
    pub(crate) fn is_mapped(&mut self) {
        self.previous.get_or_insert_default();
    }

    pub(crate) fn is_polled(&self) -> bool {
        self.previous.is_some() && !self.is_ignored()
    }

    /// The child of a fork has it open, too.
    pub(crate) fn inherit(&mut self) {
        self.is_inherited = true;
        self.previous = None;
    }

    /// Whether it was read up to its end, which is the end of a record.
    pub(crate) fn is_between_records(&self) -> bool {
        self.is_at_end
            && !self.is_inherited
            && self.previous.is_none()
            && self.tail.is_between_records()
    }

    /// Skips the current content, which belongs to another process.
    pub(crate) fn skip_to_end(&mut self) {
        if let Some(status) = sys::status(self.reader)
            && status.size != self.offset
        {
            self.skip_to(status.size);
        }
    }

    fn skip_to(&mut self, size: u64) {
        self.offset = size;
        self.tail = Tail::new(self.kind, size);
    }

    fn restart(&mut self, size: u64, number: usize, announcer: &mut Announcer) {
        announcer.forget(number);
        self.skip_to(size);
    }

    /// Reads what is new, and announces it.
    pub(crate) fn read_new(
        &mut self,
        when: Trigger,
        number: usize,
        buffer: &mut Vec<u8>,
        announcer: &mut Announcer,
    ) {
        self.is_at_end = false;
        if self.is_ignored() || !self.has_begun(buffer) {
            return;
        }
        if self.kind == Kind::Dump {
            announcer.set_has_dump();
        }
        if self.previous.is_some() && when != Trigger::Last {
            return self.read_stable(number, buffer, announcer);
        }
        let mut add = |entry: FileEntry<'_>| announcer.add(number, entry);
        let before = self.offset;
        loop {
            let space = part(buffer, CHUNK);
            let read = sys::read_at(self.reader, space, self.offset);
            if read == 0 {
                self.is_at_end = self.offset > before;
                break;
            }
            let full = read == space.len();
            let new = space.get(..read).unwrap_or_default();
            let taken = self.tail.take(new, &mut add);
            self.offset += taken as u64;
            if when == Trigger::Last && self.kind == Kind::Map {
                // Zeros that will not be filled any more, and maybe a line behind them.
                let rest = new.get(taken..).unwrap_or_default();
                let zeros = rest.iter().take_while(|&&byte| byte == 0).count();
                self.offset += zeros as u64;
                if zeros > 0 {
                    continue;
                }
            }
            if taken == 0 || !full {
                // What is written behind it will be noted.
                self.is_at_end = taken == read;
                break;
            }
        }
        if when == Trigger::Last {
            self.tail.finish(&mut add);
        }
        if self.offset == before
            && sys::status(self.reader).is_some_and(|status| status.size < self.offset)
        {
            self.restart(0, number, announcer);
            // What was written since it was truncated.
            self.read_new(when, number, buffer, announcer);
        }
    }

    /// Whether its header is complete, if it has one.
    fn has_begun(&mut self, buffer: &mut Vec<u8>) -> bool {
        if !matches!(self.tail, Tail::Head(_)) {
            return true;
        }
        let space = part(buffer, Tail::BEGINNING);
        let read = sys::read_at(self.reader, space, 0);
        let start = self.tail.begin(space.get(..read).unwrap_or_default());
        self.offset = start.unwrap_or(self.offset);
        start.is_some()
    }

    /// Content that has not changed since the previous read is valid.
    fn read_stable(&mut self, number: usize, buffer: &mut Vec<u8>, announcer: &mut Announcer) {
        let space = part(buffer, COMPARED);
        let read = sys::read_at(self.reader, space, self.offset);
        let now = space.get(..read).unwrap_or_default();
        let mut previous = self.previous.take().unwrap_or_default();
        let same = now.iter().zip(&previous).take_while(|(now, previous)| now == previous).count();
        let complete = self.tail.complete_len(now.get(..same).unwrap_or_default());
        let (new, rest) = now.split_at(complete);
        let taken = self.tail.take(new, &mut |entry| announcer.add(number, entry));
        self.offset += taken as u64;
        previous.clear();
        // Space that was allocated but not used is skipped.
        let used = rest.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        previous.extend_from_slice(rest.get(..used).unwrap_or_default());
        self.previous = Some(previous);
    }
}
