//! MOVE.

use serde_json::{Value, json};

use crate::bytes::{Bytes, id};
use crate::case::Case;
use crate::reading::{Code, address, damage};

fn write<'f>(file: &'f mut Bytes, code: &Code, from: u64, to: u64, index: u64) -> &'f mut Bytes {
    file.record(id::MOVE, code.time + 100, |file| {
        file.u32(code.pid).u32(code.tid).u64(to).u64(from).u64(to).u64(code.size).u64(index)
    })
}

fn event(code: &Code, from: u64, to: u64, index: u64) -> Value {
    json!({
        "event": "move",
        "time": code.time + 100,
        "pid": code.pid,
        "tid": code.tid,
        "old_address": address(from),
        "new_address": address(to),
        "size": code.size,
        "index": index,
    })
}

pub(super) fn cases() -> Vec<Case> {
    let [a, b] = [1, 2].map(Code::number);
    let to = a.address + 0x10_0000;
    vec![
        Case::usual(
            "move",
            "A MOVE names the code's old and new address.",
            &["move"],
            |file| {
                file.load(&a);
                write(file, &a, a.address, to, a.index);
                file.load(&b)
            },
            vec![a.event(), event(&a, a.address, to, a.index), b.event()],
        ),
        Case::usual(
            "move-index-unknown",
            "A MOVE whose code_index no LOAD has is passed on as it is.",
            &["move"],
            |file| {
                file.load(&a);
                write(file, &a, a.address, to, 999)
            },
            vec![a.event(), event(&a, a.address, to, 999)],
        ),
        Case::usual(
            "move-too-small",
            "A MOVE without all of its fields is damage; the next record is read.",
            &["name"],
            |file| {
                file.load(&a).record(id::MOVE, a.time + 100, |file| {
                    file.u32(a.pid).u32(a.tid).u64(to).u64(a.address)
                });
                file.load(&b)
            },
            vec![a.event(), damage(), b.event()],
        ),
    ]
}
