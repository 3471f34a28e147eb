//! Symfiles: the input is read back, from joined and single files, and removed codes are gone.
#![allow(clippy::single_range_in_vec_init)] // a list of one range is what is meant

use std::collections::BTreeMap;
use std::ops::Range;

use crate::common::image::{dwarf, section};
use crate::common::{EM_386, run, targets, x86_64};
use code_image::{Endian, LARGEST_GAP, Symfile, TAG_AT, Target, VisibleCode};
use gimli::{BaseAddresses, UnwindSection};
use jit_code::{Code, Inlined, Line, Unwind};
use object::{Object, ObjectSection, ObjectSymbol};
use proptest::prelude::*;
use test_privilege::{Privilege, have};

const TAG: [u8; 7] = *b"\x01tag\0\xff\x07";

/// CFA = rsp + 8 and, one byte on, rsp + 16; relative to a position `size` rounded up to 8 behind the code.
fn frames(size: u64) -> Vec<u8> {
    let mut frames = vec![
        0x14, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0,
        0, 0x14, 0, 0, 0, 0x1c, 0, 0, 0,
    ];
    let back = -(size.next_multiple_of(8) as i32) - 32;
    frames.extend(back.to_le_bytes());
    frames.extend((size as u32).to_le_bytes());
    frames.extend([0, 0x41, 0x0e, 0x10, 0x86, 2, 0, 0]);
    frames
}

#[derive(Debug, Clone)]
struct Made {
    start: u64,
    size: u64,
    name: String,
    /// Offset and line.
    lines: Vec<(u32, u32)>,
    calls: Vec<(u32, u32)>,
    has_frames: bool,
}

impl Made {
    fn file(&self, target: Target, key: u64) -> Symfile {
        let lines: Vec<_> = self
            .lines
            .iter()
            .map(|&(offset, line)| {
                let file = if line % 3 == 0 { "SETTING::b.raku" } else { "/src/a.js" };
                Line::new(offset, file, line).column(line % 7)
            })
            .collect();
        let ranges: Vec<_> = self.calls.iter().map(|&(from, to)| from..to).collect();
        let half = ranges.len() / 2;
        let call = |name, ranges| Inlined::new(name, ranges).called_from("/src/a.js", 7);
        let calls = [call("größe", &ranges[..]), call("inner", &ranges[..half]).within(0)];
        let frames = frames(self.size);
        let mut code = Code::at(self.start, self.size).named(&self.name).lines(&lines);
        if !ranges.is_empty() {
            code = code.inlined(&calls);
        }
        if self.has_frames {
            code = code.unwind(Unwind::EhFrame(&frames));
        }
        Symfile::new(target, TAG, key, &VisibleCode::whole(code)).expect("a code that can be shown")
    }
}

/// Name and size of symbols, and, for each address of interest, the frames there, the lines and the CFA.
type Shown = (BTreeMap<u64, (String, u64)>, BTreeMap<u64, Vec<String>>, BTreeMap<u64, u64>);

fn shown(file: &[u8]) -> Shown {
    let object = object::File::parse(file).expect("an object file");
    let symbols = object
        .symbols()
        .filter(|symbol| symbol.is_definition())
        .map(|symbol| (symbol.address(), (symbol.name().unwrap().to_owned(), symbol.size())))
        .collect();
    let context = addr2line::Context::from_dwarf(dwarf(&object)).expect("debug info");
    let mut frames_at = BTreeMap::new();
    for text in object.sections().filter(is_text) {
        for address in text.address()..text.address() + text.size() {
            let mut frames = Vec::new();
            let mut found = context.find_frames(address).skip_all_loads().unwrap();
            while let Some(frame) = found.next().unwrap() {
                let name = frame.function.map(|name| name.raw_name().unwrap().into_owned());
                let place = frame.location.map(|place| (place.file.map(str::to_owned), place.line));
                frames.push(format!("{name:?} {place:?}"));
            }
            // The section may have gaps between codes.
            if !frames.is_empty() {
                frames_at.insert(address, frames);
            }
        }
    }
    let mut eh_frame = gimli::EhFrame::from(section(&object, gimli::SectionId::EhFrame));
    eh_frame.set_address_size(if object.is_64() { 8 } else { 4 });
    let bases = BaseAddresses::default();
    let mut entries = eh_frame.entries(&bases);
    let mut cfi = BTreeMap::new();
    while let Some(entry) = entries.next().expect("entries") {
        if let gimli::CieOrFde::Fde(partial) = entry {
            let fde = partial.parse(gimli::EhFrame::cie_from_offset).expect("an FDE");
            if fde.len() > 0 {
                cfi.insert(fde.initial_address(), fde.len());
            }
        }
    }
    (symbols, frames_at, cfi)
}

fn is_text(section: &object::Section<'_, '_>) -> bool {
    section.name().is_ok_and(|name| name.starts_with(".text"))
}

/// What the tests take for free space between codes.
fn is_free(gap: Range<u64>) -> bool {
    !gap.start.is_multiple_of(3)
}

/// Checks that each symbol lies in its section, that sections have distinct names and do not overlap, and that they cover no gap
/// that is large or not free.
fn check_sections(file: &[u8]) {
    let object = object::File::parse(file).expect("an object file");
    let ranges: BTreeMap<String, Range<u64>> = object
        .sections()
        .filter(is_text)
        .map(|text| (text.name().unwrap().to_owned(), text.address()..text.address() + text.size()))
        .collect();
    assert_eq!(ranges.len(), object.sections().filter(is_text).count(), "{ranges:?}");
    assert!(ranges.contains_key(".text"), "{ranges:?}");
    let mut sorted: Vec<&Range<u64>> = ranges.values().collect();
    sorted.sort_by_key(|range| range.start);
    assert!(sorted.is_sorted_by(|one, next| one.end <= next.start), "{ranges:?}");
    let mut codes = BTreeMap::<u64, (u64, usize)>::new();
    for symbol in object.symbols().filter(|symbol| symbol.is_definition()) {
        let index = symbol.section_index().expect("a section");
        let text = object.section_by_index(index).expect("its section");
        let (start, end) = (symbol.address(), symbol.address() + symbol.size());
        assert!(text.address() <= start && end <= text.address() + text.size(), "{ranges:?}");
        codes.insert(start, (end, index.0));
    }
    for ((_, (end, section)), (start, (_, next))) in codes.iter().zip(codes.iter().skip(1)) {
        let gap = *end..*start;
        let is_one = start - end <= LARGEST_GAP && (gap.is_empty() || is_free(gap.clone()));
        assert_eq!(section == next, is_one, "{gap:x?}");
    }
}

fn made() -> impl Strategy<Value = Vec<Made>> {
    let one = (
        prop_oneof![Just(0), 0..40_u64, 60..70_u64],
        1..60_u64,
        "[a-z]{0,3}",
        prop::collection::vec((0..70_u32, 0..9_u32), 0..6),
        prop::collection::vec((0..60_u32, 0..60_u32), 0..4),
        any::<bool>(),
    );
    prop::collection::vec(one, 1..14).prop_map(|made| {
        let mut end = 0x40_0000;
        let one = |(gap, size, name, lines, calls, has_frames)| {
            let start = end + gap;
            end = start + size;
            Made { start, size, name, lines, calls, has_frames }
        };
        made.into_iter().map(one).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn joined_files_show_what_each_shows_and_nothing_taken_out(
        mut made in made(),
        order in any::<u64>(),
        groups in 1..4_usize,
        gone in prop::collection::vec(any::<(u8, bool)>(), 0..10),
        verify in prop::bool::weighted(0.1),
        target in 0..6_usize,
    ) {
        let target = targets()[target];
        // The tables of this test have one byte order.
        made.iter_mut().for_each(|made| made.has_frames &= target.endian == Endian::Little);
        let mut singles: Vec<_> =
            made.iter().enumerate().map(|(key, made)| made.file(target, key as u64)).collect();
        let mut expected = Shown::default();
        let mut each = Vec::new();
        for (single, made) in singles.iter().zip(&made) {
            let (symbols, frames, cfi) = shown(single.bytes());
            let name = if made.name.is_empty() { "<unnamed>" } else { &made.name };
            prop_assert_eq!(&symbols[&made.start], &(name.to_owned(), made.size));
            prop_assert_eq!(cfi.get(&made.start), made.has_frames.then_some(&made.size));
            each.push((symbols.clone(), frames.clone(), cfi.clone()));
            expected.0.extend(symbols);
            expected.1.extend(frames);
            expected.2.extend(cfi);
        }
        // In a different order, in groups, and the groups once more.
        let mut seed = order;
        for at in (1..singles.len()).rev() {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            singles.swap(at, (seed >> 33) as usize % (at + 1));
        }
        let mut alive: Vec<bool> = vec![true; made.len()];
        let take = |file: &mut Symfile, which: u8, alive: &mut Vec<bool>| {
            let key = usize::from(which) % made.len();
            let taken = file.take_out(made[key].start, key as u64);
            if taken {
                assert!(std::mem::replace(&mut alive[key], false));
            }
        };
        let mut files: Vec<Symfile> = singles
            .chunks(made.len().div_ceil(groups))
            .map(|group| {
                let group: Vec<&Symfile> = group.iter().collect();
                Symfile::joined(&group, &is_free).unwrap().unwrap()
            })
            .collect();
        for &(which, _) in gone.iter().filter(|(_, early)| *early) {
            for file in &mut files {
                take(file, which, &mut alive);
            }
        }
        let joined = Symfile::joined(&files.iter().collect::<Vec<_>>(), &is_free).unwrap();
        let Some(mut joined) = joined else {
            prop_assert!(alive.iter().all(|alive| !alive));
            return Ok(());
        };
        check_sections(joined.bytes());
        for &(which, _) in gone.iter().filter(|(_, early)| !*early) {
            take(&mut joined, which, &mut alive);
        }
        for (key, _) in alive.iter().enumerate().filter(|(_, alive)| !**alive) {
            let (symbols, frames, cfi) = &each[key];
            expected.0.retain(|address, _| !symbols.contains_key(address));
            expected.1.retain(|address, _| !frames.contains_key(address));
            expected.2.retain(|address, _| !cfi.contains_key(address));
        }
        prop_assert_eq!(joined.live(), alive.iter().filter(|alive| **alive).count());
        prop_assert_eq!(joined.bytes().get(TAG_AT..TAG_AT + 7), Some(&TAG[..]));
        prop_assert_eq!(shown(joined.bytes()), expected);
        if verify && have(&[Privilege::Dwarfdump]) {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("symbols");
            std::fs::write(&path, joined.bytes()).unwrap();
            let said = run("readelf", &["-W", "-a"], &path);
            prop_assert!(!said.contains("arning") && !said.contains("rror:"), "{}", said);
            if alive.iter().all(|alive| *alive) {
                run("llvm-dwarfdump", &["--verify"], &path);
            }
        }
    }
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let code = |start, size, visible| VisibleCode::whole(Code::at(start, size)).visible(visible);
    for wrong in [
        code(0, 8, 0..8),
        code(16, 0, 16..16),
        code(16, 8, 15..20),
        code(16, 8, 16..25),
        code(u64::MAX, 8, u64::MAX..u64::MAX),
    ] {
        assert!(Symfile::new(x86_64(), TAG, 1, &wrong).is_err(), "{wrong:?}");
    }
    let file = Symfile::new(x86_64(), TAG, 1, &code(16, 8, 16..24)).unwrap();
    assert_eq!(file.span(), 16..24);
}

#[test]
fn a_code_is_taken_out_by_its_key_alone() {
    let target = Target::new(EM_386, Endian::Little);
    let made = Made {
        start: 0x1000,
        size: 8,
        name: "a".into(),
        lines: vec![(0, 1)],
        calls: vec![(0, 4), (6, 7)],
        has_frames: true,
    };
    let mut file = made.file(target, 7);
    assert!(!file.take_out(0x1000, 8));
    assert!(!file.take_out(0x1001, 7));
    assert!(file.take_out(0x1000, 7));
    assert!(!file.take_out(0x1000, 7));
    assert_eq!(shown(file.bytes()), Shown::default());
    assert!(Symfile::joined(&[&file], &is_free).unwrap().is_none());
}
