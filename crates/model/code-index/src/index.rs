//! The code of several sources, by process, time and address.

use code_timeline::{AddressSpaceId, History, Processes};

use crate::description::Description;
use crate::format::{Format, Options, Read, Source};
use crate::found::{Found, Place};

/// The last time: what is there at the end was never gone, which a history spells as `u64::MAX`.
const LAST: u64 = u64::MAX - 1;
/// How many pieces of code may be copied for forked processes, in each source; more are shared.
const COPIED: usize = 1 << 16;

/// Answers which code was at an address of a process at a time. Sources that were added later take precedence over earlier ones,
/// where both have a code.
#[derive(Debug, Default)]
pub struct CodeIndex {
    sources: Vec<Indexed>,
    /// `None`: there is only one process.
    processes: Option<Processes>,
    keeps_unloaded: bool,
}

#[derive(Debug)]
struct Indexed {
    source: Source,
    history: History<Place>,
}

/// What a source had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// The number of codes; moved code counts once for each place.
    pub codes: usize,
    /// How many records or lines could not be read.
    pub damaged: u64,
}

impl CodeIndex {
    /// An index without sources, whose code all belongs to [one process](AddressSpaceId::ONLY).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An index without sources, for the code of these processes.
    #[must_use]
    pub fn of_processes(processes: Processes) -> Self {
        Self { processes: Some(processes), ..Self::default() }
    }

    /// Answers with code that was unloaded too, until other code is there: what refers to an address may be older than the unload,
    /// such as a stack. Call this before sources are added.
    #[must_use]
    pub fn keeping_unloaded(self) -> Self {
        Self { keeps_unloaded: true, ..self }
    }

    /// The address space that a process id referred to at a time.
    #[must_use]
    pub fn space(&self, pid: u32, time: u64) -> Option<AddressSpaceId> {
        match &self.processes {
            Some(processes) => processes.at(pid, time),
            None => Some(AddressSpaceId::ONLY),
        }
    }

    /// Adds a source with this content. The code of a source that does not name its process belongs to the first one.
    ///
    /// # Errors
    /// If nothing of it can be read. It has a number, but no code, then.
    pub fn add(&mut self, format: &Format, content: &[u8]) -> Result<Added, jitdump::Error> {
        let options =
            Options { processes: self.processes.as_ref(), keeps_unloaded: self.keeps_unloaded };
        let read = format.read(content, &options);
        let error = read.as_ref().err().cloned();
        let Read { quirks, history, damaged } = read.unwrap_or_default();
        let none = Processes::new();
        let history = history.finish(self.processes.as_ref().unwrap_or(&none), COPIED);
        let added = Added { codes: history.len(), damaged };
        self.sources.push(Indexed { source: Source { format: *format, quirks }, history });
        error.map_or(Ok(added), Err)
    }

    /// The code at `address` of a process at `time`.
    #[must_use]
    pub fn at(&self, space: AddressSpaceId, time: u64, address: u64) -> Option<Found> {
        let none = Processes::new();
        let processes = self.processes.as_ref().unwrap_or(&none);
        self.sources.iter().enumerate().rev().find_map(|(source, Indexed { history, .. })| {
            let code = history.code(history.at(processes, space, address, time.min(LAST))?);
            Some(Found { source, start: code.address, size: code.size, place: code.origin.clone() })
        })
    }

    /// The code that is at `address` of a process at the end.
    #[must_use]
    pub fn last(&self, space: AddressSpaceId, address: u64) -> Option<Found> {
        self.at(space, LAST, address)
    }

    /// What the source says of a code. `content` is that of [its source](Found::source); `None` if it does not contain the code
    /// any more.
    #[must_use]
    pub fn describe<'d>(&self, found: &Found, content: &'d [u8]) -> Option<Description<'d>> {
        self.sources.get(found.source)?.source.describe(found, content)
    }
}
