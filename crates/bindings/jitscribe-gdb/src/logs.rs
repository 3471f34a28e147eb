//! The logs that log locators refer to, and the codes in them by address.

use code_index::DumpEvents;
use code_log::{Head, Inherited, Snapshot, snapshot};
use code_timeline::{AddressSpaceId, History, HistoryBuilder, Piece, Processes, Timeline};
use jitdump::extension::control;
use jitdump::{CodeLoad, CodePlace, Dump, Quirks};
use unwind_info::{Machine, Reader};

use crate::target::{Memory, MemoryRange};

/// Code usually is next to other code, at most this far away.
const NEAR: u64 = 1 << 20;

/// The memory range of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) address: u64,
    pub(crate) size: u64,
}

/// A log, and the codes in it.
#[derive(Debug)]
pub(crate) struct Log {
    place: Place,
    dump: Vec<u8>,
    quirks: Quirks,
    machine: u32,
    /// Of each code, its place in the snapshot.
    codes: History<CodePlace>,
}

impl Log {
    /// Reads the log at `place`. `None` if there is none, or if its process itself shows its code to debuggers.
    ///
    /// A process that was requested to do so but has announced nothing since has not shown anything yet: the request is
    /// pending.
    pub(crate) fn read(memory: Memory, place: Place) -> Option<Self> {
        let source = MemoryRange { memory, start: place.address, size: place.size };
        let mut own = snapshot(&source).ok()?;
        if let Ok(Some(inherited)) = Inherited::of(&source, &own.head) {
            let parents = MemoryRange { memory, start: inherited.address, size: inherited.size };
            if let Ok(parents) = inherited.snapshot(&parents) {
                own.add_older(&parents);
            }
        }
        let Snapshot { bytes, head, .. } = own;
        if head.control & (control::GDB | control::REQUEST) == control::GDB {
            return None;
        }
        let (quirks, machine, codes) = {
            let dump = Dump::parse(&bytes).ok()?;
            let quirks = Quirks::detect(&dump);
            (quirks, dump.header().elf_mach, history(&dump, quirks))
        };
        Some(Self { place, dump: bytes, quirks, machine, codes })
    }

    /// The memory range of the log.
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Whether there is code near an address.
    pub(crate) fn is_near(&self, address: u64) -> bool {
        let around = address.saturating_sub(NEAR)..address.saturating_add(NEAR);
        let timeline = self.timeline().map(|timeline| timeline.pieces_over(&around));
        timeline.unwrap_or_default().iter().any(|piece| piece.until == u64::MAX)
    }

    /// Whether there is code at an address.
    pub(crate) fn has(&self, address: u64) -> bool {
        self.at(address).is_some()
    }

    fn timeline(&self) -> Option<&Timeline> {
        self.codes.timeline(AddressSpaceId::ONLY)
    }

    fn at(&self, address: u64) -> Option<&Piece> {
        // What is there at the end was never gone.
        self.timeline()?.at(address, u64::MAX - 1)
    }

    /// Calls `take` with the code at an address.
    pub(crate) fn with_code<T>(
        &self,
        address: u64,
        take: impl FnOnce(&CodeLoad<'_>) -> Option<T>,
    ) -> Option<T> {
        let place = &self.codes.code(self.at(address)?.code).origin;
        let dump = Dump::parse(&self.dump).ok()?;
        take(&dump.code_at(place, &self.quirks)?)
    }

    /// Calls `take` with all codes that are whole, in the order of their addresses. gdb's symbols must not overlap.
    pub(crate) fn each(&self, mut take: impl FnMut(&CodeLoad<'_>)) {
        let Ok(dump) = Dump::parse(&self.dump) else { return };
        for piece in self.timeline().into_iter().flat_map(Timeline::alive) {
            let code = self.codes.code(piece.code);
            if code.range() == piece.range
                && let Some(load) = dump.code_at(&code.origin, &self.quirks)
            {
                take(&load);
            }
        }
    }

    /// The unwind tables of a code, and the address for which they are made. `buffer` is used as a buffer if necessary.
    pub(crate) fn tables<'t>(
        &self,
        code: &CodeLoad<'t>,
        buffer: &'t mut fallible::Vec<u8>,
    ) -> Option<(&'t [u8], u64)> {
        let machine = Machine::from_elf(self.machine);
        let frames = code_image::jitdump::frames(code, machine, Reader::Debugger, buffer)?;
        Some((frames.bytes, code.address.checked_add(frames.offset)?))
    }

    /// `e_machine` of its code.
    pub(crate) fn machine(&self) -> u32 {
        self.machine
    }
}

/// The codes of a dump, and when each was where.
fn history(dump: &Dump<'_>, quirks: Quirks) -> History<CodePlace> {
    let mut history = HistoryBuilder::new();
    let mut events = DumpEvents::new(&mut history);
    for event in dump.codes_with(quirks).flatten() {
        events.take(event, |load| load.place());
    }
    events.finish();
    history.finish(&Processes::new(), 0)
}

/// The memory range of the log according to a log locator; `None` if `file` is not one.
pub(crate) fn log_locator(file: &[u8]) -> Option<Place> {
    use object::{Object, ObjectSection};
    let file = object::File::parse(file).ok()?;
    let words = file.section_by_name(LOG_LOCATOR_SECTION)?.data().ok()?;
    let (address, rest) = words.split_first_chunk()?;
    let (size, _) = rest.split_first_chunk()?;
    let place = Place { address: u64::from_ne_bytes(*address), size: u64::from_ne_bytes(*size) };
    (place.size >= Head::SIZE as u64).then_some(place)
}

/// The section of a log locator; see the chapter "The log locator" of `docs/format.md`.
const LOG_LOCATOR_SECTION: &str = ".jitscribe.log";
