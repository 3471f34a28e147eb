//! DEBUG_INFO.

use crate::bytes::id;
use crate::case::{Case, case};
use crate::reading::{Code, Line};

/// A case about lines.
fn lines(name: &str, rule: &'static str) -> Case {
    case(name, rule).needs(&["lines"])
}

/// A file with one code: these entries before it, and these lines in it, as offsets.
fn entries(
    name: &str,
    rule: &'static str,
    entries: &[(i64, &[u8], u32, u32)],
    found: &[(u64, &str, u32, u32)],
) -> Case {
    let code = Code::number(1);
    let entry = |&(offset, file, line, column): &(i64, &[u8], u32, u32)| {
        Line::new(code.address.wrapping_add_signed(offset), file, line, column)
    };
    let entries: Vec<Line> = entries.iter().map(entry).collect();
    let case = lines(name, rule).write(|file| file.entries(&code, &entries, 0).load(&code));
    case.finds(code.lined(found).event())
}

/// The same where each entry is a line.
fn all_entries(name: &str, rule: &'static str, found: &[(u64, &str, u32, u32)]) -> Case {
    let code = Code::number(1).lined(found);
    let case = lines(name, rule).write(|file| file.debug_info(&code, 0).load(&code));
    case.finds(code.event())
}

pub(super) fn cases() -> Vec<Case> {
    let [a, b, c] = [1, 2, 3].map(Code::number);
    let with_a = a.clone().lined(&[(0, "/src/a.lang", 1, 1), (16, "/src/a.lang", 2, 7)]);
    let with_b = b.clone().lined(&[(0, "/src/b.lang", 5, 1), (32, "/src/b.lang", 6, 3)]);
    let one_line = a.clone().lined(&[(0, "/src/a.lang", 9, 2)]);
    let again = Code { time: b.time, index: b.index, ..a.clone() };
    let size = i64::try_from(a.size).expect("small");
    vec![
        all_entries(
            "debug-lines",
            "Each entry applies up to the next one, with its file.",
            &[(0, "/src/a.lang", 10, 0), (20, "/src/b.lang", 3, 0), (40, "/src/a.lang", 12, 0)],
        ),
        all_entries(
            "debug-discriminators",
            "The word discrim is the column.",
            &[(0, "/src/a.lang", 10, 4), (20, "/src/a.lang", 10, 17)],
        )
        .needs(&["columns"]),
        entries(
            "debug-same-file",
            "A file name of the single byte 0xff is the previous entry's.",
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
            &[(0, b"\xff", 10, 1), (20, b"/src/a.lang", 11, 1)],
            &[(0, "", 10, 1), (20, "/src/a.lang", 11, 1)],
        ),
        all_entries(
            "debug-file-empty",
            "A line whose file name is empty is a line of an unknown file.",
            &[(0, "", 10, 1), (20, "/src/a.lang", 11, 1)],
        ),
        entries(
            "debug-blank-ends",
            "An entry with neither line nor file ends the line before it.",
            &[(0, b"/src/a.lang", 10, 1), (20, b"", 0, 0), (40, b"/src/a.lang", 12, 1)],
            &[(0, "/src/a.lang", 10, 1), (20, "/src/a.lang", 0, 0), (40, "/src/a.lang", 12, 1)],
        ),
        entries(
            "debug-blank-only",
            "Entries with neither line nor file say nothing where there is no line before them.",
            &[(0, b"", 0, 0), (20, b"", 0, 0)],
            &[],
        ),
        all_entries(
            "debug-line-0",
            "Line 0 with a file is code that belongs to no line.",
            &[(0, "/src/a.lang", 10, 1), (20, "/src/a.lang", 0, 0)],
        ),
        entries(
            "debug-before-code",
            "The last entry before the code applies where the code begins (Erlang).",
            &[(-64, b"", 0, 0), (-32, b"/src/a.lang", 7, 0), (24, b"/src/a.lang", 8, 0)],
            &[(0, "/src/a.lang", 7, 0), (24, "/src/a.lang", 8, 0)],
        ),
        entries(
            "debug-after-code",
            "Entries at the code's end or behind it are no part of it.",
            &[(0, b"/src/a.lang", 7, 0), (size, b"/src/a.lang", 8, 0), (size + 9, b"/x", 9, 0)],
            &[(0, "/src/a.lang", 7, 0)],
        ),
        all_entries(
            "debug-order",
            "Entries need not ascend by address.",
            &[(40, "/src/a.lang", 12, 1), (0, "/src/a.lang", 10, 1), (20, "/src/a.lang", 11, 1)],
        ),
        lines(
            "debug-no-entries",
            "A record without entries leaves the lines of the record before it.",
        )
        .write(|file| file.debug_info(&with_a, 0).debug_info(&a, 0).load(&a))
        .finds(with_a.event())
        .write(|file| file.debug_info(&b, 0))
        .load(&b),
        lines(
            "debug-by-address",
            "DEBUG_INFO belongs to the next LOAD of its address, not to the next LOAD.",
        )
        .write(|file| file.debug_info(&with_a, 0).debug_info(&with_b, 0))
        .load(&with_a)
        .load(&with_b),
        lines("debug-of-other-code", "DEBUG_INFO of another address gives a code no lines.")
            .write(|file| file.debug_info(&with_a, 0))
            .load(&c),
        lines("debug-later-wins", "Of two records for one LOAD, the later one applies.")
            .write(|file| file.debug_info(&a.clone().lined(&[(0, "/old", 1, 1)]), 0))
            .write(|file| file.debug_info(&with_a, 0))
            .load(&with_a),
        lines("debug-used-once", "DEBUG_INFO is not used for a second LOAD of its address.")
            .write(|file| file.debug_info(&with_a, 0))
            .load(&with_a)
            .load(&again),
        lines(
            "debug-replaced",
            "A LOAD that takes the place of a code whose LOAD is missing ends its DEBUG_INFO.",
        )
        .write(|file| file.debug_info(&with_a, 0))
        // A record between them, so that no reader can go by the position alone.
        .load(&c)
        .load(&Code { address: a.address - 16, ..b.clone() })
        .load(&Code { time: b.time + 500, ..a.clone() }),
        lines(
            "debug-count-too-large",
            "An nr_entry of 2^33 in a record of 72 bytes allocates nothing; the entries that are \
             there apply.",
        )
        .write(|file| {
            file.record(id::DEBUG_INFO, a.time, |file| {
                file.u64(a.address).u64(1 << 33).entry(&one_line.lines[0], 0).raw(&[0xee; 12])
            })
        })
        .load(&one_line),
        lines(
            "debug-name-not-terminated",
            "An entry whose name does not end in the record is lost; those before it apply.",
        )
        .write(|file| {
            file.record(id::DEBUG_INFO, a.time, |file| {
                file.u64(a.address).u64(2).entry(&one_line.lines[0], 0);
                file.u64(a.address + 16).u32(10).u32(2).raw(b"/src/cut")
            })
        })
        .load(&one_line),
        lines("debug-padded", "What follows the last entry is padding.")
            .write(|file| file.padded_debug_info(&with_a, &[0xa5; 7]))
            .load(&with_a),
        lines("debug-without-load", "DEBUG_INFO without a LOAD is no code.")
            .load(&b)
            .write(|file| file.debug_info(&with_a, 0)),
    ]
}
