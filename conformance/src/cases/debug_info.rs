//! DEBUG_INFO.

use crate::bytes::{Bytes, id};
use crate::case::Case;
use crate::reading::{Code, Line};

const LINES: &[&str] = &["lines"];

/// A file with one code: these entries before it, and these lines in it, as offsets.
fn entries(
    name: &str,
    rule: &'static str,
    needs: &'static [&'static str],
    entries: &[(i64, &[u8], u32, u32)],
    found: &[(u64, &str, u32, u32)],
) -> Case {
    let code = Code::number(1);
    let entry = |&(offset, file, line, column): &(i64, &[u8], u32, u32)| {
        Line::new(code.address.wrapping_add_signed(offset), file, line, column)
    };
    let entries: Vec<Line> = entries.iter().map(entry).collect();
    Case::usual(
        name,
        rule,
        needs,
        |file| file.entries(&code, &entries, 0).load(&code),
        vec![code.clone().lined(found).event()],
    )
}

fn no_entries(file: &mut Bytes, code: &Code) {
    file.entries(code, &[], 0);
}

pub(super) fn cases() -> Vec<Case> {
    let [a, b, c] = [1, 2, 3].map(Code::number);
    let [with_a, with_b] = [
        a.clone().lined(&[(0, "/src/a.lang", 1, 1), (16, "/src/a.lang", 2, 7)]),
        b.clone().lined(&[(0, "/src/b.lang", 5, 1), (32, "/src/b.lang", 6, 3)]),
    ];
    let again = Code { time: b.time, index: b.index, ..a.clone() };
    let size = i64::try_from(a.size).expect("small");
    vec![
        entries(
            "debug-lines",
            "Each entry applies up to the next one, with its file.",
            LINES,
            &[(0, b"/src/a.lang", 10, 0), (20, b"/src/b.lang", 3, 0), (40, b"/src/a.lang", 12, 0)],
            &[(0, "/src/a.lang", 10, 0), (20, "/src/b.lang", 3, 0), (40, "/src/a.lang", 12, 0)],
        ),
        entries(
            "debug-discriminators",
            "The word discrim is the column.",
            &["columns"],
            &[(0, b"/src/a.lang", 10, 4), (20, b"/src/a.lang", 10, 17)],
            &[(0, "/src/a.lang", 10, 4), (20, "/src/a.lang", 10, 17)],
        ),
        entries(
            "debug-same-file",
            "A file name of the single byte 0xff is the previous entry's.",
            LINES,
            &[
                (0, b"/a", 10, 1),
                (20, b"\xff", 11, 1),
                (40, b"\xff", 12, 1),
                (50, b"/b", 3, 1),
                (60, b"\xff", 4, 1),
            ],
            &[
                (0, "/a", 10, 1),
                (20, "/a", 11, 1),
                (40, "/a", 12, 1),
                (50, "/b", 3, 1),
                (60, "/b", 4, 1),
            ],
        ),
        entries(
            "debug-same-file-first",
            "The byte 0xff in a record's first entry is an unknown file.",
            LINES,
            &[(0, b"\xff", 10, 1), (20, b"/src/a.lang", 11, 1)],
            &[(0, "", 10, 1), (20, "/src/a.lang", 11, 1)],
        ),
        entries(
            "debug-file-empty",
            "A line whose file name is empty is a line of an unknown file.",
            LINES,
            &[(0, b"", 10, 1), (20, b"/src/a.lang", 11, 1)],
            &[(0, "", 10, 1), (20, "/src/a.lang", 11, 1)],
        ),
        entries(
            "debug-blank-ends",
            "An entry with neither line nor file ends the line before it.",
            LINES,
            &[(0, b"/src/a.lang", 10, 1), (20, b"", 0, 0), (40, b"/src/a.lang", 12, 1)],
            &[(0, "/src/a.lang", 10, 1), (20, "/src/a.lang", 0, 0), (40, "/src/a.lang", 12, 1)],
        ),
        entries(
            "debug-blank-only",
            "Entries with neither line nor file say nothing where there is no line before them.",
            LINES,
            &[(0, b"", 0, 0), (20, b"", 0, 0)],
            &[],
        ),
        entries(
            "debug-line-0",
            "Line 0 with a file is code that belongs to no line.",
            LINES,
            &[(0, b"/src/a.lang", 10, 1), (20, b"/src/a.lang", 0, 0)],
            &[(0, "/src/a.lang", 10, 1), (20, "/src/a.lang", 0, 0)],
        ),
        entries(
            "debug-before-code",
            "The last entry before the code applies where the code begins (Erlang).",
            LINES,
            &[(-64, b"", 0, 0), (-32, b"/src/a.lang", 7, 0), (24, b"/src/a.lang", 8, 0)],
            &[(0, "/src/a.lang", 7, 0), (24, "/src/a.lang", 8, 0)],
        ),
        entries(
            "debug-after-code",
            "Entries at the code's end or behind it are no part of it.",
            LINES,
            &[(0, b"/src/a.lang", 7, 0), (size, b"/src/a.lang", 8, 0), (size + 9, b"/x", 9, 0)],
            &[(0, "/src/a.lang", 7, 0)],
        ),
        entries(
            "debug-order",
            "Entries need not ascend by address.",
            LINES,
            &[(40, b"/src/a.lang", 12, 1), (0, b"/src/a.lang", 10, 1), (20, b"/src/a.lang", 11, 1)],
            &[(40, "/src/a.lang", 12, 1), (0, "/src/a.lang", 10, 1), (20, "/src/a.lang", 11, 1)],
        ),
        Case::usual(
            "debug-no-entries",
            "A record without entries leaves the lines of the record before it.",
            LINES,
            |file| {
                file.debug_info(&with_a, 0);
                no_entries(file, &a);
                file.load(&a);
                no_entries(file, &b);
                file.load(&b)
            },
            vec![with_a.event(), b.event()],
        ),
        Case::usual(
            "debug-by-address",
            "DEBUG_INFO belongs to the next LOAD of its address, not to the next LOAD.",
            LINES,
            |file| file.debug_info(&with_a, 0).debug_info(&with_b, 0).load(&a).load(&b),
            vec![with_a.event(), with_b.event()],
        ),
        Case::usual(
            "debug-of-other-code",
            "DEBUG_INFO of another address gives a code no lines.",
            LINES,
            |file| file.debug_info(&with_a, 0).load(&c),
            vec![c.event()],
        ),
        Case::usual(
            "debug-later-wins",
            "Of two records for one LOAD, the later one applies.",
            LINES,
            |file| {
                file.debug_info(&a.clone().lined(&[(0, "/old", 1, 1)]), 0);
                file.debug_info(&with_a, 0).load(&a)
            },
            vec![with_a.event()],
        ),
        Case::usual(
            "debug-used-once",
            "DEBUG_INFO is not used for a second LOAD of its address.",
            LINES,
            |file| file.debug_info(&with_a, 0).load(&a).load(&again),
            vec![with_a.event(), again.event()],
        ),
        Case::usual(
            "debug-replaced",
            "A LOAD that takes the place of a code whose LOAD is missing ends its DEBUG_INFO.",
            LINES,
            |file| {
                let over = Code { address: a.address - 16, ..b.clone() };
                // A record between them, so that no reader can go by the position alone.
                file.debug_info(&with_a, 0).load(&c).load(&over);
                file.load(&Code { time: over.time + 500, ..a.clone() })
            },
            vec![
                c.event(),
                Code { address: a.address - 16, ..b.clone() }.event(),
                Code { time: b.time + 500, ..a.clone() }.event(),
            ],
        ),
        Case::usual(
            "debug-count-too-large",
            "An nr_entry of 2^33 in a record of 72 bytes allocates nothing; the entries that are there apply.",
            LINES,
            |file| {
                file.record(id::DEBUG_INFO, a.time, |file| {
                    file.u64(a.address).u64(1 << 33);
                    file.entry(&Line::new(a.address, b"/src/a.lang", 9, 2), 0);
                    file.raw(&[0xee; 12])
                });
                file.load(&a)
            },
            vec![a.clone().lined(&[(0, "/src/a.lang", 9, 2)]).event()],
        ),
        Case::usual(
            "debug-name-not-terminated",
            "An entry whose name does not end in the record is lost; those before it apply.",
            LINES,
            |file| {
                file.record(id::DEBUG_INFO, a.time, |file| {
                    file.u64(a.address).u64(2);
                    file.entry(&Line::new(a.address, b"/src/a.lang", 9, 2), 0);
                    file.u64(a.address + 16).u32(10).u32(2).raw(b"/src/cut")
                });
                file.load(&a)
            },
            vec![a.clone().lined(&[(0, "/src/a.lang", 9, 2)]).event()],
        ),
        Case::usual(
            "debug-padded",
            "What follows the last entry is padding.",
            LINES,
            |file| {
                file.record(id::DEBUG_INFO, a.time, |file| {
                    file.u64(a.address).u64(with_a.lines.len() as u64);
                    for line in &with_a.lines {
                        file.entry(line, 0);
                    }
                    file.raw(&[0xa5; 7])
                });
                file.load(&a)
            },
            vec![with_a.event()],
        ),
        Case::usual(
            "debug-without-load",
            "DEBUG_INFO without a LOAD is no code.",
            LINES,
            |file| file.load(&b).debug_info(&with_a, 0),
            vec![b.event()],
        ),
    ]
}
