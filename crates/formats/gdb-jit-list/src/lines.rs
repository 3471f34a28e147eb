//! The source lines of an object, from its DWARF.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use gimli::Section as _;
use gimli::{
    AttributeValue, DebugLineOffset, Dwarf, DwarfSections, EndianSlice, IncompleteLineProgram,
    LittleEndian, SectionId,
};

use crate::elf::{Section, string};
use crate::limits;
use crate::relocated::relocated;

/// The most compilation units that are asked for their folder.
const UNITS: usize = 1 << 14;
/// The most bytes of tables of abbreviations, of which each unit may have its own, that are read for this.
const ABBREVIATIONS: usize = 64 << 20;
/// The most files.
const FILES: usize = 1 << 16;
/// The longest path of a file.
const PATH: usize = 4096;

/// A source line, from an address on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The address of its first byte.
    pub address: u64,
    /// The path of the file, as the compiler spells it.
    pub file: Arc<[u8]>,
    /// The line from 1.
    pub line: u32,
    /// The column from 1, or 0 if unknown.
    pub column: u32,
}

type Reader<'s> = EndianSlice<'s, LittleEndian>;
type Program<'s> = IncompleteLineProgram<Reader<'s>>;

/// The lines of an object, sorted by address. Damaged parts are skipped.
pub fn lines(object: &[u8], sections: &[Section], names: &[u8]) -> Vec<SourceLine> {
    let load = |id: SectionId| -> Result<Cow<'_, [u8]>, gimli::Error> {
        let name = id.name().as_bytes();
        let at = sections.iter().position(|section| string(names, section.name) == Some(name));
        // Where they are does not matter: debug sections do not refer to their own position.
        Ok(at.and_then(|at| relocated(object, sections, at, 0)).unwrap_or_default())
    };
    let mut lines = Vec::new();
    let Ok(loaded) = DwarfSections::load(load) else { return lines };
    let dwarf = loaded.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
    let folders = folders(&dwarf);
    let mut files = HashMap::new();
    // The programs follow one another: that way each is read once, whatever the units refer to.
    let section = &dwarf.debug_line;
    let size = section.reader().len();
    let mut at = 0;
    while at < size && lines.len() < limits::LINES {
        let Ok(program) = section.program(DebugLineOffset(at), 8, None, None) else { break };
        let head = if program.header().format() == gimli::Format::Dwarf64 { 12 } else { 4 };
        let folder = folders.get(&at).copied();
        at = at.saturating_add(program.header().unit_length()).saturating_add(head);
        add_lines(&dwarf, program, folder, &mut files, &mut lines);
    }
    lines.sort_by_key(|line| line.address);
    // At one address, the last one counts.
    lines.dedup_by(|later, earlier| {
        let is_same = later.address == earlier.address;
        if is_same {
            std::mem::swap(later, earlier);
        }
        is_same
    });
    lines
}

/// The folders in which units were compiled, by the offsets of their line programs.
fn folders<'s>(dwarf: &Dwarf<Reader<'s>>) -> HashMap<usize, &'s [u8]> {
    let mut folders = HashMap::new();
    let mut tables = HashMap::new();
    let mut left = ABBREVIATIONS;
    let mut units = dwarf.units();
    for _ in 0..UNITS {
        let Ok(Some(unit)) = units.next() else { break };
        let table = tables.entry(unit.debug_abbrev_offset()).or_insert_with(|| {
            left = left.checked_sub(dwarf.debug_abbrev.reader().len())?;
            unit.abbreviations(&dwarf.debug_abbrev).ok()
        });
        let Some(table) = table else { continue };
        let mut entries = unit.entries(table);
        let Ok(Some(root)) = entries.next_dfs() else { continue };
        let program = root.attr_value(gimli::DW_AT_stmt_list);
        let folder = root.attr_value(gimli::DW_AT_comp_dir);
        if let (Some(AttributeValue::DebugLineRef(program)), Some(folder)) = (program, folder)
            && let Some(folder) = text(dwarf, folder)
        {
            folders.insert(program.0, folder);
        }
    }
    folders
}

fn text<'s>(dwarf: &Dwarf<Reader<'s>>, value: AttributeValue<Reader<'s>>) -> Option<&'s [u8]> {
    let text = match value {
        AttributeValue::String(text) => text,
        AttributeValue::DebugStrRef(at) => dwarf.string(at).ok()?,
        AttributeValue::DebugLineStrRef(at) => dwarf.line_string(at).ok()?,
        _ => return None,
    };
    Some(text.slice())
}

fn add_lines(
    dwarf: &Dwarf<Reader<'_>>,
    program: Program<'_>,
    folder: Option<&[u8]>,
    files: &mut HashMap<Vec<u8>, Arc<[u8]>>,
    lines: &mut Vec<SourceLine>,
) {
    // By the number in the program.
    let mut known: HashMap<u64, Option<Arc<[u8]>>> = HashMap::new();
    let mut rows = program.rows();
    while let Ok(Some((header, row))) = rows.next_row() {
        if lines.len() >= limits::LINES || files.len() >= FILES {
            return;
        }
        let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
        let Some(line) = line.filter(|_| !row.end_sequence() && row.address() != 0) else {
            continue;
        };
        let file = known.entry(row.file_index()).or_insert_with(|| {
            let path = path(dwarf, folder, header, row.file(header)?)?;
            Some(Arc::clone(files.entry(path).or_insert_with_key(|path| path.as_slice().into())))
        });
        let Some(file) = file else { continue };
        let column = match row.column() {
            gimli::ColumnType::Column(column) => u32::try_from(column.get()).unwrap_or(0),
            gimli::ColumnType::LeftEdge => 0,
        };
        lines.push(SourceLine { address: row.address(), file: Arc::clone(file), line, column });
    }
}

/// The path of a file: its name, in its folder, in the folder of the unit.
fn path<'s>(
    dwarf: &Dwarf<Reader<'s>>,
    unit: Option<&[u8]>,
    header: &gimli::LineProgramHeader<Reader<'s>>,
    file: &gimli::FileEntry<Reader<'s>>,
) -> Option<Vec<u8>> {
    let name = text(dwarf, file.path_name())?;
    // Up to version 4, folder 0 is that of the unit.
    let folder = match (header.version(), file.directory_index()) {
        (..=4, 0) => None,
        _ => file.directory(header).and_then(|folder| text(dwarf, folder)),
    };
    let mut path = Vec::new();
    for part in [unit, folder, Some(name)] {
        let Some(part) = part.filter(|part| !part.is_empty() && part.len() <= PATH) else {
            continue;
        };
        if part.starts_with(b"/") {
            path.clear();
        } else if !path.is_empty() && !path.ends_with(b"/") {
            path.push(b'/');
        }
        path.extend_from_slice(part);
    }
    (path.len() <= PATH && !path.is_empty()).then_some(path)
}
