//! A dynamic-link library for `LoadLibrary`.
//!
//! ```text
//! 0       headers
//! 0x1000  .text        R+X
//!         .edata       R    the exports, for GetProcAddress
//!         .reloc       R    empty: it contains no address to relocate
//!         .xdata       R    how to unwind, for Windows (x86-64)
//!         .pdata       R    what that is of
//!         .eh_frame    R    for debuggers
//!         .debug_*     R    discardable, as MinGW writes them
//!         .buildid     R    the identity, where debuggers look for it
//!         symbols and strings, not mapped
//! ```
//!
//! Offsets in the file equal relative virtual addresses. Layout: Microsoft, "PE Format". Names longer than eight
//! bytes are among the strings behind the symbols, as binutils and LLVM read them.

use super::written::{LARGEST, Written};
use jit_code::elf_machine;
use std::io::{Seek, Write};

use fallible::{Text, Vec};

use super::exceptions::Exceptions;
use super::sections::{Behind, Room};
use super::symbols::{Symbol, exported};
use crate::encode::Encoder;
use crate::error::Error;
use crate::gathered::Gathered;
use crate::place::PAGE;
use crate::target::{Endian, Target};

/// The preferred address of the library: above 4 GiB, as for libraries that may be loaded anywhere.
pub(super) const IMAGE_BASE: u64 = 0x1_8000_0000;
/// Ordinals are 16-bit numbers.
pub(super) const MOST_EXPORTS: usize = 0xffff;

const CODE: u32 = 0x20;
const DATA: u32 = 0x40;
const DISCARDABLE: u32 = 0x0200_0000;
const EXECUTE: u32 = 0x2000_0000;
const READ: u32 = 0x4000_0000;

/// PE's number for the machine.
pub(super) fn machine(target: Target) -> Result<u16, Error> {
    match target {
        Target { machine: elf_machine::X86_64, endian: Endian::Little, is_64: true, .. } => {
            Ok(0x8664)
        }
        Target { machine: elf_machine::AARCH64, endian: Endian::Little, is_64: true, .. } => {
            Ok(0xaa64)
        }
        _ => Err(Error::Machine(target.machine)),
    }
}

struct Section {
    name: Text,
    /// Position and size in memory.
    room: Room,
    in_file: u32,
    flags: u32,
}

/// Writes everything except the text, of which `text_in_file` bytes are in the file.
pub(super) fn write<W: Write + Seek>(
    gathered: Gathered<W>,
    symbols: &[Symbol<'_>],
    text_in_file: u64,
    name: &[u8],
) -> Result<Written, Error> {
    let Gathered { mut out, target, place, debug_info, unwind, .. } = gathered;
    let machine = machine(target)?;
    let text_size = place.text_end().saturating_sub(place.text);
    let mut behind = Behind::new(&mut out, PAGE.saturating_add(text_size));
    let in_pages = |size: u64| size.next_multiple_of(PAGE) as u32;
    let mut sections = fallible::vec![Section {
        name: Text::from(".text"),
        room: Room { at: PAGE as u32, size: text_size as u32 },
        in_file: in_pages(text_in_file),
        flags: CODE | EXECUTE | READ,
    }];
    let add = |sections: &mut Vec<Section>, name: Text, room: Room, flags: u32| {
        let in_file = in_pages(room.size.into());
        sections.push(Section { name, room, in_file, flags: DATA | READ | flags });
    };

    let at = behind.align(PAGE);
    let exports = behind.write(".edata", &export_directory(target, symbols, name, at)?.bytes)?;
    add(&mut sections, Text::from(".edata"), exports, 0);

    // A block of two entries that have no effect. Without any block, the library could only be loaded at its
    // preferred address.
    let mut block = Encoder::new(target);
    for field in [PAGE as u32, 12, 0] {
        block.u32(field);
    }
    behind.align(PAGE);
    let relocations = behind.write(".reloc", &block.bytes)?;
    add(&mut sections, Text::from(".reloc"), relocations, DISCARDABLE);

    let mut summary = unwind.summary();
    let exceptions = match target.machine {
        elf_machine::X86_64 => Exceptions::new(&unwind, IMAGE_BASE),
        _ => Exceptions::default(),
    };
    let mut functions = Room::default();
    if !exceptions.is_empty() {
        behind.align(PAGE);
        let infos = behind.write(".xdata", &exceptions.infos)?;
        add(&mut sections, Text::from(".xdata"), infos, 0);
        behind.align(PAGE);
        functions = behind.write(".pdata", &exceptions.functions(infos.at, target).bytes)?;
        add(&mut sections, Text::from(".pdata"), functions, 0);
    }
    if !unwind.is_empty() {
        let at = behind.align(PAGE);
        let (frames, of_frames) = unwind.emit_frames(IMAGE_BASE.saturating_add(at));
        summary = of_frames;
        summary.inexpressible = exceptions.inexpressible;
        let frames = behind.write(".eh_frame", &frames.bytes)?;
        add(&mut sections, Text::from(".eh_frame"), frames, 0);
    }
    if let Some(debug_info) = debug_info {
        for (name, bytes) in debug_info.finish().named() {
            if bytes.len() > 0 {
                behind.align(PAGE);
                let room = behind.write(name, &bytes.bytes)?;
                add(&mut sections, fallible::text!(".{name}"), room, DISCARDABLE);
            }
        }
    }

    // The identity is a hash of everything except itself, so it comes last.
    let identity_at = behind.align(PAGE);
    let identity = Room { at: identity_at as u32, size: IDENTITY };
    add(&mut sections, Text::from(".buildid"), identity, 0);
    let table = coff_symbols(target, &sections, symbols)?;
    let symbols_at = identity_at.saturating_add(PAGE);
    let header = Header {
        target,
        machine,
        sections: &sections,
        exports,
        functions,
        relocations,
        identity,
        symbols_at: symbols_at as u32,
        symbol_count: symbols.len() as u32,
        section_names: &table.section_names,
    };
    let id = behind.hash(&[&header.encode(0), &table.bytes])?;
    let time = id.first_chunk().copied().map_or(0, u32::from_le_bytes);
    behind.write(".buildid", &identity_bytes(target, &id, time, identity))?;
    behind.align(PAGE);
    behind.write("symbols", &table.bytes)?;
    let file_size = behind.end;
    let mut head = header.encode(time);
    head.resize(PAGE as usize, 0);
    out.finish(&head)?;
    Ok(Written { id, file_size, unwind: summary })
}

/// Encodes `.edata` for the address `at`: a directory, addresses, sorted names, ordinals, strings.
fn export_directory(
    target: Target,
    symbols: &[Symbol<'_>],
    name: &[u8],
    at: u64,
) -> Result<Encoder, Error> {
    const DIRECTORY: u64 = 40;
    let exported = exported(symbols);
    let count = exported.len() as u64;
    let addresses = at.saturating_add(DIRECTORY);
    let names = addresses.saturating_add(count.saturating_mul(4));
    let ordinals = names.saturating_add(count.saturating_mul(4));
    let strings = ordinals.saturating_add(count.saturating_mul(2));
    let lengths = exported.iter().map(|symbol| symbol.name.len() as u64);
    let end = lengths.fold(strings, |end, length| end.saturating_add(length).saturating_add(1));
    if end > LARGEST {
        return Err(Error::TooLarge { what: ".edata", size: end });
    }
    let mut out = Encoder::new(target);
    let first_ordinal = 1;
    let fields = [0, 0, 0, strings, first_ordinal, count, count, addresses, names, ordinals];
    fields.into_iter().for_each(|field| out.u32(field as u32));
    for symbol in &exported {
        out.u32(symbol.value.saturating_sub(IMAGE_BASE) as u32);
    }
    let mut string = strings.saturating_add(name.len() as u64).saturating_add(1);
    for symbol in &exported {
        out.u32(string as u32);
        string = string.saturating_add(symbol.name.len() as u64).saturating_add(1);
    }
    (0..count).for_each(|number| out.u16(number as u16));
    out.string(name);
    exported.iter().for_each(|symbol| out.string(symbol.name));
    Ok(out)
}

/// The symbols, and the strings behind them.
struct Symbols {
    bytes: Vec<u8>,
    /// The name fields of the section headers.
    section_names: Vec<[u8; 8]>,
}

fn coff_symbols(
    target: Target,
    sections: &[Section],
    symbols: &[Symbol<'_>],
) -> Result<Symbols, Error> {
    const FUNCTION: u16 = 0x20;
    const EXTERNAL: u8 = 2;
    // Offsets are relative to the size field at the start of the strings.
    let mut strings = Encoder::new(target);
    strings.u32(0);
    let section_names = sections.iter().map(|section| {
        short(section.name.as_bytes()).unwrap_or_else(|| {
            let place = fallible::text!("/{}", strings.len());
            strings.string(section.name.as_bytes());
            short(place.as_bytes()).unwrap_or_default()
        })
    });
    let section_names: Vec<[u8; 8]> = section_names.collect();
    let mut out = Encoder::new(target);
    for symbol in symbols {
        match short(symbol.name) {
            Some(name) => out.raw(&name),
            None => {
                out.u32(0);
                out.u32(strings.len() as u32);
                strings.string(symbol.name);
            }
        }
        out.u32(symbol.value.saturating_sub(IMAGE_BASE.saturating_add(PAGE)) as u32);
        out.u16(1); // the number of .text
        out.u16(FUNCTION);
        out.u8(EXTERNAL);
        out.u8(0); // nothing more is said of it
    }
    let size = strings.len();
    if size > LARGEST {
        return Err(Error::TooLarge { what: "string table", size });
    }
    strings.set_u32(0, size as u32);
    out.raw(&strings.bytes);
    Ok(Symbols { bytes: out.bytes, section_names })
}

/// The name field for a name that fits into it.
fn short(name: &[u8]) -> Option<[u8; 8]> {
    let mut field = [0; 8];
    field.get_mut(..name.len())?.copy_from_slice(name);
    Some(field)
}

/// Size of [`identity_bytes`].
const IDENTITY: u32 = 28 + 25;

/// Encodes a debug directory of one entry, and what it refers to: the identity, followed by the path of a file with
/// debug info, which is empty because there is none.
fn identity_bytes(target: Target, id: &[u8; 20], time: u32, room: Room) -> Vec<u8> {
    const DIRECTORY: u32 = 28;
    const CODEVIEW: u32 = 2;
    let mut out = Encoder::new(target);
    let at = room.at.saturating_add(DIRECTORY);
    for field in [0, time, 0, CODEVIEW, IDENTITY - DIRECTORY, at, at] {
        out.u32(field);
    }
    out.raw(b"RSDS");
    out.raw(id.get(..16).unwrap_or_default());
    out.u32(1); // age
    out.string(b"");
    out.bytes
}

/// Everything before the text.
struct Header<'a> {
    target: Target,
    machine: u16,
    sections: &'a [Section],
    exports: Room,
    functions: Room,
    relocations: Room,
    identity: Room,
    symbols_at: u32,
    symbol_count: u32,
    section_names: &'a [[u8; 8]],
}

impl Header<'_> {
    fn encode(&self, time: u32) -> Vec<u8> {
        const PE_AT: u32 = 0x40;
        const EXECUTABLE_IMAGE: u16 = 2;
        const LARGE_ADDRESS_AWARE: u16 = 0x20;
        const DLL: u16 = 0x2000;
        const HIGH_ENTROPY: u16 = 0x20;
        const DYNAMIC_BASE: u16 = 0x40;
        const NX_COMPATIBLE: u16 = 0x100;
        let mut out = Encoder::new(self.target);
        out.raw(b"MZ");
        out.bytes.resize(PE_AT as usize - 4, 0);
        out.u32(PE_AT);
        out.raw(b"PE\0\0");

        out.u16(self.machine);
        out.u16(self.sections.len() as u16);
        out.u32(time);
        out.u32(self.symbols_at);
        out.u32(self.symbol_count);
        out.u16(240); // size of the optional header
        out.u16(EXECUTABLE_IMAGE | LARGE_ADDRESS_AWARE | DLL);

        let size_of = |flag: u32| {
            let sections = self.sections.iter().filter(|section| section.flags & flag != 0);
            sections.fold(0_u32, |sum, section| sum.saturating_add(section.in_file))
        };
        let end = self.sections.last().map_or(0, |last| {
            u64::from(last.room.at).saturating_add(last.room.size.into()).next_multiple_of(PAGE)
        });
        out.u16(0x20b); // 64 bits
        out.u16(0); // version of the linker
        out.u32(size_of(CODE));
        out.u32(size_of(DATA));
        out.u32(0);
        out.u32(0); // no entry point: nothing runs when it is loaded
        out.u32(PAGE as u32); // where code begins
        out.u64(IMAGE_BASE);
        out.u32(PAGE as u32); // alignment in memory
        out.u32(PAGE as u32); // alignment in the file
        // Versions of the system, the image and the subsystem: Windows 8, the first for AArch64.
        for version in [6, 2, 0, 0, 6, 2, 0, 0] {
            out.u16(version);
        }
        out.u32(end as u32);
        out.u32(PAGE as u32); // size of the headers
        out.u32(0); // checksum, which only drivers need
        out.u16(3); // the console
        out.u16(HIGH_ENTROPY | DYNAMIC_BASE | NX_COMPATIBLE);
        for size in [0x10_0000, 0x1000, 0x10_0000, 0x1000] {
            out.u64(size); // stack and heap, which a library has none of
        }
        out.u32(0);
        out.u32(16);
        for number in 0..16 {
            let room = match number {
                0 => self.exports,
                3 => self.functions,
                5 => self.relocations,
                6 => Room { size: 28, ..self.identity },
                _ => Room::default(),
            };
            out.u32(room.at);
            out.u32(room.size);
        }
        for (section, name) in self.sections.iter().zip(self.section_names) {
            out.raw(name);
            out.u32(section.room.size);
            out.u32(section.room.at);
            out.u32(section.in_file);
            out.u32(if section.in_file == 0 { 0 } else { section.room.at });
            out.raw(&[0; 12]); // no relocations, no line numbers
            out.u32(section.flags);
        }
        out.bytes
    }
}
