//! An ELF image of whatever a dump of any bytes holds, and objects for loaders.
use std::io::Cursor;
use std::ops::Range;

use code_image::{Endian, ImageWriter, ObjectFormat, ObjectWriter, Target, VisibleCode};
use gimli::{EndianSlice, RunTimeEndian};
use jit_code::{Code, Inlined, Line, Unwind};
use jitdump::{CodeEvent, CodeLoad, Dump};
use object::{Object, ObjectSection, ObjectSymbol};
use perf_map::{Entry, Piece};

/// A hole is room in memory here, unlike in a file.
const LARGEST_HOLE: u64 = 1 << 12;
/// And so is code of which only the size is told.
const LARGEST_ARENA: u64 = 1 << 22;

/// The pieces, those near one another together.
fn arenas<'p, 'a>(pieces: &'p [Piece<'a>]) -> impl Iterator<Item = &'p [Piece<'a>]> {
    pieces.chunk_by(|left, right| right.address - left.end() <= LARGEST_HOLE)
}

/// Bytes that one inlined call is made of.
const CALL: usize = 8;

/// Ranges for calls, two for each `CALL` bytes of the code: empty, upside down or outside as they come.
fn ranges(load: &CodeLoad<'_>) -> Vec<Range<u32>> {
    let at = |byte: u8| u32::from(byte).wrapping_sub(8);
    let calls = load.bytes.chunks_exact(CALL);
    calls.flat_map(|call| [at(call[0])..at(call[1]), at(call[2])..at(call[3])]).collect()
}

/// Calls out of the code's own bytes.
fn inlined<'a>(load: &CodeLoad<'a>, ranges: &'a [Range<u32>]) -> Vec<Inlined<'a>> {
    let calls = load.bytes.chunks_exact(CALL).zip(ranges.chunks_exact(2)).zip(0_u32..);
    let call = |((call, ranges), number): ((&'a [u8], &'a [Range<u32>]), u32)| {
        let name = &call[..usize::from(call[4] % 8)];
        Inlined::new_bytes(name, &ranges[..usize::from(call[7] % 3)])
            .called_from_bytes(&call[..usize::from(call[6] % 4)], u32::from(call[7]))
            .column(u32::from(call[6]))
            // one not long before, none, or one that is not before
            .within(number.checked_sub(u32::from(call[5] % 8)))
    };
    calls.map(call).collect()
}

/// Checks that entries of inlined calls lie within the parts of the entry around them, and are of a function
/// that is there.
fn check_inlined(elf: &object::File<'_>) {
    let endian = match elf.endianness() {
        object::Endianness::Little => RunTimeEndian::Little,
        object::Endianness::Big => RunTimeEndian::Big,
    };
    let section = |id: gimli::SectionId| {
        let bytes = elf.section_by_name(id.name()).map_or(&[][..], |s| s.data().expect("bytes"));
        Ok::<_, gimli::Error>(EndianSlice::new(bytes, endian))
    };
    let dwarf = gimli::Dwarf::load(section).expect("debug info");
    let mut units = dwarf.units();
    while let Some(header) = units.next().expect("a unit") {
        let unit = dwarf.unit(header).expect("a unit's header");
        let mut around: Vec<Vec<gimli::Range>> = Vec::new();
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs().expect("an entry") {
            around.truncate(usize::try_from(entry.depth()).expect("a depth"));
            let mut parts = Vec::new();
            let mut ranges = dwarf.die_ranges(&unit, entry).expect("ranges");
            while let Some(range) = ranges.next().expect("a range") {
                parts.push(range);
            }
            if entry.tag() == gimli::DW_TAG_inlined_subroutine {
                let outer = around.last().expect("a function around a call");
                for part in &parts {
                    let mut outer = outer.iter();
                    assert!(outer.any(|outer| outer.begin <= part.begin && part.end <= outer.end));
                }
                let origin = entry.attr_value(gimli::DW_AT_abstract_origin);
                let Some(gimli::AttributeValue::UnitRef(origin)) = origin else {
                    panic!("a call of {origin:?}")
                };
                let origin = unit.entry(origin).expect("a function");
                assert!(origin.has_attr(gimli::DW_AT_inline));
            }
            around.push(parts);
        }
    }
}

/// The addresses of an arena that is not too large.
fn span(arena: &[Piece<'_>]) -> Option<Range<u64>> {
    let span = arena.first()?.address & !0xfff..arena.last()?.end();
    (span.end - span.start <= LARGEST_ARENA).then_some(span)
}

fn image(target: Target, arena: &[Piece<'_>], loads: &[CodeLoad<'_>]) -> Option<Vec<u8>> {
    let mut file = Cursor::new(Vec::new());
    let mut writer = ImageWriter::new(&mut file, target, span(arena)?).ok()?;
    add_all(arena, loads, |code, _| writer.add(code).expect("pieces in their order"));
    let finished = writer.finish(|_| None).ok()?;
    let file = file.into_inner();
    assert_eq!(finished.file_size, file.len() as u64);
    Some(file)
}

/// The arena as an object that a loader takes, read back.
fn check_object(
    target: Target,
    format: ObjectFormat,
    arena: &[Piece<'_>],
    loads: &[CodeLoad<'_>],
) -> Option<()> {
    let mut file = Cursor::new(Vec::new());
    let mut writer = ObjectWriter::new(&mut file, target, format, span(arena)?).ok()?;
    add_all(arena, loads, |code, made| writer.add(code, made).expect("pieces in their order"));
    let finished = writer.finish().ok()?;
    let file = file.into_inner();
    assert_eq!(finished.file_size, file.len() as u64);
    let object = object::File::parse(&*file).expect("an object");
    check_inlined(&object);
    let text = object.section_by_name(".text").expect("a text section");
    let text = text.address()..text.address() + text.size();
    for symbol in object.symbols().filter(|symbol| symbol.is_definition()) {
        assert!(text.contains(&symbol.address()), "{:?} outside of {text:?}", symbol.name());
    }
    let exports = object.exports().expect("exported names");
    let mut count = 0;
    for export in exports {
        export.expect("an exported name");
        count += 1;
    }
    assert_eq!(count, finished.exported);
    Some(())
}

/// Gives the codes of an arena to `add`, each with the time it was made.
fn add_all(
    arena: &[Piece<'_>],
    loads: &[CodeLoad<'_>],
    mut add: impl FnMut(&VisibleCode<'_>, u64),
) {
    for piece in arena {
        let load = &loads[usize::try_from(piece.entry.line).expect("an index")];
        let lines: Vec<_> = load
            .lines()
            .map(|entry| {
                let offset =
                    u32::try_from(entry.address - load.address).expect("a line in the code");
                Line::new_bytes(offset, entry.file, entry.line).column(entry.column)
            })
            .collect();
        // every other code is without
        let ranges = if load.index % 2 == 0 { Vec::new() } else { ranges(load) };
        let inlined = inlined(load, &ranges);
        let mut code = Code::at(load.address, load.size)
            .named_bytes(load.name)
            .lines(&lines)
            .inlined(&inlined);
        code.bytes = Some(load.bytes);
        code.unwind = load.unwind().map(|unwind| Unwind::EhFrame(unwind.eh_frame));
        let visible = piece.address..piece.end();
        add(&VisibleCode::whole(code).visible(visible), load.timestamp);
    }
}

/// Reads it in every way, and checks what must hold.
pub fn run(bytes: &[u8]) {
    let Ok(dump) = Dump::parse(bytes) else { return };
    let loads: Vec<_> = dump
        .codes()
        .filter_map(|event| match event {
            Ok(CodeEvent::Load(load)) => Some(load),
            _ => None,
        })
        .collect();
    let entries = (0..).zip(&loads).map(|(line, load)| Entry {
        offset: load.offset,
        line,
        address: load.address,
        size: load.size,
        name: load.name,
    });
    let pieces = perf_map::resolve(entries);
    let endian = match dump.header().endian {
        jitdump::Endian::Little => Endian::Little,
        jitdump::Endian::Big => Endian::Big,
    };
    let Ok(machine) = u16::try_from(dump.header().elf_mach) else { return };
    for arena in arenas(&pieces) {
        let target = Target::new(machine, endian);
        for format in [ObjectFormat::Elf, ObjectFormat::Pe, ObjectFormat::MachO] {
            check_object(target, format, arena, &loads);
        }
        let Some(file) = image(target, arena, &loads) else { continue };
        let elf = object::File::parse(&*file).expect("an ELF file");
        let text = elf.section_by_name(".text").expect("a text section");
        let text = text.address()..text.address() + text.size();
        check_inlined(&elf);
        let functions = elf.symbols().filter(|symbol| symbol.is_definition());
        for symbol in functions.filter(|symbol| symbol.kind() == object::SymbolKind::Text) {
            assert!(text.contains(&symbol.address()), "{:?} outside of {text:?}", symbol.name());
            let name = symbol.name_bytes().expect("a name");
            assert!(!name.is_empty() && !name.iter().any(u8::is_ascii_control));
        }
    }
}
