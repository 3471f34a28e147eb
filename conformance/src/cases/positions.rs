//! `SAMPLY_JIT_CODE_DEBUG_INFO2`.

use crate::bytes::{Bytes, id};
use crate::case::{Case, case};
use crate::reading::{Call, Code};

/// A position: caller, function, file, line and column.
type Position = (i32, u32, i32, u32, u32);

/// Writes these rows with [`POSITIONS`] and [`STRINGS`].
fn write<'f>(file: &'f mut Bytes, record: u32, code: &Code, rows: &[(u32, u32)]) -> &'f mut Bytes {
    file.record(record, code.time, |file| {
        file.u64(code.address).u64(rows.len() as u64).u64(POSITIONS.len() as u64);
        file.u64(STRINGS.len() as u64);
        for (offset, position) in rows {
            file.u32(*offset).u32(*position);
        }
        for (caller, function, name, line, column) in POSITIONS {
            file.u32(*caller as u32).u32(*function).u32(*name as u32);
            // Where the function begins.
            file.u32(1).u32(1).u32(*line).u32(*column);
        }
        for string in STRINGS {
            file.text(string.as_bytes());
        }
        file
    })
}

const STRINGS: &[&str] = &["outer", "/src/a.lang", "inner", "/src/b.lang", "innermost"];
/// 0: in the code. 1: the call of `inner`, line 4. 2: in `inner`. 3: the call of `innermost`. 4: in it. 5: elsewhere in the code.
const POSITIONS: &[Position] = &[
    (-1, 0, 1, 3, 1),
    (-1, 0, 1, 4, 9),
    (1, 2, 3, 20, 2),
    (1, 2, 3, 22, 5),
    (3, 4, 3, 40, 7),
    (-1, 0, -1, 6, 0),
];
const ROWS: &[(u32, u32)] = &[(0, 0), (16, 2), (24, 4), (40, 2), (56, 5)];

fn found() -> Code {
    Code {
        inlined: vec![
            Call::new(None, "inner", "/src/a.lang", 4, 9, &[(16, 56)]),
            Call::new(Some(0), "innermost", "/src/b.lang", 22, 5, &[(24, 40)]),
        ],
        ..Code::number(1).lined(&[
            (0, "/src/a.lang", 3, 1),
            (16, "/src/b.lang", 20, 2),
            (24, "/src/b.lang", 40, 7),
            (40, "/src/b.lang", 20, 2),
            (56, "", 6, 0),
        ])
    }
}

pub(super) fn cases() -> Vec<Case> {
    let code = Code::number(1);
    let both = |name, rule| case(name, rule).needs(&["lines", "inlined"]);
    vec![
        both("positions", "SAMPLY_JIT_CODE_DEBUG_INFO2 has lines and inlined calls.")
            .write(|file| write(file, id::SOURCE_POSITIONS, &code, ROWS))
            .load(&found()),
        both("positions-before-debug-info", "They take precedence over DEBUG_INFO.")
            .write(|file| write(file, id::SOURCE_POSITIONS, &code, ROWS))
            .write(|file| file.debug_info(&code.clone().lined(&[(0, "/other", 1, 1)]), 0))
            .load(&found()),
        both(
            "positions-earlier-layout",
            "The type 0x31504d53 has an earlier layout: it is skipped.",
        )
        .write(|file| write(file, 0x3150_4d53, &code, ROWS))
        .load(&code),
        case("positions-unknown", "A row whose position does not exist ends the row before it.")
            .needs(&["lines"])
            .write(|file| write(file, id::SOURCE_POSITIONS, &code, &[(0, 0), (16, 77), (32, 1)]))
            .load(&code.clone().lined(&[
                (0, "/src/a.lang", 3, 1),
                (16, "/src/a.lang", 0, 0),
                (32, "/src/a.lang", 4, 9),
            ])),
        both("positions-counts-lie", "Counts that do not fit into the record: it is skipped.")
            .write(|file| {
                file.record(id::SOURCE_POSITIONS, code.time, |file| {
                    file.u64(code.address).u64(1 << 60).u64(1 << 61).u64(u64::MAX)
                })
            })
            .load(&code),
    ]
}
