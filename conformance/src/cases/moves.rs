//! MOVE.

use serde_json::json;

use crate::bytes::id;
use crate::case::{Case, case};
use crate::reading::{Code, address};

fn moved(case: Case, code: &Code, from: u64, to: u64, index: u64) -> Case {
    case.write(|file| {
        file.record(id::MOVE, code.time + 100, |file| {
            file.u32(code.pid).u32(code.tid).u64(to).u64(from).u64(to).u64(code.size).u64(index)
        })
    })
    .finds(json!({
        "event": "move",
        "time": code.time + 100,
        "pid": code.pid,
        "tid": code.tid,
        "old_address": address(from),
        "new_address": address(to),
        "size": code.size,
        "index": index,
    }))
}

pub(super) fn cases() -> Vec<Case> {
    let [a, b] = [1, 2].map(Code::number);
    let to = a.address + 0x10_0000;
    let plain = case("move", "A MOVE names the code's old and new address.").needs(&["move"]);
    let unknown =
        case("move-index-unknown", "A MOVE whose code_index no LOAD has is passed on as it is.")
            .needs(&["move"]);
    vec![
        moved(plain.load(&a), &a, a.address, to, a.index).load(&b),
        moved(unknown.load(&a), &a, a.address, to, 999),
        case(
            "move-too-small",
            "A MOVE without all of its fields is damage; the next record is read.",
        )
        .load(&a)
        .damage(|file| {
            file.record(id::MOVE, a.time + 100, |file| {
                file.u32(a.pid).u32(a.tid).u64(to).u64(a.address)
            })
        })
        .load(&b),
    ]
}
