//! The code of compilers that do not announce it, in the memory of a process.

use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::OwnedFd;

use found_code::{Change, Compilers, Finder, Mapped, Poll};
use jitdump::Writer;
use rustix::time::ClockId;

use super::code::CodeWriter;
use super::find::Descriptor;
use crate::process::logs::nanoseconds;
use crate::process::memory::{Mapping, present};

/// What was found so far.
#[derive(Debug)]
pub struct Finding {
    finder: Finder,
    /// Which pages are present, if this may be read.
    pages: Option<OwnedFd>,
    /// The memory in which there may be code: what is mapped now, and was executable once. LuaJIT makes it writable instead while it writes.
    code: Vec<Range<u64>>,
    /// The numbers in the dump of the codes that are there, by those of the finder.
    written: HashMap<u64, u64>,
}

/// What to look for.
#[derive(Clone, Copy, Debug)]
pub struct Sought {
    /// The code of these compilers.
    pub compilers: Compilers,
    /// The most bytes that are scanned.
    pub scan: u64,
    /// The time of codes that are new, if they were looked for at the last poll.
    pub time: u64,
}

/// What has changed.
#[derive(Debug, Default)]
pub struct Found {
    /// How many codes are new.
    pub new: u64,
    /// The numbers of codes that are gone.
    pub gone: Vec<u64>,
}

impl Finding {
    pub fn new(pages: Option<OwnedFd>) -> Self {
        Self { finder: Finder::default(), pages, code: Vec::new(), written: HashMap::new() }
    }

    /// Whether there is code that is not read.
    pub fn is_full(&self) -> bool {
        self.finder.is_full()
    }

    /// Adds a mapping to `mapped`. Mappings come in the order of their addresses.
    pub fn see(&self, mapping: &Mapping, mapped: &mut Mapped) {
        if !mapping.is_anonymous() {
            return;
        }
        if mapping.is_writable {
            push(&mut mapped.data, &mapping.range);
        }
        let was_code =
            || self.code.iter().any(|code| code_timeline::ranges::overlap(code, &mapping.range));
        if mapping.is_executable || was_code() {
            push(&mut mapped.code, &mapping.range);
        }
    }

    /// Finds code, and writes what is new.
    pub fn poll(
        &mut self,
        sought: &Sought,
        mapped: &Mapped,
        memory: &Descriptor<'_, '_>,
        writer: &mut CodeWriter,
        dump: &mut Writer<Vec<u8>>,
    ) -> Found {
        self.code.clone_from(&mapped.code);
        let mut found = Found::default();
        let poll = Poll {
            memory,
            mapped,
            compilers: sought.compilers,
            bytes: sought.scan,
            now: nanoseconds(ClockId::Monotonic),
            last: sought.time,
        };
        let pages = self.pages.as_ref();
        let written = &mut self.written;
        self.finder.poll(
            &poll,
            |range| present(pages, range),
            |change| match change {
                Change::Found { id, code, since } => {
                    if let Some(index) = writer.write_found(&code, memory, since, dump) {
                        written.insert(id, index);
                        found.new += 1;
                    }
                }
                Change::Gone { id } => found.gone.extend(written.remove(&id)),
            },
        );
        found
    }
}

/// Adds a range behind the others.
fn push(sorted: &mut Vec<Range<u64>>, range: &Range<u64>) {
    match sorted.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => sorted.push(range.clone()),
    }
}
