//! `.debug_info`: one unit, which refers to the line table and contains the inlined calls. Memcheck
//! and helgrind show these as frames of their own. Valgrind takes all other names from the symbols.

use fallible::{HashMap, Vec};

use crate::encode::{Encode, put, word};
use crate::files::Files;
use crate::name;
use jit_code::Inlined;

/// More deeply nested calls are left out: Valgrind reads them recursively.
const DEEPEST: usize = 64;

const UNIT: u8 = 1;
const INLINED: u8 = 2;
const CODE: u8 = 3;
const CALL: u8 = 4;
const CALL_AROUND_CALLS: u8 = 5;
const NOTHING: u8 = 6;

pub(crate) const ABBREVIATIONS: &[u8] = &[
    UNIT,
    0x11,
    1, // DW_TAG_compile_unit; valgrind passes over one without addresses
    0x10,
    0x17,
    0x03,
    0x08, // stmt_list: sec_offset, name: string
    0x11,
    0x01,
    0x12,
    0x07,
    0,
    0, // low_pc: addr, high_pc: data8
    INLINED,
    0x2e,
    0, // DW_TAG_subprogram: what stands in no place of its own
    0x03,
    0x08,
    0x20,
    0x0b,
    0,
    0, // name: string, inline: data1
    CODE,
    0x2e,
    1, // DW_TAG_subprogram
    0x11,
    0x01,
    0x12,
    0x07,
    0,
    0, // low_pc: addr, high_pc: data8
    CALL,
    0x1d,
    0, // DW_TAG_inlined_subroutine
    0x31,
    0x13,
    0x11,
    0x01,
    0x12,
    0x06, // abstract_origin: ref4, low_pc: addr, high_pc: data4
    0x58,
    0x0f,
    0x59,
    0x0f,
    0,
    0, // call_file: udata, call_line: udata
    CALL_AROUND_CALLS,
    0x1d,
    1, // the same with children
    0x31,
    0x13,
    0x11,
    0x01,
    0x12,
    0x06, //
    0x58,
    0x0f,
    0x59,
    0x0f,
    0,
    0, //
    NOTHING,
    0x80,
    0x81,
    0x01,
    0, // a tag that nobody knows
    0x80,
    0x40,
    0x04,
    0,
    0, // an attribute that nobody knows: block4
    0,
];

/// Size of what precedes the codes: the unit's header, and its DIE.
const HEAD: usize = 39;
/// Offsets of the fields that change.
const LENGTH_AT: usize = 0;
const ADDRESS_AT: usize = 23;
const SIZE_AT: usize = 31;
const EMPTY: [u8; HEAD] = [
    0, 0, 0, 0, // length of what follows
    4, 0, // version
    0, 0, 0, 0, // the abbreviations
    8, // size of an address
    UNIT, 0, 0, 0, 0, // its line table
    b'j', b'i', b't', b't', b'e', b'd', 0, // its name
    0, 0, 0, 0, 0, 0, 0, 0, // address
    0, 0, 0, 0, 0, 0, 0, 0, // size
];

/// What precedes `codes` bytes of codes in a region. A zero must end them.
pub(crate) fn head((start, end): (u64, u64), codes: usize) -> [u8; HEAD] {
    let mut head = EMPTY;
    put(&mut head, LENGTH_AT, ((HEAD - 4 + codes + 1) as u32).to_le_bytes());
    put(&mut head, ADDRESS_AT, start.to_le_bytes());
    put(&mut head, SIZE_AT, end.wrapping_sub(start).to_le_bytes());
    head
}

/// The codes that have inlined calls, one after another.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    pub(crate) bytes: Vec<u8>,
    /// The fields that change when they are moved, ascending.
    fields: Vec<(usize, Field)>,
}

/// A field of a code.
#[derive(Clone, Copy, Debug)]
enum Field {
    /// An offset in the unit.
    Reference,
    /// An address in memory.
    Address,
}

impl Codes {
    /// Appends the calls of a code; nothing if it has none. Returns the highest number of a file.
    pub(crate) fn push(
        &mut self,
        files: &mut Files,
        (address, size): (u64, u64),
        calls: &[Inlined<'_>],
    ) -> u32 {
        if calls.is_empty() {
            return 0;
        }
        let tree = Tree::of(calls, size);
        if tree.first.is_none() {
            return 0;
        }
        let mut writer = Writer { codes: self, files, address, file: 0 };
        let names = writer.names(&tree);
        writer.codes.bytes.push(CODE);
        writer.address(0);
        writer.codes.bytes.u64(size);
        writer.calls(&tree, &names);
        writer.codes.bytes.push(0);
        writer.file
    }

    /// Appends a code of another unit.
    pub(crate) fn copy(&mut self, from: &Self, code: std::ops::Range<usize>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(from.bytes.get(code.clone()).unwrap_or_default());
        let first = from.fields.partition_point(|&(at, _)| at < code.start);
        let fields = from.fields.get(first..).unwrap_or_default().iter();
        for &(at, field) in fields.take_while(|&&(at, _)| at < code.end) {
            let at = at - code.start + start;
            if let Field::Reference = field {
                let there = word(&self.bytes, at) as usize;
                let here = (there + start).saturating_sub(code.start);
                put(&mut self.bytes, at, (here as u32).to_le_bytes());
            }
            self.fields.push((at, field));
        }
    }

    /// Disables the code.
    pub(crate) fn tombstone(&mut self, code: std::ops::Range<usize>) {
        let Some(code) = self.bytes.get_mut(code) else { return };
        if let Some(rest) = code.len().checked_sub(5) {
            code[0] = NOTHING;
            put(code, 1, (rest as u32).to_le_bytes());
        }
    }

    /// Increases all addresses by a distance.
    pub(crate) fn move_by(&mut self, distance: u64) {
        for &(at, field) in &self.fields {
            if let Field::Address = field
                && let Some(address) = self.bytes.get(at..).and_then(<[u8]>::first_chunk)
            {
                let address = u64::from_le_bytes(*address).wrapping_add(distance);
                put(&mut self.bytes, at, address.to_le_bytes());
            }
        }
    }
}

/// The tree of inlined calls.
struct Tree<'a> {
    calls: &'a [Inlined<'a>],
    size: u64,
    /// The first call that is in no other.
    first: Option<usize>,
    first_child: Vec<Option<usize>>,
    next_sibling: Vec<Option<usize>>,
}

impl<'a> Tree<'a> {
    /// The tree of all calls that have code.
    fn of(calls: &'a [Inlined<'a>], size: u64) -> Self {
        let mut tree = Self {
            calls,
            size,
            first: None,
            first_child: fallible::vec![None; calls.len()],
            next_sibling: fallible::vec![None; calls.len()],
        };
        // Backwards: each becomes the first child of its parent, and the previous first child becomes
        // its sibling.
        for (index, call) in calls.iter().enumerate().rev() {
            let head = match call.parent {
                _ if tree.parts(call).next().is_none() => None,
                None => Some(&mut tree.first),
                Some(parent) if (parent as usize) < index => {
                    tree.first_child.get_mut(parent as usize)
                }
                Some(_) => None,
            };
            if let Some(head) = head {
                tree.next_sibling[index] = head.replace(index);
            }
        }
        tree
    }

    /// The ranges of a call's code: offset and size.
    fn parts(&self, call: &Inlined<'a>) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        let end = u32::try_from(self.size).unwrap_or(u32::MAX);
        let parts = call.ranges.iter().map(move |range| (range.start, range.end.min(end)));
        parts.filter(|(start, end)| start < end).map(|(start, end)| (start, end - start))
    }
}

struct Writer<'a> {
    codes: &'a mut Codes,
    files: &'a mut Files,
    address: u64,
    /// The highest number of a file.
    file: u32,
}

impl Writer<'_> {
    fn address(&mut self, offset: u32) {
        self.codes.fields.push((self.codes.bytes.len(), Field::Address));
        self.codes.bytes.u64(self.address.wrapping_add(offset.into()));
    }

    /// Writes the callees, and returns for each call the offset of its callee in the unit.
    fn names(&mut self, tree: &Tree<'_>) -> Vec<u32> {
        let mut written: HashMap<&[u8], u32> = HashMap::new();
        let each = tree.calls.iter().map(|call| {
            written.find_or_insert(call.name, |_| {
                let bytes = &mut self.codes.bytes;
                let at = (HEAD + bytes.len()) as u32;
                bytes.push(INLINED);
                name::push(bytes, call.name);
                bytes.push(1); // DW_INL_inlined
                at
            })
        });
        each.collect()
    }

    fn calls(&mut self, tree: &Tree<'_>, names: &[u32]) {
        let mut ahead = Vec::from_iter(tree.first);
        let mut depth = Vec::new();
        while let Some(index) = ahead.pop() {
            // Ends the calls that do not enclose this one.
            let rest = ahead.len();
            while depth.last().is_some_and(|&around| around > rest) {
                depth.pop();
                self.codes.bytes.push(0);
            }
            ahead.extend(tree.next_sibling[index]);
            let child = tree.first_child[index].filter(|_| depth.len() + 1 < DEEPEST);
            self.call(tree, names, index, child.is_some());
            if let Some(child) = child {
                depth.push(ahead.len());
                ahead.push(child);
            }
        }
        self.codes.bytes.extend(depth.iter().map(|_| 0));
    }

    /// Of a call with several ranges, the last one contains the nested calls: Valgrind only uses the
    /// depth.
    fn call(&mut self, tree: &Tree<'_>, names: &[u32], index: usize, is_around: bool) {
        let call = &tree.calls[index];
        let file = if call.file.is_empty() { 0 } else { self.files.number(call.file) };
        self.file = self.file.max(file);
        let mut parts = tree.parts(call).peekable();
        while let Some((offset, size)) = parts.next() {
            let is_around = is_around && parts.peek().is_none();
            self.codes.bytes.push(if is_around { CALL_AROUND_CALLS } else { CALL });
            self.codes.fields.push((self.codes.bytes.len(), Field::Reference));
            self.codes.bytes.u32(names[index]);
            self.address(offset);
            self.codes.bytes.u32(size);
            self.codes.bytes.uleb(file.into());
            self.codes.bytes.uleb(call.line.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use gimli::{EndianSlice, LittleEndian, constants};

    use super::*;

    const ALL: &[std::ops::Range<u32>] = std::slice::from_ref(&(0..0x40));

    fn call<'a>(
        name: &'a str,
        parent: Option<u32>,
        line: u32,
        ranges: &'a [std::ops::Range<u32>],
    ) -> Inlined<'a> {
        Inlined::new(name, ranges).called_from("/src/a.lang", line).within(parent)
    }

    /// What a reader of debug info finds: a line for each item, indented.
    fn read(codes: &Codes) -> Vec<String> {
        let mut info = head((0x1000, 0x4000), codes.bytes.len()).to_vec();
        info.extend_from_slice(&codes.bytes);
        info.push(0);
        let load = |section: gimli::SectionId| {
            let bytes = match section {
                gimli::SectionId::DebugInfo => &info[..],
                gimli::SectionId::DebugAbbrev => ABBREVIATIONS,
                _ => &[],
            };
            Ok::<_, gimli::Error>(EndianSlice::new(bytes, LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(load).unwrap();
        let mut units = dwarf.units();
        let header = units.next().unwrap().unwrap();
        assert!(units.next().unwrap().is_none());
        let unit = header.abbreviations(&dwarf.debug_abbrev).unwrap();
        let mut entries = header.entries(&unit);
        let mut found = Vec::new();
        while let Some(entry) = entries.next_dfs().unwrap() {
            let number = |name| entry.attr_value(name).and_then(|value| value.udata_value());
            let address = |name| match entry.attr_value(name) {
                Some(gimli::AttributeValue::Addr(address)) => address,
                other => panic!("{other:?}"),
            };
            let indent = "  ".repeat(entry.depth() as usize);
            match entry.tag() {
                constants::DW_TAG_compile_unit => {}
                constants::DW_TAG_subprogram if entry.attr_value(gimli::DW_AT_name).is_some() => {}
                constants::DW_TAG_subprogram => {
                    let size = number(constants::DW_AT_high_pc).unwrap();
                    found.push(format!("{indent}{:x}+{size:x}", address(constants::DW_AT_low_pc)));
                }
                constants::DW_TAG_inlined_subroutine => {
                    let Some(gimli::AttributeValue::UnitRef(at)) =
                        entry.attr_value(constants::DW_AT_abstract_origin)
                    else {
                        panic!("of nothing")
                    };
                    let origin = header.entry(&unit, at).unwrap();
                    let Some(gimli::AttributeValue::String(name)) =
                        origin.attr_value(constants::DW_AT_name)
                    else {
                        panic!("of no name")
                    };
                    let size = number(constants::DW_AT_high_pc).unwrap();
                    found.push(format!(
                        "{indent}{:x}+{size:x} {} :{}",
                        address(constants::DW_AT_low_pc),
                        str::from_utf8(&name).unwrap(),
                        number(constants::DW_AT_call_line).unwrap()
                    ));
                }
                constants::DwTag(0x4080) => found.push(format!("{indent}nothing")),
                other => panic!("{other}"),
            }
        }
        found
    }

    #[test]
    fn inlined_calls_are_nested() {
        let mut codes = Codes::default();
        let mut files = Files::new();
        assert_eq!(read(&codes), [""; 0]);
        assert_eq!(codes.push(&mut files, (0x1000, 0x20), &[]), 0);
        let (two, beyond) = (&[4..8, 12..16], &[30..40, 33..34, 9..9]);
        let calls = [
            call("middle", None, 1, two),
            call("inner", Some(0), 2, &two[..1]),
            call("innermost", Some(1), 3, &two[..1]),
            call("second", Some(0), 4, &two[1..]),
            call("middle", None, 5, beyond),
            call("of itself", Some(5), 6, two),
            call("of nobody", Some(9), 7, two),
            call("nowhere", None, 8, &beyond[1..]),
        ];
        assert!(codes.push(&mut files, (0x1000, 0x20), &calls) > 0);
        let expected = [
            "  1000+20",
            "    1004+4 middle :1",
            "    100c+4 middle :1",
            "      1004+4 inner :2",
            "        1004+4 innermost :3",
            "      100c+4 second :4",
            "    101e+2 middle :5",
        ];
        assert_eq!(read(&codes), expected);
    }

    #[test]
    fn codes_are_copied_moved_and_tombstoned() {
        let mut codes = Codes::default();
        let mut files = Files::new();
        let mut each = Vec::new();
        for number in 0..3 {
            let from = codes.bytes.len();
            let names = ["a", "b", "c"];
            let calls = [call(names[number], None, 1, ALL), call("in", Some(0), 2, ALL)];
            codes.push(&mut files, (0x1000 * (number as u64 + 1), 0x40), &calls);
            each.push(from..codes.bytes.len());
        }
        let mut others = Codes::default();
        others.copy(&codes, each[2].clone());
        others.copy(&codes, 0..0);
        others.move_by(0x10);
        others.copy(&codes, each[1].clone());
        let third = ["  3010+40", "    3010+40 c :1", "      3010+40 in :2"];
        let second = ["  2000+40", "    2000+40 b :1", "      2000+40 in :2"];
        assert_eq!(read(&others), [&third[..], &second[..]].concat());
        codes.tombstone(each[0].clone());
        codes.tombstone(each[2].clone());
        codes.tombstone(0..0);
        assert_eq!(read(&codes), [&["  nothing"][..], &second, &["  nothing"]].concat());
    }

    #[test]
    fn deeply_nested_calls_are_written() {
        let calls: Vec<_> =
            (0..1000).map(|index: u32| call("deep", index.checked_sub(1), index, ALL)).collect();
        let mut codes = Codes::default();
        codes.push(&mut Files::new(), (0x1000, 0x40), &calls);
        assert_eq!(read(&codes).len(), 1 + DEEPEST);
    }
}
