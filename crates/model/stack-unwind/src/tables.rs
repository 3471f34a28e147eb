//! The unwind tables of a file.

use std::cell::RefCell;
use std::rc::Rc;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, Encoding, EndianSlice, LittleEndian,
    RegisterRule, UnwindContext, UnwindSection,
};
use rustc_hash::FxHashMap;

use crate::registers::COUNT;

/// Bytes of a file, in the byte order of all that is read here.
pub(crate) type Bytes<'t> = EndianSlice<'t, LittleEndian>;

/// Number of rows that are kept.
const KEPT: usize = 4096;

/// Descriptions with more bytes are left out, as a row is found by going through all that come before it. Those of large interpreters have
/// a few hundred.
const LARGEST: usize = 1 << 16;

/// A section of a file.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its address in the file.
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The sections of a file that unwinding takes.
#[derive(Clone, Debug, Default)]
pub struct Sections {
    /// `.eh_frame`.
    pub eh_frame: Option<Section>,
    /// `.debug_frame`, which is used for what `.eh_frame` does not describe.
    pub debug_frame: Option<Section>,
    /// The address of `.text`.
    pub text: u64,
    /// The address of `.got`.
    pub got: u64,
}

/// The unwind tables of one file.
#[derive(Debug)]
pub struct Tables {
    sections: [(Kind, Option<Section>); 2],
    bases: BaseAddresses,
    /// What the descriptions describe: ascending, by where it begins.
    index: Vec<Described>,
    rows: RefCell<FxHashMap<u64, Option<Rc<Row>>>>,
}

/// Which section, as their formats differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    EhFrame,
    DebugFrame,
}

/// A frame description.
#[derive(Clone, Copy, Debug)]
struct Described {
    start: u64,
    size: u64,
    kind: Kind,
    offset: usize,
}

/// How the frame of a function is left.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Body {
    /// The register that the CFA is computed from, and what is added.
    pub cfa: (u16, i64),
    /// The registers that are saved, the return address among them, and their distances from the CFA.
    pub saved: Vec<(u16, i64)>,
}

/// How a frame is left at an address.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) kind: Kind,
    pub(crate) encoding: Encoding,
    pub(crate) cfa: CfaRule<usize>,
    /// By number; `None` for the default.
    pub(crate) registers: [Option<RegisterRule<usize>>; COUNT],
    /// The frame is a signal handler's: the caller was interrupted, and did not call.
    pub(crate) is_signal: bool,
}

impl Tables {
    /// The tables in these sections; `None` if there are none.
    #[must_use]
    pub fn new(sections: Sections) -> Option<Self> {
        let Sections { eh_frame, debug_frame, text, got } = sections;
        if eh_frame.is_none() && debug_frame.is_none() {
            return None;
        }
        let address = eh_frame.as_ref().map_or(0, |section| section.address);
        let bases = BaseAddresses::default().set_eh_frame(address).set_text(text).set_got(got);
        let sections = [(Kind::EhFrame, eh_frame), (Kind::DebugFrame, debug_frame)];
        let mut tables = Self { sections, bases, index: Vec::new(), rows: RefCell::default() };
        let mut index = Vec::new();
        if let Some(section) = tables.eh_frame() {
            describe(&section, Kind::EhFrame, &tables.bases, &mut index);
        }
        if let Some(section) = tables.debug_frame() {
            describe(&section, Kind::DebugFrame, &tables.bases, &mut index);
        }
        // Of equal beginnings, that of `.eh_frame` comes first.
        index.sort_by_key(|described| described.start);
        tables.index = index;
        Some(tables)
    }

    pub(crate) fn eh_frame(&self) -> Option<EhFrame<Bytes<'_>>> {
        let mut section = EhFrame::new(self.bytes(Kind::EhFrame)?, LittleEndian);
        section.set_address_size(8);
        Some(section)
    }

    pub(crate) fn debug_frame(&self) -> Option<DebugFrame<Bytes<'_>>> {
        let mut section = DebugFrame::new(self.bytes(Kind::DebugFrame)?, LittleEndian);
        section.set_address_size(8);
        Some(section)
    }

    fn bytes(&self, kind: Kind) -> Option<&[u8]> {
        let section = self.sections.iter().find(|(of, _)| *of == kind)?.1.as_ref()?;
        Some(&section.bytes)
    }

    /// Whether the function at an address of the file has no caller, as its description says.
    #[must_use]
    pub fn is_bottom(&self, address: u64) -> bool {
        self.row(address).is_some_and(|row| row.is_bottom())
    }

    /// How the frame is left in most of the function at an address of the file: behind its prologue. `None` if no description has it, or if it
    /// is not that simple.
    #[must_use]
    pub fn body(&self, address: u64) -> Option<Body> {
        let here = self.described(address)?;
        match here.kind {
            Kind::EhFrame => body(&self.eh_frame()?, &self.bases, here),
            Kind::DebugFrame => body(&self.debug_frame()?, &self.bases, here),
        }
    }

    /// How the frame is left at an address of the file; `None` if no description has it.
    pub(crate) fn row(&self, address: u64) -> Option<Rc<Row>> {
        if let Some(row) = self.rows.borrow().get(&address) {
            return row.clone();
        }
        let row = self.find(address).map(Rc::new);
        let mut rows = self.rows.borrow_mut();
        if rows.len() >= KEPT {
            rows.clear();
        }
        rows.insert(address, row.clone());
        row
    }

    fn find(&self, address: u64) -> Option<Row> {
        let here = self.described(address)?;
        match here.kind {
            Kind::EhFrame => row(&self.eh_frame()?, &self.bases, here, address),
            Kind::DebugFrame => row(&self.debug_frame()?, &self.bases, here, address),
        }
    }

    /// The description of an address of the file.
    fn described(&self, address: u64) -> Option<Described> {
        let behind = self.index.partition_point(|described| described.start <= address);
        let begin = self.index.get(behind.checked_sub(1)?)?.start;
        let first = self.index.partition_point(|described| described.start < begin);
        let here = self.index.get(first..behind)?.iter();
        here.copied().find(|described| address.wrapping_sub(described.start) < described.size)
    }
}

impl Row {
    pub(crate) fn is_bottom(&self) -> bool {
        matches!(self.registers.last(), Some(None | Some(RegisterRule::Undefined)))
    }
}

fn body<'t, S: UnwindSection<Bytes<'t>>>(
    section: &S,
    bases: &BaseAddresses,
    here: Described,
) -> Option<Body> {
    let fde =
        section.fde_from_offset(bases, S::Offset::from(here.offset), S::cie_from_offset).ok()?;
    let mut context = UnwindContext::new();
    let mut rows = fde.rows(section, bases, &mut context).ok()?;
    // How many bytes of the function have which frame.
    let mut sizes: FxHashMap<Body, u64> = FxHashMap::default();
    while let Some(row) = rows.next_row().ok()? {
        let size = row.end_address().saturating_sub(row.start_address());
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { continue };
        let place = |number| match row.register(gimli::Register(number)) {
            Some(RegisterRule::Offset(offset)) => Some((number, offset)),
            _ => None,
        };
        let saved = (0..COUNT as u16).filter_map(place).collect();
        let all = sizes.entry(Body { cfa: (register.0, *offset), saved }).or_default();
        *all = all.saturating_add(size);
    }
    sizes.into_iter().max_by_key(|(_, size)| *size).map(|(body, _)| body)
}

/// Adds the descriptions of a section. What comes behind a damaged one is lost.
fn describe<'t, S: UnwindSection<Bytes<'t>>>(
    section: &S,
    kind: Kind,
    bases: &BaseAddresses,
    index: &mut Vec<Described>,
) {
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(fde) = partial.parse(S::cie_from_offset) else { continue };
        let is_small = fde.entry_len().max(fde.cie().entry_len()) <= LARGEST;
        // Of functions that the linker has removed, the address is 0.
        if is_small && fde.initial_address() != 0 && fde.len() != 0 {
            let offset = fde.offset();
            index.push(Described { start: fde.initial_address(), size: fde.len(), kind, offset });
        }
    }
}

fn row<'t, S: UnwindSection<Bytes<'t>>>(
    section: &S,
    bases: &BaseAddresses,
    here: Described,
    address: u64,
) -> Option<Row> {
    let fde =
        section.fde_from_offset(bases, S::Offset::from(here.offset), S::cie_from_offset).ok()?;
    let mut context = UnwindContext::new();
    let found = fde.unwind_info_for_address(section, bases, &mut context, address).ok()?;
    let mut numbers = 0..;
    let registers = [(); COUNT]
        .map(|()| numbers.next().and_then(|number| found.register(gimli::Register(number))));
    let (cie, cfa) = (fde.cie(), found.cfa().clone());
    Some(Row {
        kind: here.kind,
        encoding: cie.encoding(),
        cfa,
        registers,
        is_signal: cie.is_signal_trampoline(),
    })
}
