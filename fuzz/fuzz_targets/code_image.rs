//! An ELF image of whatever a dump of any bytes holds.
#![no_main]

use std::io::Cursor;

use code_image::{Code, EhFrame, Endian, ImageWriter, Line, Target};
use jitdump::{CodeEvent, CodeLoad, Dump};
use jitscribe_fuzz as _;
use libfuzzer_sys::fuzz_target;
use object::{Object, ObjectSection, ObjectSymbol};
use perf_map::{Entry, Piece};

/// A hole is room in memory here, unlike in a file.
const LARGEST_HOLE: u64 = 1 << 12;

/// The pieces, those near one another together.
fn arenas<'p, 'a>(pieces: &'p [Piece<'a>]) -> impl Iterator<Item = &'p [Piece<'a>]> {
    pieces.chunk_by(|left, right| right.address - left.end() <= LARGEST_HOLE)
}

fn image(target: Target, arena: &[Piece<'_>], loads: &[CodeLoad<'_>]) -> Option<Vec<u8>> {
    let span = arena.first()?.address & !0xfff..arena.last()?.end();
    let mut file = Cursor::new(Vec::new());
    let mut writer = ImageWriter::new(&mut file, target, span).ok()?;
    for piece in arena {
        let load = &loads[usize::try_from(piece.entry.line).expect("an index")];
        let line = |line: jitdump::LineEntry<'_>| (line.address, line.line, line.column);
        let lines: Vec<_> = load
            .lines()
            .map(|entry| {
                let (address, line, column) = line(entry);
                Line { address, file: entry.file, line, column }
            })
            .collect();
        let code = Code {
            start: load.address,
            size: load.size,
            visible: piece.address..piece.end(),
            name: load.name,
            bytes: load.bytes,
            lines: &lines,
            unwind: load.unwind().map(|unwind| EhFrame { bytes: unwind.eh_frame }),
            ..Code::default()
        };
        writer.add(&code).expect("pieces in their order");
    }
    let finished = writer.finish(|_| None).ok()?;
    let file = file.into_inner();
    assert_eq!(finished.file_size, file.len() as u64);
    Some(file)
}

fuzz_target!(|bytes: &[u8]| {
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
        let Some(file) = image(Target::new(machine, endian), arena, &loads) else { continue };
        let elf = object::File::parse(&*file).expect("an ELF file");
        let text = elf.section_by_name(".text").expect("a text section");
        let text = text.address()..text.address() + text.size();
        let functions = elf.symbols().filter(|symbol| symbol.is_definition());
        for symbol in functions.filter(|symbol| symbol.kind() == object::SymbolKind::Text) {
            assert!(text.contains(&symbol.address()), "{:?} outside of {text:?}", symbol.name());
            let name = symbol.name_bytes().expect("a name");
            assert!(!name.is_empty() && !name.iter().any(u8::is_ascii_control));
        }
    }
});
