//! What comes next in a file, taken apart: the lines or records that are whole.
#![forbid(unsafe_code)]

use jitdump::extension::log::FIRST_CHUNK;
use jitdump::{CodeEvent, Dump, Growing, HEADER_SIZE, Header};
use perf_map::Entry;

use crate::names::Kind;

/// A dump of which more is held, for want of a record's end, is given up.
const MOST_HELD: usize = 256 << 20;

/// Something that the file tells.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time, and none is kept")]
pub(crate) enum Told<'a> {
    /// A line of a map.
    Line(Entry<'a>),
    /// An event of a dump.
    Event(CodeEvent<'a>),
}

/// Takes a file apart, as it grows.
#[derive(Debug)]
pub(crate) enum Tail {
    /// A map.
    Map(perf_map::Growing),
    /// A dump whose header has not been read. The records before this offset are not to be.
    Head(u64),
    /// A dump.
    Dump(Box<Growing>),
    /// A file that is none of these, or one of `jitscribe`'s own: its writer announces its code by itself.
    Other,
}

impl Tail {
    /// A file of which the first `size` bytes were there before anyone looked.
    pub(crate) fn new(kind: Kind, size: u64) -> Self {
        match kind {
            Kind::Map => Self::Map(perf_map::Growing::default()),
            Kind::Dump => Self::Head(size),
        }
    }

    /// Whether there is nothing to be had from it.
    pub(crate) fn is_other(&self) -> bool {
        matches!(self, Self::Other)
    }

    /// Where reading is to go on, once it is known that it is a dump.
    ///
    /// `beginning` is the beginning of the file, of which [`FIRST_CHUNK`] bytes suffice.
    pub(crate) fn begin(&mut self, beginning: &[u8]) -> Option<u64> {
        let Self::Head(known) = *self else { return None };
        if beginning.len() < HEADER_SIZE as usize || beginning.starts_with(&[0; 4]) {
            // Not written yet.
            return None;
        }
        let header = Header::parse(beginning).ok();
        let is_log = || Dump::parse(beginning).is_ok_and(|dump| dump.log().is_some());
        let Some(header) = header.filter(|_| !is_log()) else {
            *self = Self::Other;
            return None;
        };
        let growing = Growing::from(header, known);
        let start = growing.start();
        *self = Self::Dump(Box::new(growing));
        Some(start)
    }

    /// How much of the file's beginning [`Self::begin`] wants.
    pub(crate) const BEGINNING: usize = FIRST_CHUNK;

    /// Takes what comes next, and tells what it makes whole. Returns how many bytes need not come again.
    ///
    /// Zeros in the place of a line or a record are not taken: someone writes at offsets, and will fill them.
    pub(crate) fn take(&mut self, new: &[u8], tell: &mut dyn FnMut(Told<'_>)) -> usize {
        match self {
            Self::Map(map) => {
                let end = new.iter().position(|&byte| byte == 0).unwrap_or(new.len());
                let lines = new.get(..end).unwrap_or_default();
                map.take(lines, |entry| told(entry.map(Told::Line), tell));
                end
            }
            Self::Dump(dump) => {
                let taken = dump.take(new, |event| told(event.map(Told::Event), tell));
                if dump.held() > MOST_HELD {
                    *self = Self::Other;
                }
                taken
            }
            Self::Head(_) => 0,
            Self::Other => new.len(),
        }
    }

    /// Nothing more will come, for now: a last line without an end counts.
    pub(crate) fn finish(&mut self, tell: &mut dyn FnMut(Told<'_>)) {
        if let Self::Map(map) = self {
            map.finish(|entry| told(entry.map(Told::Line), tell));
        }
    }

    /// How many of the bytes at the beginning are whole lines or records that can be counted on, if all of them were the
    /// same when they were looked at before: with those who write through a mapping, a line's end may be there before the line.
    pub(crate) fn whole(&self, bytes: &[u8]) -> usize {
        match self {
            Self::Map(_) => {
                let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
                let lines = bytes.get(..end).unwrap_or_default();
                lines.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1)
            }
            Self::Dump(dump) => dump.whole_records(bytes),
            Self::Head(_) | Self::Other => 0,
        }
    }
}

/// What cannot be read is passed over.
fn told<E>(told: Result<Told<'_>, E>, tell: &mut dyn FnMut(Told<'_>)) {
    if let Ok(told) = told {
        tell(told);
    }
}
