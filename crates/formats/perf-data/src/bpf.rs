//! BPF programs: their machine code, and the lines of their sources.
//!
//! While perf records, it asks the kernel for each program that is loaded. [`feature::BPF_PROG_INFO`] has the answers (`struct bpf_prog_info` and the arrays
//! that it points to, as `struct perf_bpil` has them), and [`feature::BPF_BTF`] the names and texts that line numbers refer to. The layouts are those of
//! `tools/perf/util/{header,bpf-utils}.c` and `include/uapi/linux/{bpf,btf}.h` of Linux.

use std::collections::BTreeMap;

use crate::endian::{Cursor, Endian, until_nul};
use crate::features::{Features, feature};

/// A function of a BPF program, as the kernel compiled it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BpfFunction<'a> {
    /// The hash of its instructions, which is in the name that the kernel gives it: `bpf_prog_TAG_NAME`.
    pub tag: [u8; 8],
    /// The address of its code.
    pub address: u64,
    /// Its machine code.
    pub code: &'a [u8],
    /// Its lines, by offset. Each applies up to the next.
    pub lines: Vec<BpfLine<'a>>,
}

/// The line of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BpfLine<'a> {
    /// The offset of the instruction in the code of its function.
    pub offset: u64,
    /// The source file; empty if it is not known.
    pub file: &'a [u8],
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; 0 if it is not known.
    pub column: u32,
    /// The text of the line; empty if it is not known.
    pub text: &'a [u8],
}

/// No more functions and lines are read.
const MOST_FUNCTIONS: usize = 1 << 16;
const MOST_LINES: usize = 1 << 18;
/// Longer names and texts are cut. Without a bound, many lines could refer to one long text.
const LONGEST_TEXT: usize = 1 << 10;

impl Features {
    /// The functions of the BPF programs in the recording, as far as they can be read.
    pub fn bpf_functions(&self, endian: Endian) -> Vec<BpfFunction<'_>> {
        let texts = texts(self.get(feature::BPF_BTF).unwrap_or_default(), endian);
        let programs = self.get(feature::BPF_PROG_INFO).unwrap_or_default();
        let mut at = Cursor::new(programs, endian);
        let count = at.u32().unwrap_or(0);
        let (mut functions, mut left) = (Vec::new(), MOST_LINES);
        for _ in 0..count {
            let Some(program) = Program::read(&mut at, endian) else { break };
            let of_program = program.functions(&texts, &mut left);
            let room = MOST_FUNCTIONS.saturating_sub(functions.len());
            functions.extend(of_program.into_iter().take(room));
        }
        functions
    }
}

/// The texts of each BTF object, by its id.
fn texts(section: &[u8], endian: Endian) -> BTreeMap<u32, &[u8]> {
    let mut at = Cursor::new(section, endian);
    let count = at.u32().unwrap_or(0);
    let objects = (0..count).map_while(|_| {
        let (id, size) = at.pair()?;
        Some((id, at.bytes(size.into())?))
    });
    objects.filter_map(|(id, object)| Some((id, texts_of(object, endian)?))).collect()
}

/// The texts of a BTF object, which its header is before.
fn texts_of(object: &[u8], endian: Endian) -> Option<&[u8]> {
    const MAGIC: u16 = 0xeb9f;
    let mut at = Cursor::new(object, endian);
    if at.u16()? != MAGIC {
        return None;
    }
    // Version and flags.
    at.u16()?;
    let length = at.u32()?;
    // Where the types are.
    at.pair()?;
    let (start, size) = at.pair()?;
    let mut behind = Cursor::new(object, endian);
    behind.bytes(length.into())?;
    behind.bytes(start.into())?;
    behind.bytes(size.into())
}

/// What the kernel says of a program.
struct Program<'a> {
    endian: Endian,
    /// Which arrays are in `data`.
    arrays: u64,
    info: &'a [u8],
    data: &'a [u8],
}

/// An array in the data of a program: the number of its kind (`PERF_BPIL_*`), and the offsets in `struct bpf_prog_info` of its place, of the number of its
/// items, and the size of an item.
struct Array {
    number: u32,
    place: usize,
    count: usize,
    size: ItemSize,
}

enum ItemSize {
    Fixed(u64),
    /// At an offset in `struct bpf_prog_info`: it differs between kernels.
    Said(usize),
}

const CODE: Array = Array { number: 0, place: 24, count: 16, size: ItemSize::Fixed(1) };
const ADDRESSES: Array = Array { number: 3, place: 112, count: 104, size: ItemSize::Fixed(8) };
const LENGTHS: Array = Array { number: 4, place: 120, count: 108, size: ItemSize::Fixed(4) };
const LINES: Array = Array { number: 6, place: 152, count: 148, size: ItemSize::Said(172) };
const LINE_ADDRESSES: Array =
    Array { number: 7, place: 160, count: 168, size: ItemSize::Said(176) };
const TAGS: Array = Array { number: 8, place: 184, count: 180, size: ItemSize::Fixed(8) };
/// The program's own tag, and the number of its BTF object.
const TAG: usize = 8;
const BTF_ID: usize = 128;

impl<'a> Program<'a> {
    fn read(at: &mut Cursor<'a>, endian: Endian) -> Option<Self> {
        let (info, data) = at.pair()?;
        let arrays = at.u64()?;
        Some(Self { endian, arrays, info: at.bytes(info.into())?, data: at.bytes(data.into())? })
    }

    /// A cursor at an offset of the information, which older kernels have less of.
    fn at(&self, offset: usize) -> Cursor<'a> {
        Cursor::new(self.info.get(offset..).unwrap_or_default(), self.endian)
    }

    /// The bytes of an array, and the size of an item; `None` if it is not there as a whole.
    fn array(&self, array: &Array) -> Option<(&'a [u8], u64)> {
        let is_there = self.arrays.checked_shr(array.number).is_some_and(|bits| bits & 1 == 1);
        let count = self.at(array.count).u32().filter(|_| is_there)?;
        let size = match array.size {
            ItemSize::Fixed(size) => size,
            ItemSize::Said(offset) => self.at(offset).u32()?.into(),
        };
        let place = self.at(array.place).u64()?;
        let mut behind = Cursor::new(self.data, self.endian);
        behind.bytes(place)?;
        Some((behind.bytes(u64::from(count).checked_mul(size)?)?, size))
    }

    /// The items of an array: none if it is not there as a whole.
    fn items(&self, array: &Array) -> impl Iterator<Item = Cursor<'a>> + use<'a> {
        let (bytes, size) = self.array(array).unwrap_or_default();
        let endian = self.endian;
        let size = usize::try_from(size).unwrap_or(usize::MAX).max(1);
        bytes.chunks_exact(size).map(move |item| Cursor::new(item, endian))
    }

    /// Its functions, the code of which is one behind the other. `left` is the number of lines that may be read.
    fn functions(&self, texts: &BTreeMap<u32, &'a [u8]>, left: &mut usize) -> Vec<BpfFunction<'a>> {
        let (mut code, _) = self.array(&CODE).unwrap_or_default();
        let mut tags = self.items(&TAGS).map(|mut item| item.array());
        let own_tag = self.at(TAG).array();
        let lengths = self.items(&LENGTHS).map_while(|mut item| item.u32());
        let addresses = self.items(&ADDRESSES).map_while(|mut item| item.u64());
        let functions =
            addresses.zip(lengths).take(MOST_FUNCTIONS).map_while(|(address, length)| {
                let (own, rest) = code.split_at_checked(usize::try_from(length).ok()?)?;
                code = rest;
                let tag = tags.next().flatten().or(own_tag)?;
                Some(BpfFunction { tag, address, code: own, lines: Vec::new() })
            });
        let mut functions: Vec<BpfFunction<'a>> = functions.collect();
        functions.sort_by_key(|function| function.address);
        let texts = self.at(BTF_ID).u32().and_then(|id| texts.get(&id).copied());
        self.add_lines(&mut functions, texts.unwrap_or_default(), left);
        functions
    }

    fn add_lines(&self, functions: &mut [BpfFunction<'a>], texts: &'a [u8], left: &mut usize) {
        let text = |offset: u32| {
            let rest = usize::try_from(offset).ok().and_then(|offset| texts.get(offset..));
            let rest = rest.unwrap_or_default();
            until_nul(rest.get(..LONGEST_TEXT).unwrap_or(rest))
        };
        let lines = self.items(&LINES).zip(self.items(&LINE_ADDRESSES)).take(*left);
        for (mut line, mut address) in lines {
            let (Some(_), Some(file), Some(words), Some(place), Some(address)) =
                (line.u32(), line.u32(), line.u32(), line.u32(), address.u64())
            else {
                break;
            };
            let behind = functions.partition_point(|function| function.address <= address);
            let function = behind.checked_sub(1).and_then(|before| functions.get_mut(before));
            let Some(function) = function else { continue };
            let offset = address.saturating_sub(function.address);
            if usize::try_from(offset).is_ok_and(|offset| offset < function.code.len()) {
                let (line, column) = (place >> 10, place & 0x3ff);
                let (file, text) = (text(file), text(words));
                function.lines.push(BpfLine { offset, file, line, column, text });
                *left = left.saturating_sub(1);
            }
        }
        for function in functions {
            function.lines.sort_by_key(|line| line.offset);
        }
    }
}
