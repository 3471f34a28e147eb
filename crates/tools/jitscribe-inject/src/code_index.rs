//! Which code was at an address at a time.

use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use code_timeline::CodeId;
use rustc_hash::FxBuildHasher;

use super::Result;
use super::code_lines::{CodeLines, Frame};
use super::code_table::{CodeReader, CodeTable, Origin};
use super::lookup::{LookupCache, Numbers, Occupant};
use super::recording::Recording;
use super::sources::Codes;

/// Lines and calls of more codes than have this many are not kept decoded.
const HELD: usize = 1 << 20;

/// Answers which code was at an address of a process at a time, on which line, and into what it was inlined.
///
/// These are the answers by which samples are attributed: code that a forked child inherited is found, a process id that
/// was given to another process means the one that had it at that time, and code is known from up to 100 ms before the
/// time at which its writer announced it, where nothing else is known there.
///
/// Times are nanoseconds of the recording's clock. Addresses are those of instructions: of a return address on a call
/// stack, the one before it is in the call.
pub struct CodeIndex<'a> {
    table: &'a CodeTable<'a>,
    cache: LookupCache<'a, Numbers>,
    reader: CodeReader<'a>,
    decoded: HashMap<CodeId, Rc<CodeLines>, FxBuildHasher>,
    /// How many lines and calls these hold.
    held: usize,
}

impl fmt::Debug for CodeIndex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeIndex")
            .field("codes", &self.table.history.len())
            .finish_non_exhaustive()
    }
}

/// Code that was found at an address.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its number; code that moves is another.
    pub code: CodeId,
    /// The address of its first byte.
    pub start: u64,
    /// Its size in bytes.
    pub size: u64,
    /// How many bytes behind its beginning the address is.
    pub offset: u64,
    lines: Rc<CodeLines>,
}

impl Found {
    /// The name of the code as its writer gave it: any bytes, maybe none.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.lines.name()
    }

    /// The source line, and the function it is of: the code itself, or one that was inlined into it.
    #[must_use]
    pub fn line(&self) -> Option<Frame<'_>> {
        self.inlined_chain().next()
    }

    /// The functions at the address, the innermost first, each with the line at which it is; the last one is the code
    /// itself.
    pub fn inlined_chain(&self) -> impl Iterator<Item = Frame<'_>> {
        self.lines.at(self.start.saturating_add(self.offset))
    }
}

impl<'a> CodeIndex<'a> {
    /// For the code that was found for a recording. Nothing is read yet.
    #[must_use]
    pub fn new(recording: &'a Recording, codes: &'a Codes<'_>) -> Self {
        let table = &codes.table;
        let cache = LookupCache::new(&recording.index, &recording.spaces, table, &|_| false);
        Self { table, cache, reader: table.reader(), decoded: HashMap::default(), held: 0 }
    }

    /// Which code was at `address` in process `pid` at `time`; no file is read for it.
    pub fn code_at(&mut self, pid: u32, time: u64, address: u64) -> Option<CodeId> {
        let process = self.cache.process(pid, time)?;
        match self.cache.at(&process, address, time, &mut Numbers).occupant {
            Occupant::Code { mark, .. } => Some(mark),
            Occupant::Nothing { .. } => None,
        }
    }

    /// Which code was at `address` in process `pid` at `time`, and which line of which function that is.
    ///
    /// # Errors
    /// When the jitdump that describes the code cannot be read any more.
    pub fn lookup(&mut self, pid: u32, time: u64, address: u64) -> Result<Option<Found>> {
        let Some(code) = self.code_at(pid, time, address) else { return Ok(None) };
        let lines = self.lines(code)?;
        let place = self.table.history.code(code);
        let offset = address.saturating_sub(place.address);
        Ok(Some(Found { code, start: place.address, size: place.size, offset, lines }))
    }

    /// The name of a code, its lines, and what was inlined into it.
    ///
    /// # Errors
    /// When the jitdump that describes it cannot be read any more.
    pub fn lines(&mut self, id: CodeId) -> Result<Rc<CodeLines>> {
        if let Some(lines) = self.decoded.get(&id) {
            return Ok(Rc::clone(lines));
        }
        let code = self.table.history.code(id);
        let lines = match code.origin {
            Origin::Map(name) => CodeLines::decode(name.to_vec(), code.address, None),
            Origin::Dump(_) => {
                // `None` if the file was changed meanwhile.
                let load = self.reader.load(code)?;
                let name = load.map(|load| load.name.to_vec()).unwrap_or_default();
                CodeLines::decode(name, code.address, load.as_ref())
            }
        };
        let lines = Rc::new(lines);
        if self.held > HELD {
            self.decoded.clear();
            self.held = 0;
        }
        self.held += lines.len();
        self.decoded.insert(id, Rc::clone(&lines));
        Ok(lines)
    }
}
