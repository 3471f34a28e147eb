//! Code of the log as publishers take it.

use code_image::jitdump::{Converter, LineTable, Reader};
use code_image::{Endian, Target};
use jit_code::{Code, elf_machine};
use jitdump::{CodeLoad, Dump};

use crate::log::MACHINE;

/// The machine that this process runs on.
pub(crate) fn target() -> Target {
    Target::new(elf_machine::NATIVE, Endian::NATIVE)
}

/// The one code of a dump, as its record has it.
pub(crate) fn record(dump: &[u8]) -> Option<CodeLoad<'_>> {
    Dump::parse(dump).ok()?.logged_code()
}

/// The one code of a dump, as it was announced.
pub(crate) fn logged(dump: &[u8], show: impl FnOnce(&Code<'_>)) {
    logged_for(Reader::Unwinder, dump, show);
}

/// The same, with unwind tables for this reader.
pub(crate) fn logged_for(reader: Reader, dump: &[u8], show: impl FnOnce(&Code<'_>)) {
    let Some(load) = record(dump) else { return };
    let visible = load.address..load.end();
    Converter::new(MACHINE).for_reader(reader).convert(
        &load,
        load.address,
        visible,
        LineTable::Source,
        |shown| {
            // A Thumb bit is in the address that was announced.
            show(&shown.code.runs_at(load.address | u64::from(shown.is_thumb)));
        },
    );
}
