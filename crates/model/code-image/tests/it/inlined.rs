//! Inlined calls: arbitrary input is read back unchanged.
#![allow(clippy::single_range_in_vec_init)] // a list of one range is what is meant

use std::ops::Range;

use crate::common::inlining::{Counts, check_nesting, expected, read};
use crate::common::{run, targets, write, x86_64};
use code_image::VisibleCode;
use jit_code::{Code, Inlined, Line};
use proptest::prelude::*;
use test_privilege::{Privilege, have};

const NAMES: [&str; 4] = ["inner", "outer", "a::b<c>", "main"];
const FILES: [&str; 3] = ["", "/src/lib/a.js", "a.js"];

/// A call with its parts owned: parent, name, place, ranges as start and length, counted from 8 bytes
/// before the code, and clipped to its start.
#[derive(Debug, Clone)]
struct MadeCall {
    parent: Option<u32>,
    name: usize,
    file: usize,
    line: u32,
    column: u32,
    ranges: Vec<(u32, u32)>,
}

fn made_call() -> impl Strategy<Value = MadeCall> {
    let any_parent = prop_oneof![Just(None), (0..12_u32).prop_map(Some)];
    let line = prop_oneof![0..4_u32, any::<u32>()];
    let ranges = prop::collection::vec((0..60_u32, 0..50_u32), 0..4);
    (any_parent, 0..NAMES.len(), 0..FILES.len(), line, 0..300_u32, ranges).prop_map(
        |(parent, name, file, line, column, ranges)| {
            let ranges = ranges.into_iter().map(|(start, len)| (start, start + len)).collect();
            MadeCall { parent, name, file, line, column, ranges }
        },
    )
}

/// Gap before the code, size, hidden at its front and at its back, calls.
type Made = (u64, u64, u64, u64, Vec<MadeCall>);

fn made() -> impl Strategy<Value = Made> {
    let calls = prop::collection::vec(made_call(), 0..12);
    (0..100_u64, 1..50_u64, 0..4_u64, 0..4_u64, calls)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_address_lies_in_the_calls_that_hold_it(
        made in prop::collection::vec(made(), 1..6),
        has_lines in any::<bool>(),
        verify in prop::bool::weighted(0.2),
        target in 0..6_usize,
    ) {
        const ORIGIN: u64 = 0x1_0000;
        let mut end = ORIGIN;
        let starts: Vec<u64> = made.iter().map(|(gap, size, ..)| {
            end += gap + size;
            end - size
        }).collect();
        let ranges: Vec<Vec<Vec<Range<u32>>>> = made.iter().map(|made| {
            let at = |&(from, to): &(u32, u32)| from.saturating_sub(8)..to.saturating_sub(8);
            made.4.iter().map(|call| call.ranges.iter().map(at).collect()).collect()
        }).collect();
        let calls: Vec<Vec<Inlined<'_>>> = made.iter().zip(&ranges).map(|(made, ranges)| {
            made.4.iter().zip(ranges).map(|(call, ranges)| {
                Inlined::new(NAMES[call.name], ranges)
                    .called_from(FILES[call.file], call.line)
                    .column(call.column)
                    .within(call.parent)
            }).collect()
        }).collect();
        let lines = [Line::new(0, "/src/main.js", u32::from(has_lines)).column(3)];
        let codes: Vec<VisibleCode<'_>> = (0..made.len()).map(|number| {
            let (_, size, front, back, _) = made[number];
            let start = starts[number];
            let visible = start + front..(start + size).saturating_sub(back);
            let code = Code::at(start, size).named("code").lines(&lines).inlined(&calls[number]);
            VisibleCode::whole(code).visible(visible)
        }).collect();

        let image = write(targets()[target], ORIGIN..end, &codes);
        let shown = |address: u64| address - ORIGIN + 0x1000;
        let visible: Vec<_> = codes.iter().flat_map(|code| {
            code.visible.clone().map(move |address| (code, address))
        }).collect();
        let expected: Vec<_> = visible.iter().map(|(code, at)| expected(code, *at)).collect();
        let nothing_to_say = !has_lines && expected.iter().all(|callers| callers.len() == 1);
        let found = read(&image.path(), visible.iter().map(|(_, at)| shown(*at)));
        if nothing_to_say {
            prop_assert!(found.iter().all(Vec::is_empty));
        } else {
            prop_assert_eq!(found, expected);
        }
        check_nesting(&image.path());
        if verify && have(&[Privilege::Dwarfdump]) {
            let text = run("llvm-dwarfdump", &["--verify"], &image.path());
            prop_assert!(text.ends_with("No errors.\n"), "{}", text);
        }
    }
}

const START: u64 = 0x10_0000;

/// The image of one code of `size` bytes with `inlined` in it.
fn image(size: u64, inlined: &[Inlined<'_>]) -> crate::common::OnDisk {
    let code = VisibleCode::whole(Code::at(START, size).named("code").inlined(inlined));
    write(x86_64(), START..START + size, &[code])
}

#[test]
fn calls_deeper_than_127_are_left_out() {
    let whole = [0..8];
    let calls: Vec<Inlined<'_>> = (0..100_000_u32)
        .map(|number| {
            Inlined::new("again", &whole)
                .called_from("a.js", number + 1)
                .within(number.checked_sub(1))
        })
        .collect();
    let image = image(8, &calls);
    let counts = check_nesting(&image.path());
    assert_eq!(counts, Counts { calls: 127, functions: 1, deepest: 127 });
    let found = read(&image.path(), [0x1007].into_iter());
    assert_eq!(found[0].len(), 128);
    assert_eq!(found[0][0], ("again".to_owned(), Some(("a.js".to_owned(), 127, 0))));
}

#[test]
fn ranges_that_cut_one_another_do_not_multiply() {
    // a call with many ranges, containing calls that extend across all of them
    let many: Vec<Range<u32>> = (0..20_000).map(|n| 10 * n..10 * n + 5).rev().collect();
    let whole = [0..200_000];
    let calls: Vec<Inlined<'_>> = (0..100_u32)
        .map(|number| {
            let ranges = if number == 0 { &many[..] } else { &whole };
            Inlined::new("f", ranges).within(number.checked_sub(1))
        })
        .collect();
    let image = image(200_000, &calls);
    let counts = check_nesting(&image.path());
    assert_eq!(counts, Counts { calls: 5, functions: 1, deepest: 5 });
    assert!(image.finished.file_size < 0x1000 + 5 * 20_000 * 16, "{}", image.finished.file_size);
}

#[test]
fn many_calls_beside_one_another_take_what_is_left() {
    // each covers what all before it cover and one byte more, and only that byte is left for it
    let ranges: Vec<[Range<u32>; 1]> = (0..100_000).map(|number| [0..number + 1]).collect();
    let calls: Vec<Inlined<'_>> = ranges.iter().map(|ranges| Inlined::new("f", ranges)).collect();
    let image = image(100_000, &calls);
    assert_eq!(check_nesting(&image.path()), Counts { calls: 100_000, functions: 1, deepest: 1 });
}

#[test]
fn units_hold_about_1024_calls() {
    const NAMES: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    let ranges = [0..4, 8..9];
    let calls = (0..)
        .zip(NAMES)
        .map(|(number, name): (u32, _)| Inlined::new(name, &ranges).within(number.checked_sub(1)));
    let calls: Vec<Inlined<'_>> = calls.collect();
    let codes: Vec<VisibleCode<'_>> = (0..1000)
        .map(|number| Code::at(START + 16 * number, 16).named("code").inlined(&calls))
        .map(VisibleCode::whole)
        .collect();
    let image = write(x86_64(), START..START + 16_000, &codes);
    assert_eq!(
        crate::common::image::read(&image.path()).units,
        [[103; 9].as_slice(), &[73]].concat()
    );
    let counts = check_nesting(&image.path());
    assert_eq!(counts, Counts { calls: 10_000, functions: 100, deepest: 10 });
    let found = read(&image.path(), [0x1000, 0x1004, 0x1008 + 999 * 16].into_iter());
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [11, 1, 11]);
}
