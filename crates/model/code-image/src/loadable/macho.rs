//! A dynamic library for macOS.
//!
//! ```text
//! 0       headers                                        \
//! 0x1000  __TEXT,__text  __TEXT,__eh_frame                } R+X
//!         __DWARF,__debug_*                                R
//!         __LINKEDIT: tree of exported names, symbols, strings   R
//! ```
//!
//! Offsets in the file equal addresses. Layout: `mach-o/loader.h` and `mach-o/nlist.h` of Apple's cctools.

use super::written::Written;
use jit_code::elf_machine;
use std::io::{Seek, Write};

use fallible::{Text, Vec};

use super::sections::{Behind, Room};
use super::symbols::{Symbol, exported};
use super::trie::trie;
use crate::encode::Encoder;
use crate::error::Error;
use crate::gathered::Gathered;
use crate::place::PAGE;
use crate::target::{Endian, Target};

/// The page size of the machines with larger pages.
const LARGEST_PAGE: u64 = 0x4000;

/// CPU type and subtype.
pub(super) fn machine(target: Target) -> Result<[u32; 2], Error> {
    match target {
        Target { machine: elf_machine::X86_64, endian: Endian::Little, is_64: true, .. } => {
            Ok([0x0100_0007, 3])
        }
        Target { machine: elf_machine::AARCH64, endian: Endian::Little, is_64: true, .. } => {
            Ok([0x0100_000c, 0])
        }
        _ => Err(Error::Machine(target.machine)),
    }
}

const READ: u32 = 1;
const EXECUTE: u32 = 4;
/// Only instructions.
const INSTRUCTIONS: u32 = 0x8000_0400;
/// Coalesced, not in the table of contents, symbols stripped, live if it references live code.
const FRAMES: u32 = 0x6800_000b;
const DEBUG: u32 = 0x0200_0000;

struct Section {
    name: Text,
    room: Room,
    /// As a power of two.
    align: u32,
    flags: u32,
}

struct Segment {
    name: &'static [u8],
    protection: u32,
    start: u64,
    end: u64,
    sections: Vec<Section>,
}

/// The content of `__LINKEDIT`.
struct Linked {
    trie: Room,
    symbols: Room,
    strings: Room,
    local: u32,
    global: u32,
}

/// Writes everything except the text.
pub(super) fn write<W: Write + Seek>(
    gathered: Gathered<W>,
    symbols: &[Symbol<'_>],
    name: &[u8],
) -> Result<Written, Error> {
    let Gathered { mut out, target, place, debug_info, unwind, .. } = gathered;
    let machine = machine(target)?;
    let text_end = place.text_end();
    let mut behind = Behind::new(&mut out, text_end);
    let text = Room { at: PAGE as u32, size: text_end.saturating_sub(PAGE) as u32 };
    let mut sections = fallible::vec![Section {
        name: Text::from("__text"),
        room: text,
        align: 4,
        flags: INSTRUCTIONS
    }];
    let mut summary = unwind.summary();
    if !unwind.is_empty() {
        let at = behind.align(8);
        let (frames, of_frames) = unwind.emit_frames(at);
        summary = of_frames;
        let room = behind.write("__eh_frame", &frames.bytes)?;
        sections.push(Section { name: Text::from("__eh_frame"), room, align: 3, flags: FRAMES });
    }
    let mut start = behind.align(LARGEST_PAGE);
    let mut segments = fallible::vec![Segment {
        name: b"__TEXT",
        protection: READ | EXECUTE,
        start: 0,
        end: start,
        sections,
    }];
    let mut sections = Vec::new();
    if let Some(debug_info) = debug_info {
        for (name, bytes) in debug_info.finish().named() {
            if bytes.len() > 0 {
                let room = behind.write(name, &bytes.bytes)?;
                let name = fallible::text!("__{name}");
                sections.push(Section { name, room, align: 0, flags: DEBUG });
            }
        }
    }
    if !sections.is_empty() {
        let end = behind.align(LARGEST_PAGE);
        segments.push(Segment { name: b"__DWARF", protection: READ, start, end, sections });
        start = end;
    }

    let linked = link(target, symbols, &mut behind)?;
    let end = behind.end;
    segments.push(Segment {
        name: b"__LINKEDIT",
        protection: READ,
        start,
        end,
        sections: Vec::new(),
    });
    let head = |id: &[u8; 20]| head(target, machine, &segments, &linked, name, id);
    let id = behind.hash(&[&head(&[0; 20])])?;
    let mut head = head(&id);
    head.resize(PAGE as usize, 0);
    out.finish(&head)?;
    Ok(Written { id, file_size: end, unwind: summary })
}

/// Writes the content of `__LINKEDIT`.
fn link<W: Write + Seek>(
    target: Target,
    symbols: &[Symbol<'_>],
    behind: &mut Behind<'_, W>,
) -> Result<Linked, Error> {
    let exported = exported(symbols);
    // C function names have a leading underscore.
    let names: Vec<Vec<u8>> =
        exported.iter().map(|symbol| fallible::concat(&[b"_", symbol.name])).collect();
    let values = exported.iter().map(|symbol| symbol.value);
    let trie = trie(target, names.iter().map(Vec::as_slice).zip(values));
    behind.align(8);
    let trie = behind.write("exports", &trie)?;

    let mut table = Encoder::new(target);
    let mut strings = Encoder::new(target);
    strings.u8(0);
    let locals = symbols.iter().filter(|symbol| !symbol.is_exported);
    for symbol in locals.chain(exported.iter().copied()) {
        const DEFINED: u8 = 0x0e;
        const EXTERNAL: u8 = 1;
        table.u32(strings.len() as u32);
        table.u8(DEFINED | if symbol.is_exported { EXTERNAL } else { 0 });
        table.u8(1); // the number of __text
        table.u16(0);
        table.u64(symbol.value);
        strings.u8(b'_');
        strings.string(symbol.name);
    }
    let size = strings.len().next_multiple_of(8);
    strings.bytes.resize(size as usize, 0);
    behind.align(8);
    let table = behind.write("symbols", &table.bytes)?;
    let strings = behind.write("strings", &strings.bytes)?;
    let global = exported.len() as u32;
    let local = (symbols.len() as u32).saturating_sub(global);
    Ok(Linked { trie, symbols: table, strings, local, global })
}

/// Encodes the header with its load commands.
fn head(
    target: Target,
    machine: [u32; 2],
    segments: &[Segment],
    linked: &Linked,
    name: &[u8],
    id: &[u8; 20],
) -> Vec<u8> {
    const SEGMENT_64: u32 = 0x19;
    const SYMTAB: u32 = 2;
    const DYSYMTAB: u32 = 0xb;
    const LOAD_DYLIB: u32 = 0xc;
    const ID_DYLIB: u32 = 0xd;
    const UUID: u32 = 0x1b;
    const DYLD_INFO_ONLY: u32 = 0x8000_0022;
    const BUILD_VERSION: u32 = 0x32;
    let mut commands = Commands { out: Encoder::new(target), count: 0 };
    for segment in segments {
        commands.add(SEGMENT_64, |out| {
            padded(out, segment.name);
            let size = segment.end.saturating_sub(segment.start);
            let in_memory = size.next_multiple_of(LARGEST_PAGE);
            for field in [segment.start, in_memory, segment.start, size] {
                out.u64(field);
            }
            out.u32(segment.protection); // the most there may be
            out.u32(segment.protection);
            out.u32(segment.sections.len() as u32);
            out.u32(0);
            for section in &segment.sections {
                padded(out, section.name.as_bytes());
                padded(out, segment.name);
                out.u64(section.room.at.into());
                out.u64(section.room.size.into());
                // Offset, alignment, no relocations, flags, reserved fields.
                let Section { room: Room { at, .. }, align, flags, .. } = *section;
                for field in [at, align, 0, 0, flags, 0, 0, 0] {
                    out.u32(field);
                }
            }
        });
    }
    commands.library(ID_DYLIB, &fallible::concat(&[b"@rpath/", name]));
    commands.add(DYLD_INFO_ONLY, |out| {
        out.raw(&[0; 32]); // nothing to rebase, to bind, to bind weakly or lazily
        out.u32(linked.trie.at);
        out.u32(linked.trie.size);
    });
    commands.add(SYMTAB, |out| {
        let count = linked.local.saturating_add(linked.global);
        for field in [linked.symbols.at, count, linked.strings.at, linked.strings.size] {
            out.u32(field);
        }
    });
    commands.add(DYSYMTAB, |out| {
        let &Linked { local, global, .. } = linked;
        for field in [0, local, local, global, local.saturating_add(global), 0] {
            out.u32(field);
        }
        out.raw(&[0; 48]);
    });
    commands.add(UUID, |out| {
        let mut uuid = [0; 16];
        uuid.copy_from_slice(id.get(..16).unwrap_or(&[0; 16]));
        // Version 8 of RFC 9562, which may be any hash.
        let [.., version, _, variant, _, _, _, _, _, _, _] = &mut uuid;
        *version = *version & 0x0f | 0x80;
        *variant = *variant & 0x3f | 0x80;
        out.raw(&uuid);
    });
    commands.add(BUILD_VERSION, |out| {
        let (mac_os, version_11) = (1, 11 << 16);
        for field in [mac_os, version_11, version_11, 0] {
            out.u32(field);
        }
    });
    // Every library needs this.
    commands.library(LOAD_DYLIB, b"/usr/lib/libSystem.B.dylib");

    // No undefined symbols, for the dynamic linker, two-level names, no re-exported libraries.
    const FLAGS: u32 = 0x1 | 0x4 | 0x80 | 0x10_0000;
    const DYLIB: u32 = 6;
    let [cpu, subtype] = machine;
    let mut out = Encoder::new(target);
    let size = commands.out.len() as u32;
    for field in [0xfeed_facf, cpu, subtype, DYLIB, commands.count, size, FLAGS, 0] {
        out.u32(field);
    }
    out.raw(&commands.out.bytes);
    out.bytes
}

struct Commands {
    out: Encoder,
    count: u32,
}

impl Commands {
    fn add(&mut self, kind: u32, write: impl FnOnce(&mut Encoder)) {
        let at = self.out.bytes.len();
        self.out.u32(kind);
        self.out.u32(0);
        write(&mut self.out);
        let end = self.out.bytes.len().next_multiple_of(8);
        self.out.bytes.resize(end, 0);
        self.out.set_u32(at.saturating_add(4), end.saturating_sub(at) as u32);
        self.count = self.count.saturating_add(1);
    }

    /// Adds a command for this library, or for one that it needs.
    fn library(&mut self, kind: u32, name: &[u8]) {
        self.add(kind, |out| {
            let (name_at, time, version) = (24, 2, 1 << 16);
            for field in [name_at, time, version, version] {
                out.u32(field);
            }
            out.string(name);
        });
    }
}

/// Writes a name into its field of 16 bytes.
fn padded(out: &mut Encoder, name: &[u8]) {
    let end = out.bytes.len().saturating_add(16);
    out.raw(name.get(..16).unwrap_or(name));
    out.bytes.resize(end, 0);
}
