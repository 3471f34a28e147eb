//! Records of other types.

use crate::case::Case;
use crate::reading::Code;
use crate::records::unwind_tables;

pub(super) fn cases() -> Vec<Case> {
    let [a, b] = [1, 2].map(Code::number);
    let whole = Code {
        unwind: Some(unwind_tables(&a, false)),
        ..a.clone().lined(&[(0, "/src/a.lang", 1, 1)])
    };
    vec![
        Case::usual(
            "unknown-record",
            "A record of an unknown type is skipped by its size.",
            &["name"],
            |file| {
                file.load(&a).record(0x1234_5678, a.time + 1, |file| {
                    file.raw(b"anything, also \0 and \xff")
                });
                file.load(&b)
            },
            vec![a.event(), b.event()],
        ),
        Case::usual(
            "unknown-record-type-5",
            "Type 5 is unknown too.",
            &["name"],
            |file| file.record(5, a.time, |file| file).load(&b),
            vec![b.event()],
        ),
        Case::usual(
            "unknown-record-between",
            "An unknown record between a code's records does not separate them.",
            &["lines", "unwind"],
            |file| {
                file.debug_info(&whole, 0).record(0x1234_5678, a.time, |file| file.raw(&[7; 24]));
                file.unwinding(&whole).load(&a)
            },
            vec![whole.event()],
        ),
    ]
}
