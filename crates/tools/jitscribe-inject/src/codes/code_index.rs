//! Which code was at an address at a given time.

use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use code_timeline::CodeId;
use jitdump::CodeLoad;
use rustc_hash::FxBuildHasher;

use super::code_lines::{decoded_lines, resolved_lines};
use super::code_table::{CodeReader, CodeTable};
use super::lookup::{LookupCache, Numbers, Occupant};
use super::source_lines::{CachedResolver, SourceResolver};
use super::sources::Codes;
use crate::Result;
use crate::recording::Recording;
use code_index::{CodeLines, Frame};

/// Codes with more lines and calls than this are not cached.
const HELD: usize = 1 << 20;

/// Answers which code was at an address of a process at a given time, its source line, and its inlined calls.
///
/// Samples are attributed in the same way: code that a forked child inherited is found; a process id that was reused
/// refers to the process that had it at that time; and code is found up to 100 ms before its writer announced it, if
/// nothing else is known to be there.
///
/// Times are nanoseconds of the recording's clock. Addresses are those of instructions. For a return address on a call
/// stack, subtract one to get an address in the call.
pub struct CodeIndex<'a> {
    table: &'a CodeTable<'a>,
    cache: LookupCache<'a, Numbers>,
    reader: CodeReader<'a>,
    decoded: HashMap<CodeId, Rc<CodeLines>, FxBuildHasher>,
    sources: Option<CachedResolver<'a>>,
    /// Number of lines and calls in the cache.
    held: usize,
}

impl fmt::Debug for CodeIndex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeIndex")
            .field("codes", &self.table.history.len())
            .finish_non_exhaustive()
    }
}

/// The code at an address.
#[derive(Clone, Debug)]
pub struct CodeAtAddress {
    /// Its number. Moved code has a number for each place.
    pub code: CodeId,
    /// The address of its first byte.
    pub start: u64,
    /// Its size in bytes.
    pub size: u64,
    /// The offset of the address from the code's beginning.
    pub offset: u64,
    lines: Rc<CodeLines>,
}

impl CodeAtAddress {
    /// The name of the code as its writer gave it: any bytes, possibly none.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.lines.name()
    }

    /// The source line, and the function that it belongs to: the code itself, or one that was inlined into it.
    #[must_use]
    pub fn line(&self) -> Option<Frame<'_>> {
        self.inlined_chain().next()
    }

    /// The functions at the address with their lines, the innermost first; the last one is the code itself.
    pub fn inlined_chain(&self) -> impl Iterator<Item = Frame<'_>> {
        self.lines.at(self.start.saturating_add(self.offset))
    }
}

impl<'a> CodeIndex<'a> {
    /// An index of the code that was found for a recording. Nothing is read yet.
    #[must_use]
    pub fn new(recording: &'a Recording, codes: &'a Codes<'_>) -> Self {
        let table = &codes.table;
        let cache = LookupCache::new(&recording.index, &recording.spaces, table, &|_| false);
        let reader = table.reader();
        Self { table, cache, reader, decoded: HashMap::default(), sources: None, held: 0 }
    }

    /// Gives lines of the user's sources: see [`SourceOptions`](crate::SourceOptions). The default is those that the runtimes report.
    #[must_use]
    pub fn sources(mut self, sources: &'a SourceResolver<'a>) -> Self {
        self.sources = Some(sources.cached());
        self.decoded.clear();
        self
    }

    /// The code at `address` in process `pid` at `time`. This reads no file.
    pub fn code_at(&mut self, pid: u32, time: u64, address: u64) -> Option<CodeId> {
        let process = self.cache.process(pid, time)?;
        match self.cache.at(&process, address, time, &mut Numbers).occupant {
            Occupant::Code { mark, .. } => Some(mark),
            Occupant::Nothing { .. } => None,
        }
    }

    /// The code at `address` in process `pid` at `time`, with its function and line.
    ///
    /// # Errors
    /// If the jitdump that describes the code cannot be read any more.
    pub fn lookup(&mut self, pid: u32, time: u64, address: u64) -> Result<Option<CodeAtAddress>> {
        let Some(code) = self.code_at(pid, time, address) else { return Ok(None) };
        let lines = self.lines(code)?;
        let place = self.table.history.code(code);
        let offset = address.saturating_sub(place.address);
        Ok(Some(CodeAtAddress { code, start: place.address, size: place.size, offset, lines }))
    }

    /// The name of a code, its lines, and its inlined calls.
    ///
    /// # Errors
    /// If the jitdump that describes it cannot be read any more.
    pub fn lines(&mut self, id: CodeId) -> Result<Rc<CodeLines>> {
        if let Some(lines) = self.decoded.get(&id) {
            return Ok(Rc::clone(lines));
        }
        let code = self.table.history.code(id);
        let sources = self.sources.as_ref();
        fn lines_of<'p, 'a: 'p>(
            name: &'p [u8],
            start: u64,
            load: Option<&CodeLoad<'p>>,
            sources: Option<&CachedResolver<'a>>,
        ) -> CodeLines {
            match sources {
                Some(sources) => resolved_lines(name, start, load, sources),
                None => decoded_lines(name, start, load),
            }
        }
        let lines = match self.table.name_without_dump(id) {
            Some(name) => lines_of(name, code.address, None, sources),
            None => {
                // `None` if the file has changed since.
                let load = self.reader.load(code)?;
                let name = load.map(|load| load.name).unwrap_or_default();
                lines_of(name, code.address, load.as_ref(), sources)
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
