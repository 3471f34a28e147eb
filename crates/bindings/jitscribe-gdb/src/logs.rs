//! The logs that log locators refer to, and the codes in them by address.

use std::collections::BTreeMap;

use code_log::{Head, Inherited, Snapshot, snapshot};
use jitdump::extension::control;
use jitdump::{CodeEvent, CodeLoad, CodePlace, Dump, Quirks};
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

/// A log, and the codes in it that are alive.
#[derive(Debug)]
pub(crate) struct Log {
    place: Place,
    dump: Vec<u8>,
    quirks: Quirks,
    machine: u32,
    /// By address. No two overlap.
    codes: BTreeMap<u64, IndexedCode>,
}

/// A code, and its place in the snapshot.
#[derive(Debug, Clone, Copy)]
struct IndexedCode {
    end: u64,
    place: CodePlace,
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
            (quirks, dump.header().elf_mach, alive(&dump, quirks))
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
        self.codes.range(around).next().is_some()
    }

    /// Whether there is code at an address.
    pub(crate) fn has(&self, address: u64) -> bool {
        self.at(address).is_some()
    }

    fn at(&self, address: u64) -> Option<&IndexedCode> {
        self.codes
            .range(..=address)
            .next_back()
            .map(|(_, code)| code)
            .filter(|code| address < code.end)
    }

    /// Calls `take` with the code at an address.
    pub(crate) fn with_code<T>(
        &self,
        address: u64,
        take: impl FnOnce(&CodeLoad<'_>) -> Option<T>,
    ) -> Option<T> {
        let place = self.at(address)?.place;
        let dump = Dump::parse(&self.dump).ok()?;
        take(&dump.code_at(&place, &self.quirks)?)
    }

    /// Calls `take` with all codes, in the order of their addresses.
    pub(crate) fn each(&self, mut take: impl FnMut(&CodeLoad<'_>)) {
        let Ok(dump) = Dump::parse(&self.dump) else { return };
        for code in self.codes.values() {
            if let Some(load) = dump.code_at(&code.place, &self.quirks) {
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

/// The codes of a dump that are alive at its end.
fn alive(dump: &Dump<'_>, quirks: Quirks) -> BTreeMap<u64, IndexedCode> {
    let mut codes: BTreeMap<u64, IndexedCode> = BTreeMap::new();
    for event in dump.codes_with(quirks) {
        let Ok(CodeEvent::Load(load)) = event else { continue };
        if load.died().is_some() || load.size == 0 || load.address == 0 {
            continue;
        }
        // A later code replaces those that it overlaps.
        while let Some((&start, other)) = codes.range(..load.end()).next_back()
            && other.end > load.address
        {
            codes.remove(&start);
        }
        codes.insert(load.address, IndexedCode { end: load.end(), place: load.place() });
    }
    codes
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
