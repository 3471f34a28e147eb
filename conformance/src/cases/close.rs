//! CLOSE.

use crate::case::{Case, case};
use crate::reading::Code;

pub(super) fn cases() -> Vec<Case> {
    let [a, b] = [1, 2].map(Code::number);
    let lined = a.clone().lined(&[(0, "/src/a.lang", 1, 1)]);
    vec![
        case("close", "CLOSE says that the writer ended in an orderly way.")
            .needs(&["close"])
            .load(&a)
            .close(b.time),
        case("close-then-records", "Records after CLOSE are read.")
            .load(&a)
            .close(a.time + 1)
            .load(&b),
        case("close-ends-debug", "DEBUG_INFO before CLOSE does not belong to a LOAD after it.")
            .needs(&["lines"])
            .write(|file| file.debug_info(&lined, 0))
            .close(a.time + 1)
            .load(&Code { time: b.time, ..a }),
    ]
}
