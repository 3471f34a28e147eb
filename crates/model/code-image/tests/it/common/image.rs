//! An image read back by `object` and gimli: the oracle.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gimli::{EndianSlice, RunTimeEndian};
use object::{Object, ObjectSection, ObjectSymbol};

/// File, line, column; columns of 0 are unknown.
pub type Place = (Vec<u8>, u64, u64);

/// The content of an image, by virtual address.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Value, size, name, in order of the value.
    pub symbols: Vec<(u64, u64, Vec<u8>)>,
    /// Name, start, end, line of the declaration.
    pub functions: Vec<(Vec<u8>, u64, u64, u64)>,
    /// The place in the source of every address that has one.
    pub lines: BTreeMap<u64, Place>,
    pub text: Vec<u8>,
    /// Number of functions of each unit.
    pub units: Vec<usize>,
}

/// Reads an image, and checks that units cover their functions and that all ways to find a unit agree.
pub fn read(path: &Path) -> Contents {
    let data = fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let text = file.section_by_name(".text").unwrap();
    assert_eq!(text.address(), 0x1000);
    contents(&file)
}

/// Reads an object of any format as [`read`] does an image; addresses as if its text were at 0x1000. Sizes of symbols
/// are 0 if the format has none.
pub fn read_object(path: &Path) -> Contents {
    let data = fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let mut contents = contents(&file);
    let text = file.section_by_name(".text").unwrap();
    let there = |address: u64| address - text.address() + 0x1000;
    for (value, _, name) in &mut contents.symbols {
        *value = there(*value);
        // C function names have a leading underscore there.
        if file.format() == object::BinaryFormat::MachO {
            assert_eq!(name.remove(0), b'_');
        }
    }
    for (_, start, end, _) in &mut contents.functions {
        (*start, *end) = (there(*start), there(*end));
    }
    let lines = std::mem::take(&mut contents.lines);
    contents.lines = lines.into_iter().map(|(at, place)| (there(at), place)).collect();
    contents.symbols.sort_by_key(|(value, ..)| *value);
    contents
}

fn contents(file: &object::File<'_>) -> Contents {
    let mut contents = Contents::default();
    for symbol in file.symbols() {
        assert_eq!(symbol.kind(), object::SymbolKind::Text);
        let name = symbol.name_bytes().unwrap().to_vec();
        contents.symbols.push((symbol.address(), symbol.size(), name));
    }
    let text = file.section_by_name(".text").unwrap();
    contents.text = text.data().unwrap().to_vec();

    let dwarf = dwarf(file);
    let aranges = section(file, gimli::SectionId::DebugAranges);
    let aranges = gimli::DebugAranges::from(aranges);
    let mut by_aranges = BTreeMap::new();
    let mut sets = aranges.headers();
    while let Some(set) = sets.next().unwrap() {
        let mut entries = set.entries();
        let mut ranges = Vec::new();
        while let Some(entry) = entries.next().unwrap() {
            ranges.push(entry.range());
        }
        assert!(by_aranges.insert(set.debug_info_offset(), ranges).is_none());
    }

    let mut units = dwarf.units();
    while let Some(header) = units.next().unwrap() {
        let unit = dwarf.unit(header).unwrap();
        let mut ranges = Vec::new();
        let mut unit_ranges = dwarf.unit_ranges(&unit).unwrap();
        while let Some(range) = unit_ranges.next().unwrap() {
            ranges.push(range);
        }
        let offset = unit.header.debug_info_offset().unwrap();
        assert_eq!(by_aranges.remove(&offset), Some(ranges.clone()));
        assert!(unit.name.is_some_and(|name| !name.is_empty()));
        let before = contents.functions.len();
        functions(&dwarf, &unit, &mut contents.functions);
        contents.units.push(contents.functions.len() - before);
        for (_, start, end, _) in &contents.functions[before..] {
            assert!(ranges.iter().any(|range| range.begin <= *start && *end <= range.end));
        }
        lines(&unit, &mut contents.lines);
    }
    assert!(by_aranges.is_empty());
    contents
}

pub type Bytes<'a> = EndianSlice<'a, RunTimeEndian>;
pub type Dwarf<'a> = gimli::Dwarf<Bytes<'a>>;
pub type Unit<'a> = gimli::Unit<Bytes<'a>>;

pub fn section<'a>(file: &object::File<'a>, id: gimli::SectionId) -> Bytes<'a> {
    let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let bytes = file.section_by_name(id.name()).map_or(&[][..], |s| s.data().unwrap());
    EndianSlice::new(bytes, endian)
}

/// The debug info of a file.
pub fn dwarf<'a>(file: &object::File<'a>) -> Dwarf<'a> {
    gimli::Dwarf::load(|id| Ok::<_, gimli::Error>(section(file, id))).unwrap()
}

fn functions(dwarf: &Dwarf<'_>, unit: &Unit<'_>, out: &mut Vec<(Vec<u8>, u64, u64, u64)>) {
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs().unwrap() {
        if entry.tag() != gimli::DW_TAG_subprogram || entry.has_attr(gimli::DW_AT_inline) {
            continue;
        }
        let name = entry.attr_value(gimli::DW_AT_name).unwrap();
        let name = dwarf.attr_string(unit, name).unwrap().slice().to_vec();
        let line = entry.attr_value(gimli::DW_AT_decl_line);
        let line = line.map_or(0, |line| line.udata_value().unwrap());
        let mut ranges = dwarf.die_ranges(unit, entry).unwrap();
        let range = ranges.next().unwrap().unwrap();
        out.push((name, range.begin, range.end, line));
    }
}

fn lines(unit: &Unit<'_>, out: &mut BTreeMap<u64, Place>) {
    let program = unit.line_program.clone().unwrap();
    let mut rows = program.rows();
    let mut before: Option<(u64, Place)> = None;
    while let Some((header, row)) = rows.next_row().unwrap() {
        if let Some((address, place)) = before.take() {
            assert!(address < row.address(), "rows without length");
            for address in address..row.address() {
                assert!(out.insert(address, place.clone()).is_none(), "{address:#x} twice");
            }
        }
        if row.end_sequence() {
            continue;
        }
        assert!(row.is_stmt());
        let file = row.file(header).unwrap();
        let mut path = Vec::new();
        if file.directory_index() != 0 {
            let gimli::AttributeValue::String(directory) = file.directory(header).unwrap() else {
                panic!("a directory is a string")
            };
            path.extend_from_slice(directory.slice());
            path.push(b'/');
        }
        let gimli::AttributeValue::String(name) = file.path_name() else {
            panic!("a name is a string")
        };
        path.extend_from_slice(name.slice());
        let column = match row.column() {
            gimli::ColumnType::LeftEdge => 0,
            gimli::ColumnType::Column(column) => column.get(),
        };
        before = Some((row.address(), (path, row.line().map_or(0, |line| line.get()), column)));
    }
    assert_eq!(before, None, "a sequence without an end");
}
