//! Records of other types.

use crate::case::{Case, case};
use crate::reading::Code;
use crate::records::unwind_tables;

pub(super) fn cases() -> Vec<Case> {
    let [a, b] = [1, 2].map(Code::number);
    let whole = Code {
        unwind: Some(unwind_tables(&a, false)),
        ..a.clone().lined(&[(0, "/src/a.lang", 1, 1)])
    };
    vec![
        case("unknown-record", "A record of an unknown type is skipped by its size.")
            .load(&a)
            .write(|file| {
                file.record(0x1234_5678, a.time + 1, |file| file.raw(b"anything, also \0 and \xff"))
            })
            .load(&b),
        case("unknown-record-type-5", "Type 5 is unknown too.")
            .write(|file| file.record(5, a.time, |file| file))
            .load(&b),
        case(
            "unknown-record-between",
            "An unknown record between a code's records does not separate them.",
        )
        .needs(&["lines", "unwind"])
        .write(|file| {
            file.debug_info(&whole, 0).record(0x1234_5678, a.time, |file| file.raw(&[7; 24]));
            file.unwinding(&whole)
        })
        .load(&whole),
    ]
}
