//! Parts created by threads give the same image as adding the codes.

use std::io::Cursor;
use std::thread;

use crate::cfi::CPYTHON;
use crate::common::{bytes, x86_64};
use code_image::{Error, ImageWriter, VisibleCode};
use jit_code::{Code, Inlined, Line, Unwind};

const START: u64 = 0x40_0000;
const SIZE: u64 = 32;
/// The number of codes that fill a unit of debug info.
const RUN: u64 = 512;
const COUNT: u64 = 6 * RUN;

/// Another CIE.
const OTHER: &str = "1400000000000000 017a520001781001 1b0c070890010e10
                     140000001c000000 d0ffffff0f000000 00480e10460e0800";

/// Gives `each` codes of all kinds.
fn for_each_code<E>(
    numbers: std::ops::Range<u64>,
    mut each: impl FnMut(&VisibleCode<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let frames = [CPYTHON, OTHER].map(bytes);
    for number in numbers {
        let start = START + number * SIZE;
        let name = format!("function {number}");
        let file = format!("/src/{}.js", number / 50);
        let callee = format!("callee {}", number % 70);
        let text = [number as u8; SIZE as usize];
        let lines = [0, 5, 9].map(|at| Line::new(at, &file, number as u32 + at).column(1));
        let parts = &[4..8, 12..16][..1 + (number % 2) as usize];
        let inlined = [Inlined::new(&callee, parts).called_from(&file, 7)];
        let mut code =
            Code::at(start, SIZE - 17).named(&name).lines(&lines[..(number % 4) as usize]);
        if number % 7 != 0 {
            code.bytes = Some(&text);
        }
        if number % 3 == 0 {
            code = code.inlined(&inlined);
        }
        if number % 6 < 3 {
            code = code.unwind(Unwind::EhFrame(&frames[(number / 100 % 2) as usize]));
        }
        each(&VisibleCode::whole(code))?;
    }
    Ok(())
}

fn image(
    file: &mut Cursor<Vec<u8>>,
    debug_info: bool,
) -> Result<ImageWriter<&mut Cursor<Vec<u8>>>, Error> {
    Ok(ImageWriter::new(file, x86_64(), START..START + COUNT * SIZE)?.debug_info(debug_info))
}

#[test]
fn parts_of_threads_give_the_same_image() {
    for debug_info in [true, false] {
        let mut added = Cursor::new(Vec::new());
        let mut writer = image(&mut added, debug_info).unwrap();
        for_each_code(0..COUNT, |code| writer.add(code)).unwrap();
        let finished = writer.finish(|_| None).unwrap();
        assert!(finished.unwind.fdes > 0, "{:?}", finished.unwind);

        let mut of_parts = Cursor::new(Vec::new());
        let mut writer = image(&mut of_parts, debug_info).unwrap();
        let mut parts = [writer.part(), writer.part(), writer.part()];
        for round in 0..2 {
            thread::scope(|scope| {
                for (run, part) in (3 * round..).zip(&mut parts) {
                    scope.spawn(move || {
                        for_each_code(run * RUN..(run + 1) * RUN, |code| part.add(code)).unwrap();
                    });
                }
            });
            for part in &mut parts {
                writer.append(part).unwrap();
            }
        }
        let again = writer.finish(|_| None).unwrap();
        assert_eq!(again.symbols, COUNT);
        assert_eq!(again.unwind, finished.unwind);
        assert!(added.into_inner() == of_parts.into_inner());
    }
}

#[test]
fn parts_come_in_order_and_to_their_image() {
    let mut file = Cursor::new(Vec::new());
    let mut writer = image(&mut file, true).unwrap();
    let mut first = writer.part();
    let mut second = writer.part();
    for_each_code(0..1, |code| first.add(code)).unwrap();
    for_each_code(1..2, |code| second.add(code)).unwrap();
    writer.append(&mut second).unwrap();
    let low = for_each_code(0..1, |code| writer.add(code));
    assert!(matches!(low, Err(Error::Order { .. })), "{low:?}");
    let late = writer.append(&mut first);
    assert!(matches!(late, Err(Error::Order { start: START, .. })), "{late:?}");

    let mut elsewhere = Cursor::new(Vec::new());
    let other = ImageWriter::new(&mut elsewhere, x86_64(), 0..0x1000).unwrap();
    let foreign = writer.append(&mut other.part());
    assert!(matches!(foreign, Err(Error::Outside { .. })), "{foreign:?}");
    assert_eq!(writer.finish(|_| None).unwrap().symbols, 1);
}
