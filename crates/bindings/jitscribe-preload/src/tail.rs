//! Parses what is appended to a file: the lines or records that are complete.
#![forbid(unsafe_code)]

use fallible::Refused;
use jitdump::extension::log::FIRST_CHUNK;
use jitdump::{CodeEvent, Dump, Growing, HEADER_SIZE, Header};
use perf_map::Entry;

use crate::names::Kind;

/// A dump is given up if more than this is buffered while the end of a record is missing.
const MOST_HELD: usize = 256 << 20;

/// An entry of a file.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time, and none is kept")]
pub(crate) enum FileEntry<'a> {
    /// A line of a map.
    Line(Entry<'a>),
    /// An event of a dump.
    Event(CodeEvent<'a>),
}

/// The parser of a growing file.
#[derive(Debug)]
pub(crate) enum Tail {
    /// A map.
    Map(perf_map::Growing),
    /// A dump whose header has not been read. Records before this offset are skipped.
    Head(u64),
    /// A dump.
    Dump(Box<Growing>),
    /// A file that is neither, or one of `jitscribe`'s own: its writer announces its code itself.
    Ignored,
}

impl Tail {
    /// The parser of a file whose first `size` bytes were there before it was watched.
    pub(crate) fn new(kind: Kind, size: u64) -> Self {
        match kind {
            Kind::Map => Self::Map(perf_map::Growing::default()),
            Kind::Dump => Self::Head(size),
        }
    }

    /// Whether there is nothing to read in it.
    pub(crate) fn is_ignored(&self) -> bool {
        matches!(self, Self::Ignored)
    }

    /// The offset at which to continue reading, once the file is known to be a dump.
    ///
    /// `beginning` is the beginning of the file, of which [`FIRST_CHUNK`] bytes suffice.
    pub(crate) fn begin(&mut self, beginning: &[u8]) -> Option<u64> {
        let Self::Head(existing) = *self else { return None };
        if beginning.len() < HEADER_SIZE as usize || beginning.starts_with(&[0; 4]) {
            // Not written yet.
            return None;
        }
        let header = Header::parse(beginning).ok();
        let is_log = || Dump::parse(beginning).is_ok_and(|dump| dump.log().is_some());
        let Some(header) = header.filter(|_| !is_log()) else {
            *self = Self::Ignored;
            return None;
        };
        let growing = Growing::from(header, existing);
        let start = growing.start();
        match fallible::boxed(growing) {
            Ok(growing) => *self = Self::Dump(growing),
            Err(Refused) => {
                fallible::refuse();
                return None;
            }
        }
        Some(start)
    }

    /// How much of the file's beginning [`Self::begin`] needs.
    pub(crate) const BEGINNING: usize = FIRST_CHUNK;

    /// Processes the next bytes, and passes each complete entry to `pass`. Returns the number of bytes that need not be passed
    /// again.
    ///
    /// Zeros in the place of a line or a record are not processed: a writer that writes at offsets will fill them. Neither is
    /// anything for which an allocation fails.
    pub(crate) fn take(&mut self, new: &[u8], pass: &mut dyn FnMut(FileEntry<'_>)) -> usize {
        match self {
            Self::Map(map) => {
                let end = new.iter().position(|&byte| byte == 0).unwrap_or(new.len());
                let lines = new.get(..end).unwrap_or_default();
                if map.try_reserve(lines).is_err() {
                    fallible::refuse();
                    return 0;
                }
                map.take(lines, |entry| pass_valid(entry.map(FileEntry::Line), pass));
                end
            }
            Self::Dump(dump) => {
                if dump.try_reserve(new.len()).is_err() {
                    fallible::refuse();
                    return 0;
                }
                let taken = dump.take(new, |event| pass_valid(event.map(FileEntry::Event), pass));
                if dump.held() > MOST_HELD {
                    *self = Self::Ignored;
                }
                taken
            }
            Self::Head(_) => 0,
            Self::Ignored => new.len(),
        }
    }

    /// Nothing more will come for now: a last line without a newline is valid.
    pub(crate) fn finish(&mut self, pass: &mut dyn FnMut(FileEntry<'_>)) {
        if let Self::Map(map) = self {
            map.finish(|entry| pass_valid(entry.map(FileEntry::Line), pass));
        }
    }

    /// Whether a dump's record has just ended.
    pub(crate) fn is_between_records(&self) -> bool {
        matches!(self, Self::Dump(dump) if dump.is_between_records())
    }

    /// Number of bytes at the beginning that are complete and reliable lines or records, if all of the bytes were the same at
    /// the previous read: writers through a mapping may write a line's end before the line.
    pub(crate) fn complete_len(&self, bytes: &[u8]) -> usize {
        match self {
            Self::Map(_) => {
                let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
                let lines = bytes.get(..end).unwrap_or_default();
                lines.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1)
            }
            Self::Dump(dump) => dump.whole_records(bytes),
            Self::Head(_) | Self::Ignored => 0,
        }
    }
}

/// Skips entries that cannot be parsed.
fn pass_valid<E>(entry: Result<FileEntry<'_>, E>, pass: &mut dyn FnMut(FileEntry<'_>)) {
    if let Ok(entry) = entry {
        pass(entry);
    }
}
