//! UNWINDING_INFO.

use crate::bytes::id;
use crate::case::Case;
use crate::reading::{Code, Unwind, damage};
use crate::records::unwind_tables;

const UNWIND: &[&str] = &["unwind"];

fn one(name: &str, rule: &'static str, unwind: &Unwind) -> Case {
    let code = Code { unwind: Some(unwind.clone()), ..Code::number(1) };
    Case::usual(name, rule, UNWIND, |file| file.unwinding(&code).load(&code), vec![code.event()])
}

pub(super) fn cases() -> Vec<Case> {
    let [a, b] = [1, 2].map(Code::number);
    let tables = unwind_tables(&a, false);
    let without_header = Unwind { eh_frame_hdr: Vec::new(), ..tables.clone() };
    let header_alone = Unwind {
        eh_frame: Vec::new(),
        eh_frame_hdr: b"\x01\x1b\x03\x3b\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec(),
        mapped_size: 0,
    };
    let not_mapped = Unwind { mapped_size: 0, ..tables.clone() };
    let with = Code { unwind: Some(tables.clone()), ..a.clone() };
    vec![
        one("unwinding", "The tables are .eh_frame, then .eh_frame_hdr.", &tables),
        one(
            "unwinding-without-header",
            "The tables may lack .eh_frame_hdr (eh_frame_hdr_size 0).",
            &without_header,
        ),
        one(
            "unwinding-header-alone",
            "The tables may be .eh_frame_hdr alone (V8, for code with a frame pointer).",
            &header_alone,
        ),
        one(
            "unwinding-not-mapped",
            "A mapped_size of 0: the tables are not in the process's memory.",
            &not_mapped,
        ),
        Case::usual(
            "unwinding-header-first",
            "If the content shows that .eh_frame_hdr is first, as perf's specification has it, it is.",
            UNWIND,
            |file| {
                let data = [tables.eh_frame_hdr.as_slice(), &tables.eh_frame].concat();
                let size = tables.eh_frame_hdr.len() as u64;
                file.unwinding_with(a.time, &data, size, tables.mapped_size).load(&a)
            },
            vec![with.event()],
        ),
        Case::usual(
            "unwinding-padded",
            "What follows the tables is padding.",
            UNWIND,
            |file| {
                file.record(id::UNWINDING_INFO, a.time, |file| {
                    let data = [tables.eh_frame.as_slice(), &tables.eh_frame_hdr].concat();
                    file.u64(data.len() as u64).u64(tables.eh_frame_hdr.len() as u64);
                    file.u64(tables.mapped_size).raw(&data).raw(&[0xa5; 5])
                });
                file.load(&a)
            },
            vec![with.event()],
        ),
        Case::usual(
            "unwinding-next-load",
            "The tables belong to the next LOAD alone.",
            UNWIND,
            |file| file.unwinding(&with).load(&a).load(&b),
            vec![with.event(), b.event()],
        ),
        Case::usual(
            "unwinding-later-wins",
            "Of two records for one LOAD, the later one applies.",
            UNWIND,
            |file| {
                let other = Code { unwind: Some(header_alone.clone()), ..a.clone() };
                file.unwinding(&other).unwinding(&with).load(&a)
            },
            vec![with.event()],
        ),
        Case::usual(
            "unwinding-size-too-large",
            "Tables that are larger than their record are damage; the code is read.",
            &["name"],
            |file| {
                file.record(id::UNWINDING_INFO, a.time, |file| {
                    file.u64(1 << 40).u64(20).u64(0).raw(&tables.eh_frame)
                });
                file.load(&a)
            },
            vec![damage(), a.event()],
        ),
        Case::usual(
            "unwinding-header-too-large",
            "An .eh_frame_hdr that is larger than all tables is damage; the code is read.",
            &["name"],
            |file| file.unwinding_with(a.time, &tables.eh_frame, 1 << 20, 0).load(&a),
            vec![damage(), a.event()],
        ),
    ]
}
