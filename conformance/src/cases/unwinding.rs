//! UNWINDING_INFO.

use crate::bytes::id;
use crate::case::{Case, case};
use crate::reading::{Code, Unwind};
use crate::records::unwind_tables;

/// A case about unwind tables.
fn unwind(name: &str, rule: &'static str) -> Case {
    case(name, rule).needs(&["unwind"])
}

pub(super) fn cases() -> Vec<Case> {
    let [a, b] = [1, 2].map(Code::number);
    let tables = unwind_tables(&a, false);
    let with = |unwind: &Unwind| Code { unwind: Some(unwind.clone()), ..a.clone() };
    let header_alone = with(&Unwind {
        eh_frame: Vec::new(),
        eh_frame_hdr: b"\x01\x1b\x03\x3b\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec(),
        mapped_size: 0,
    });
    let without_header = with(&Unwind { eh_frame_hdr: Vec::new(), ..tables.clone() });
    let not_mapped = with(&Unwind { mapped_size: 0, ..tables.clone() });
    let whole = with(&tables);
    let header_size = tables.eh_frame_hdr.len() as u64;
    vec![
        unwind("unwinding", "The tables are .eh_frame, then .eh_frame_hdr.")
            .write(|file| file.unwinding(&whole))
            .load(&whole),
        unwind(
            "unwinding-without-header",
            "The tables may lack .eh_frame_hdr (eh_frame_hdr_size 0).",
        )
        .write(|file| file.unwinding(&without_header))
        .load(&without_header),
        unwind(
            "unwinding-header-alone",
            "The tables may be .eh_frame_hdr alone (V8, for code with a frame pointer).",
        )
        .write(|file| file.unwinding(&header_alone))
        .load(&header_alone),
        unwind(
            "unwinding-not-mapped",
            "A mapped_size of 0: the tables are not in the process's memory.",
        )
        .write(|file| file.unwinding(&not_mapped))
        .load(&not_mapped),
        unwind(
            "unwinding-header-first",
            "If the content shows that .eh_frame_hdr is first, as perf's specification has it, it \
             is.",
        )
        .write(|file| {
            let data = [tables.eh_frame_hdr.as_slice(), &tables.eh_frame].concat();
            file.unwinding_with(a.time, &data, header_size, tables.mapped_size)
        })
        .load(&whole),
        unwind("unwinding-padded", "What follows the tables is padding.")
            .write(|file| {
                file.record(id::UNWINDING_INFO, a.time, |file| {
                    let data = [tables.eh_frame.as_slice(), &tables.eh_frame_hdr].concat();
                    file.u64(data.len() as u64).u64(header_size).u64(tables.mapped_size);
                    file.raw(&data).raw(&[0xa5; 5])
                })
            })
            .load(&whole),
        unwind("unwinding-next-load", "The tables belong to the next LOAD alone.")
            .write(|file| file.unwinding(&whole))
            .load(&whole)
            .load(&b),
        unwind("unwinding-later-wins", "Of two records for one LOAD, the later one applies.")
            .write(|file| file.unwinding(&header_alone).unwinding(&whole))
            .load(&whole),
        case(
            "unwinding-size-too-large",
            "Tables that are larger than their record are damage; the code is read.",
        )
        .damage(|file| {
            file.record(id::UNWINDING_INFO, a.time, |file| {
                file.u64(1 << 40).u64(20).u64(0).raw(&tables.eh_frame)
            })
        })
        .load(&a),
        case(
            "unwinding-header-too-large",
            "An .eh_frame_hdr that is larger than all tables is damage; the code is read.",
        )
        .damage(|file| file.unwinding_with(a.time, &tables.eh_frame, 1 << 20, 0))
        .load(&a),
    ]
}
