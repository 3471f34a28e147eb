//! CLOSE.

use crate::case::Case;
use crate::reading::{Code, close};

pub(super) fn cases() -> Vec<Case> {
    let [a, b] = [1, 2].map(Code::number);
    let lined = a.clone().lined(&[(0, "/src/a.lang", 1, 1)]);
    vec![
        Case::usual(
            "close",
            "CLOSE says that the writer ended in an orderly way.",
            &["close"],
            |file| file.load(&a).close(b.time),
            vec![a.event(), close(b.time)],
        ),
        Case::usual(
            "close-then-records",
            "Records after CLOSE are read.",
            &["name"],
            |file| file.load(&a).close(a.time + 1).load(&b),
            vec![a.event(), close(a.time + 1), b.event()],
        ),
        Case::usual(
            "close-ends-debug",
            "DEBUG_INFO before CLOSE does not belong to a LOAD after it.",
            &["lines"],
            |file| {
                file.debug_info(&lined, 0).close(a.time + 1);
                file.load(&Code { time: b.time, ..a.clone() })
            },
            vec![close(a.time + 1), Code { time: b.time, ..a.clone() }.event()],
        ),
    ]
}
