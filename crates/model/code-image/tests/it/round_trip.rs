//! Images of generated codes are read back and compared with the input, address by address.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::common::image::{Contents, Place, read, read_object};
use crate::common::{targets, write, write_object, x86_64};
use code_image::{ObjectFormat, VisibleCode};
use jit_code::{Code, Line};
use object::Object;
use proptest::prelude::*;

/// A code with its parts owned; addresses count from the end of the code before.
#[derive(Debug, Clone)]
struct Made {
    gap: u64,
    size: u64,
    hidden_front: u64,
    hidden_back: u64,
    name: Vec<u8>,
    bytes: Vec<u8>,
    /// Offset from 8 bytes before the code, file, line, column.
    lines: Vec<(u32, usize, u32, u32)>,
}

const FILES: [&[u8]; 6] =
    [b"", b"/src/main.js", b"/src/lib/a.js", b"a.js", b"/top.js", b"node:internal/x"];

fn made() -> impl Strategy<Value = Made> {
    let line = (0..60_u32, 0..FILES.len(), prop_oneof![0..4_u32, any::<u32>()], 0..300_u32);
    (
        prop_oneof![Just(0), 0..100_u64, Just(0x1_2345)],
        1..40_u64,
        0..3_u64,
        0..3_u64,
        prop::collection::vec(any::<u8>(), 0..8),
        prop::collection::vec(any::<u8>(), 0..40),
        prop::collection::vec(line, 0..6),
    )
        .prop_map(|(gap, size, hidden_front, hidden_back, name, bytes, lines)| Made {
            gap,
            size,
            hidden_front,
            hidden_back,
            name,
            bytes,
            lines,
        })
}

/// The characters of a name, and the bytes that are no UTF-8.
fn characters(name: &[u8]) -> impl Iterator<Item = Result<char, u8>> {
    name.utf8_chunks().flat_map(|chunk| {
        chunk.valid().chars().map(Ok).chain(chunk.invalid().iter().map(|byte| Err(*byte)))
    })
}

/// The form of a name in symbols.
fn shown(name: &[u8]) -> Vec<u8> {
    if name.is_empty() {
        return b"<unnamed>".to_vec();
    }
    let mut shown = Vec::new();
    for character in characters(name) {
        match character {
            Ok(c) if printable::is_printable(c) => shown.extend(c.to_string().bytes()),
            Ok(c @ ..'\u{80}') => shown.extend(format!("\\x{:02x}", u32::from(c)).bytes()),
            Ok(c @ ..'\u{10000}') => shown.extend(format!("\\u{:04x}", u32::from(c)).bytes()),
            Ok(c) => shown.extend(format!("\\U{:08x}", u32::from(c)).bytes()),
            // A byte that would be a control character in a single-byte encoding.
            Err(byte @ ..0xa0) => shown.extend(format!("\\x{byte:02x}").bytes()),
            Err(byte) => shown.push(byte),
        }
    }
    shown
}

/// The form of a name in debug info: invalid UTF-8 byte by byte, other characters as C spells them.
fn ascii(name: &[u8]) -> Vec<u8> {
    let spelled = characters(name).map(|character| match character {
        Ok(c @ ..'\u{80}') => c.to_string(),
        Ok(c @ ..'\u{10000}') => format!("\\u{:04x}", u32::from(c)),
        Ok(c) => format!("\\U{:08x}", u32::from(c)),
        Err(byte) => format!("\\x{byte:02x}"),
    });
    spelled.collect::<String>().into_bytes()
}

/// The place of one address, by the definition of a line entry.
fn place(code: &VisibleCode<'_>, address: u64) -> Option<Place> {
    let at = |line: &Line<'_>| code.code.address + u64::from(line.offset);
    let in_force = code.code.lines.iter().filter(|line| at(line) <= address);
    // of several with the same address `max_by_key` takes the last
    let line = in_force.max_by_key(|line| line.offset)?;
    let known = line.line != 0 && !line.file.is_empty();
    known.then(|| (line.file.to_vec(), line.line.into(), line.column.into()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_symbol_every_line_and_every_byte(
        made in prop::collection::vec(made(), 1..20),
        target in 0..6_usize,
        origin in prop_oneof![Just(0), Just(0x40_0000), 0..0x1000_0000_u64],
    ) {
        let lines: Vec<Vec<Line<'_>>> = made.iter().map(|made| {
            made.lines.iter().map(|&(offset, file, line, column)| {
                // What is before the code wraps, and is far behind it.
                Line::new_bytes(offset.wrapping_sub(8), FILES[file], line).column(column)
            }).collect()
        }).collect();
        let mut end = origin;
        let codes: Vec<VisibleCode<'_>> = made.iter().zip(&lines).map(|(made, lines)| {
            let start = end + made.gap;
            end = start + made.size;
            let visible = start + made.hidden_front..end - made.hidden_back.min(made.size);
            let mut code = Code::at(start, made.size).named_bytes(&made.name).lines(lines);
            code.bytes = Some(&made.bytes);
            VisibleCode::whole(code).visible(visible)
        }).collect();

        let mut expected = Contents::default();
        let base = origin & !0xfff;
        expected.text = vec![0; (end - base) as usize];
        let mut any_bytes = false;
        for code in codes.iter().filter(|code| !code.visible.is_empty()) {
            let start = code.visible.start - base + 0x1000;
            let size = code.visible.end - code.visible.start;
            expected.symbols.push((start, size, shown(code.code.name)));
            let places: BTreeMap<u64, Place> = code.visible.clone()
                .filter_map(|at| Some((at - base + 0x1000, place(code, at)?))).collect();
            let line = places.first_key_value().map_or(0, |(_, (_, line, _))| *line);
            expected.functions.push((ascii(&shown(code.code.name)), start, start + size, line));
            expected.lines.extend(places);
            for at in code.visible.clone() {
                let bytes = code.code.bytes.unwrap();
                if let Some(&byte) = bytes.get((at - code.code.address) as usize) {
                    expected.text[(at - base) as usize] = byte;
                    any_bytes = true;
                }
            }
        }
        if !any_bytes {
            expected.text.clear(); // NOBITS
        }
        if expected.lines.is_empty() {
            expected.functions.clear(); // nothing is said of functions alone
        }
        expected.units = if expected.functions.is_empty() { vec![] } else { vec![expected.functions.len()] };

        let image = write(targets()[target], origin..end, &codes);
        prop_assert_eq!(&read(&image.path()), &expected);
        let again = write(targets()[target], origin..end, &codes);
        prop_assert_eq!(fs::read(image.path()).unwrap(), fs::read(again.path()).unwrap());
        prop_assert_eq!(image.finished.file_size, fs::metadata(image.path()).unwrap().len());

        // The same in every format that has the machine.
        let formats = [ObjectFormat::Elf, ObjectFormat::Pe, ObjectFormat::MachO];
        let callable: BTreeSet<Vec<u8>> = codes.iter().filter(|code| {
            let Code { address, size, bytes, .. } = code.code;
            code.visible == (address..address + size) && bytes.unwrap().len() as u64 >= size
        }).map(|code| shown(code.code.name)).collect();
        for format in formats.into_iter().take(if target < 2 { 3 } else { 1 }) {
            let object = write_object(format, targets()[target], origin..end, &codes);
            let mut expected = expected.clone();
            if format != ObjectFormat::Elf {
                expected.symbols.iter_mut().for_each(|(_, size, _)| *size = 0);
            }
            if format == ObjectFormat::MachO && !any_bytes {
                // Zeros, because the format cannot mark bytes as unknown.
                expected.text = vec![0; (end - base) as usize];
            }
            prop_assert_eq!(read_object(&object.path()), expected, "{:?}", format);
            prop_assert_eq!(object.finished.exported, callable.len() as u64);
            let data = fs::read(object.path()).unwrap();
            prop_assert_eq!(object.finished.file_size, data.len() as u64);
            let file = object::File::parse(&*data).unwrap();
            let mut exports = BTreeSet::new();
            for export in file.exports().unwrap() {
                let export = export.unwrap();
                let name = export.name();
                let name = name.name().expect("a name");
                exports.insert(name[usize::from(format == ObjectFormat::MachO)..].to_vec());
            }
            prop_assert_eq!(&exports, &callable);
        }
    }
}

#[test]
fn units_hold_at_most_512_functions() {
    let lines: Vec<[Line<'_>; 1]> =
        (0..1300).map(|n| [Line::new(0, "/a.js", n + 1).column(1)]).collect();
    let codes: Vec<VisibleCode<'_>> = (0..)
        .zip(&lines)
        .map(|(n, lines)| Code::at(0x10_0000 + n * 16, 16).named("same").lines(lines))
        .map(VisibleCode::whole)
        .collect();
    let image = write(x86_64(), 0x10_0000..0x10_0000 + 1300 * 16, &codes);
    let contents = read(&image.path());
    assert_eq!(contents.units, [512, 512, 276]);
    assert_eq!(contents.symbols.len(), 1300);
    assert_eq!(contents.lines.len(), 1300 * 16);
}

#[test]
fn one_function_of_many_rows_ends_a_unit() {
    let lines: Vec<Line<'_>> = (0..66_000).map(|n| Line::new(n, "/a.js", n + 1)).collect();
    let code =
        |start: u64, size: u64| VisibleCode::whole(Code::at(start, size).named("f").lines(&lines));
    let codes = [code(0x10_0000, 66_000), code(0x10_0000 + 66_000, 4_000)];
    let image = write(x86_64(), 0x10_0000..0x10_0000 + 70_000, &codes);
    assert_eq!(read(&image.path()).units, [1, 1]);
}
