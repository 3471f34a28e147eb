//! Unwind info: that of the codes compared with that of the image, address by address.

use std::collections::BTreeMap;

use crate::common::cfi::{look_up, rules_of_codes, rules_of_image};
use crate::common::frames::{frame, section, size, style};
use crate::common::{OnDisk, bytes, targets, write, write_placed, x86_64};
use code_image::{Target, VisibleCode};
use jit_code::{Code, Unwind};
use proptest::prelude::*;

/// CPython 3.13's `-X perf_jit`, a trampoline of 15 bytes.
pub const CPYTHON: &str = "1400000000000000 017a520001781001 1b0c070890010000
                       140000001c000000 d0ffffff0f000000 00480e10460e0800";

/// Node 18's `--perf-prof-unwinding-info`, `*fib` of 364 bytes.
const V8: &str = "1800000000000000 037a4c5200017810 02ff1b0c07089001 00000000
                  20000000 20000000 6cfeffff 6a010000 00500e108602430d 0602ef0d07410e08
                  520c061000000000";

fn code<'a>(start: u64, size: u64, eh_frame: &'a [u8]) -> VisibleCode<'a> {
    VisibleCode::whole(Code::at(start, size).named("f").unwind(Unwind::EhFrame(eh_frame)))
}

/// The rules in an image, by address in the process.
fn rules_in_process(target: Target, image: &OnDisk) -> BTreeMap<u64, String> {
    let bias = image.finished.text.address - image.finished.text.file_offset;
    let rules = rules_of_image(target, &image.path());
    rules.into_iter().map(|(address, rule)| (address + bias, rule)).collect()
}

#[test]
fn cpython() {
    let eh_frame = bytes(CPYTHON);
    let codes = [0x7f89_3b38_7000, 0x7f89_3b38_7010, 0x7f89_3b38_7110]
        .map(|start| code(start, 15, &eh_frame));
    let image = write(x86_64(), 0x7f89_3b38_7000..0x7f89_3b38_711f, &codes);
    assert_eq!(rules_in_process(x86_64(), &image), rules_of_codes(x86_64(), &codes));
    assert_eq!((image.finished.unwind.fdes, image.finished.unwind.cies), (3, 1));
}

/// V8 states that its frames have no language data (`L` with the encoding "omitted"), which the oracle does not read;
/// without this statement both must find the same.
#[test]
fn v8() {
    let start = 0x7f99_e74e_8e00;
    let original = bytes(V8);
    let readable = bytes(&V8.replace("7a4c52", "7a5252"));
    let image = write(x86_64(), start..start + 364, &[code(start, 364, &original)]);
    assert_eq!((image.finished.unwind.fdes, image.finished.unwind.cies), (1, 1));
    let got = rules_in_process(x86_64(), &image);
    assert_eq!(got, rules_of_codes(x86_64(), &[code(start, 364, &readable)]));
    assert_eq!(got.len(), 0x16a);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_rule_at_every_address(
        codes in prop::collection::vec(
            (style(), prop::collection::vec(frame(), 0..4), 0..50_u64, 0..50_u64, 0..40_u64), 1..6),
        target in 0..6_usize,
        far in any::<bool>(),
    ) {
        let target = targets()[target];
        let mut start = 0x1234_5000;
        let mut sections = Vec::new();
        for (style, frames, ..) in &codes {
            sections.push((start, section(target, style, frames, start)));
            start = (start + size(style, frames)).next_multiple_of(4);
        }
        let codes: Vec<VisibleCode<'_>> = codes.iter().zip(&sections)
            .map(|((style, frames, front, back, _), (start, section))| {
                let end = start + size(style, frames);
                let visible = (start + front).min(end)..end.saturating_sub(*back).max(start + front);
                code(*start, end - start, section).visible(visible.start..visible.end.min(end))
            })
            .collect();
        let expected = rules_of_codes(target, &codes);
        let span = 0x1234_5000..start;
        let place = |_| far.then_some(0x1240_0000);
        let image = write_placed(target, span, &codes, place);
        let unwind = image.finished.unwind;
        prop_assert_eq!((unwind.malformed, unwind.unsupported, unwind.overlapping), (0, 0, 0));
        let Some(mapping) = image.finished.eh_frame else {
            prop_assert!(expected.is_empty());
            return Ok(());
        };
        if far {
            prop_assert_eq!(mapping.address, 0x1240_0000);
        }
        let bias = image.finished.text.address - image.finished.text.file_offset;
        prop_assert_eq!(mapping.address - mapping.file_offset, bias);
        prop_assert_eq!(rules_in_process(target, &image), expected);
    }

    #[test]
    fn damaged_sections_do_no_harm(
        style in style(),
        frames in prop::collection::vec(frame(), 0..4),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
        target in 0..6_usize,
    ) {
        let target = targets()[target];
        let start = 0x1234_5000;
        let mut section = section(target, &style, &frames, start);
        section.truncate(cut.index(section.len()) + 1);
        for (at, byte) in damage {
            let at = at.index(section.len());
            section[at] = byte;
        }
        // a valid neighbour is not lost
        let sound = bytes(CPYTHON);
        let sound = if target == x86_64() { sound } else { Vec::new() };
        let end = start + size(&style, &frames);
        let next = end.next_multiple_of(16);
        let codes = [code(start, end - start, &section), code(next, 15, &sound)];
        let image = write(target, start..next + 15, &codes);
        if target == x86_64() {
            look_up(target, &image.path(), (next..next + 15).map(|at| at - start + 0x1000));
        }
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(section in prop::collection::vec(any::<u8>(), 0..200)) {
        write(x86_64(), 0..1000, &[code(0, 1000, &section)]);
    }
}

/// The causes for which FDEs of a section were left out: malformed, unsupported, outside, overlapping, out of reach.
fn dropped(codes: &[VisibleCode<'_>]) -> [u64; 5] {
    let span = codes[0].visible.start..codes.last().unwrap().visible.end;
    let unwind = write(x86_64(), span, codes).finished.unwind;
    [unwind.malformed, unwind.unsupported, unwind.outside, unwind.overlapping, unwind.out_of_reach]
}

#[test]
fn what_is_left_out_is_counted_by_cause() {
    let sound = bytes(CPYTHON);
    let with = |at: usize, byte: u8| {
        let mut section = sound.clone();
        section[at] = byte;
        section
    };
    let one = |section: &[u8]| dropped(&[code(0x1000, 15, section)]);
    assert_eq!(one(&sound), [0; 5]);
    assert_eq!(one(&sound[..sound.len() - 1]), [1, 0, 0, 0, 0], "cut off");
    assert_eq!(one(&with(8, 9)), [0, 1, 0, 0, 0], "version");
    assert_eq!(one(&with(10, b'X')), [0, 1, 0, 0, 0], "augmentation");
    assert_eq!(one(&with(16, 0x5b)), [0, 1, 0, 0, 0], "encoding");
    assert_eq!(one(&with(41, 0x3f)), [0, 1, 0, 0, 0], "instruction");
    assert_eq!(one(&with(28, 0x1b)), [1, 0, 0, 0, 0], "pointer to the CIE");
    assert_eq!(one(&with(36, 16)), [0; 5], "longer than the code: clipped");
    let longer_and_elsewhere = [&with(33, 0xfe)[..36], &[16], &sound[37..]].concat();
    assert_eq!(one(&longer_and_elsewhere), [0, 0, 1, 0, 0], "of another code");
    let twice = [&sound[..], &bytes("1400000034000000 b8ffffff0f000000 00480e10460e0800")].concat();
    assert_eq!(one(&twice), [0, 0, 0, 1, 0], "the same again");

    // text over more than 2 GiB: the tables behind it reach only what is near
    let far = [code(0x1000, 15, &sound), code(0x1_0000_0000, 15, &sound)];
    assert_eq!(dropped(&far), [0, 0, 0, 0, 1]);
}

#[test]
fn tables_lie_where_they_are_placed_or_nowhere() {
    let sound = bytes(CPYTHON);
    let attempt = |address: u64| {
        let mut file = std::io::Cursor::new(Vec::new());
        let span = 0x40_0000..0x40_1234;
        let mut image = code_image::ImageWriter::new(&mut file, x86_64(), span).unwrap();
        image.add(&code(0x40_0010, 15, &sound)).unwrap();
        image.finish(|size| {
            assert_eq!(size, 0x1000);
            Some(address)
        })
    };
    for refused in [0x40_1000, 0x40_2001, 0x3f_0000, 0, 0x9000_0000] {
        let error = attempt(refused).unwrap_err().to_string();
        let place = format!("cannot lie at {refused:#x}, with text at 0x400000..0x401234");
        assert_eq!(error, format!("unwind tables {place}"));
    }
    let (address, file_offset) = (0x7000_0000, 0x7000_0000 - 0x40_0000 + 0x1000);
    let expected = code_image::Mapping { address, len: 0x1000, file_offset };
    assert_eq!(attempt(address).unwrap().eh_frame, Some(expected));
}

/// A section that was encoded for another position: behind its header, or far from the code.
#[test]
fn misplaced_sections_are_moved_to_their_code() {
    for (size, right) in [(15_u64, -0x30_i32), (60, -0x60)] {
        let section = |distance: i32| {
            let mut section = bytes(CPYTHON);
            section[32..36].copy_from_slice(&distance.to_le_bytes());
            section[36] = size as u8;
            section
        };
        let sound = section(right);
        let expected = rules_of_codes(x86_64(), &[code(0x1000, size, &sound)]);
        assert!(expected.keys().copied().eq(0x1000..0x1000 + size));
        for displaced in [-20, 20, -0x1000, 0x7000_0000] {
            let section = section(right + displaced);
            let image = write(x86_64(), 0x1000..0x1000 + size, &[code(0x1000, size, &section)]);
            if displaced == 20 && size > 20 {
                // it begins within the code: no reason to doubt it
                assert_eq!(rules_of_image(x86_64(), &image.path()).len() as u64, size - 20);
            } else {
                assert_eq!(rules_of_image(x86_64(), &image.path()), expected, "{displaced:#x}");
            }
            assert_eq!(image.finished.unwind.outside, 0);
        }
    }
}
