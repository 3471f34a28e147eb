//! What a source says of one code.

use jitdump::{CodeLoad, Dump, Endian, Quirks};

use crate::code_lines::{CodeLines, SourcePlace};

/// What a source says of a code, at the place where it was found.
#[derive(Clone, Copy, Debug)]
pub struct Description<'d> {
    name: &'d [u8],
    start: u64,
    load: Option<CodeLoad<'d>>,
    machine: Option<Machine>,
}

/// What the code of a dump is for.
#[derive(Clone, Copy, Debug)]
struct Machine {
    elf: u32,
    #[cfg_attr(not(feature = "unwind"), expect(dead_code, reason = "only unwind tables need it"))]
    endian: Endian,
}

impl<'d> Description<'d> {
    pub(crate) fn of_load(load: CodeLoad<'d>, start: u64, dump: &Dump<'d>, quirks: Quirks) -> Self {
        let machine = Machine { elf: quirks.machine, endian: dump.header().endian };
        Self { name: load.name, start, load: Some(load), machine: Some(machine) }
    }

    pub(crate) fn of_name(name: &'d [u8], start: u64) -> Self {
        Self { name, start, load: None, machine: None }
    }

    /// The name as the runtime wrote it: any bytes, possibly none.
    #[must_use]
    pub fn name(&self) -> &'d [u8] {
        self.name
    }

    /// The machine that it is for: `e_machine` of ELF. `None` if the source does not say.
    #[must_use]
    pub fn machine(&self) -> Option<u32> {
        Some(self.machine?.elf)
    }

    /// The machine code: all of it, or nothing if the source does not have it.
    #[must_use]
    pub fn bytes(&self) -> &'d [u8] {
        self.load.map_or(&[], |load| load.bytes)
    }

    /// The tier of the compiler that made it.
    #[must_use]
    pub fn tier(&self) -> Option<&'d [u8]> {
        self.load?.tier()
    }

    /// The record of a jitdump, which refers to the address where the code was loaded.
    #[must_use]
    pub fn load(&self) -> Option<&CodeLoad<'d>> {
        self.load.as_ref()
    }

    /// The functions and lines of its addresses, with files as the runtime names them.
    #[must_use]
    pub fn lines(&self) -> CodeLines {
        let as_written = |place: SourcePlace<'d>| (place.file.into(), place.line);
        CodeLines::new(self.name, self.start, self.load.as_ref(), None, as_written)
    }

    /// An `.eh_frame` with absolute addresses that unwinds it; empty if the source does not say how.
    #[cfg(feature = "unwind")]
    #[must_use]
    pub fn frames(&self) -> Vec<u8> {
        use code_image::jitdump::{Converter, LineTable};
        let (Some(load), Some(machine)) = (self.load, self.machine) else { return Vec::new() };
        let elf = u16::try_from(machine.elf).unwrap_or(0);
        let target = code_image::Target::new(elf, machine.endian);
        let whole = self.start..self.start.saturating_add(load.size);
        let mut converter = Converter::new(target.machine.into());
        converter.convert(&load, self.start, whole, LineTable::Source, |code| {
            code_image::whole_frames(target, code).to_vec()
        })
    }
}
