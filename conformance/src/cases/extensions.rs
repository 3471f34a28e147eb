//! Tails of DEBUG_INFO, and groups.

use crate::bytes::{Bytes, id};
use crate::case::{Case, case};
use crate::extended::{KINDS, MAGIC, tag};
use crate::reading::{Call, Code, Line, TIME};
use crate::records::{Header, unwind_tables};

/// Three calls, of which the second is inlined into the first.
pub(super) fn calls() -> Vec<Call> {
    vec![
        Call::new(None, "inner", "/src/a.lang", 4, 9, &[(16, 40), (64, 72)]),
        Call::new(Some(0), "innermost", "/src/a.lang", 12, 3, &[(20, 32)]),
        Call::new(None, "other", "/src/b.lang", 5, 0, &[(48, 64)]),
    ]
}

/// A code of which everything is known.
pub(super) fn full(number: u32) -> Code {
    let code = Code::number(number);
    let ir = |line: u32| Line::new(code.address + 8 * u64::from(line), b"/src/a.ir", line, 0);
    Code {
        unwind: Some(unwind_tables(&code, false)),
        ir_lines: vec![ir(1), ir(3)],
        inlined: calls(),
        kind: "function",
        tier: Some(b"optimizing".to_vec()),
        frame_pointer: Some("prologue"),
        ..code.lined(&[
            (0, "/src/a.lang", 3, 1),
            (20, "/src/a.lang", 30, 2),
            (48, "/src/b.lang", 2, 5),
        ])
    }
}

/// The same without its bytes: its tables are then `.eh_frame` alone, and its process is the header's.
pub(super) fn without_bytes(mut code: Code) -> Code {
    if let Some(unwind) = &mut code.unwind {
        unwind.eh_frame_hdr.clear();
        unwind.mapped_size = 0;
    }
    Code { bytes: None, ..code }
}

pub(super) fn cases() -> Vec<Case> {
    let [a, b, c] = [1, 2, 3].map(Code::number);
    let with_tier = |tier: &str| Code { tier: Some(tier.as_bytes().to_vec()), ..a.clone() };
    let baseline = with_tier("baseline");
    let lined = a.clone().lined(&[(0, "/src/a.lang", 1, 1), (16, "/src/a.lang", 2, 7)]);
    let left_out = [12, b.time - 5, b.time];
    let kinds = (1..).zip(KINDS).map(|(number, (kind, _))| Code { kind, ..Code::number(number) });
    vec![
        case(
            "extension-group",
            "A group: the tail with the description, then lines, unwind tables and LOAD.",
        )
        .needs(&["name", "lines", "unwind", "inlined", "tier", "ir_lines", "frame_pointer"])
        .group(&full(1))
        .group(&b)
        .group(&full(3)),
        case("extension-unload", "CODE has the time when the code was unloaded.")
            .needs(&["died"])
            .group(&Code { died: Some(a.time + 77), ..a.clone() })
            .group(&b),
        kinds.fold(
            case("extension-kind", "CODE has the kind of the code.").needs(&["kind"]),
            |case, code| case.group(&code),
        ),
        case("extension-tier", "TIER names the compiler's tier.")
            .needs(&["tier"])
            .group(&with_tier("Stufe zwei ü"))
            .group(&Code { tier: baseline.tier.clone(), ..b.clone() }),
        case(
            "extension-inlined",
            "INLINED has the calls inlined into the code; an empty file is the previous call's.",
        )
        .needs(&["inlined"])
        .group(&Code { inlined: calls(), ..a.clone() }),
        case(
            "extension-ir-lines",
            "LINES with detail 1 are lines of the bytecode, not of the source.",
        )
        .needs(&["ir_lines", "lines"])
        .group(&Code { ir_lines: full(1).ir_lines, ..a.clone() }),
        case(
            "extension-frame-pointer",
            "Flags of CODE say how the code keeps a frame pointer.",
        )
        .needs(&["frame_pointer"])
        .group(&Code { frame_pointer: Some("prologue"), ..a.clone() })
        .group(&Code { frame_pointer: Some("throughout"), ..b.clone() })
        .group(&c),
        case(
            "extension-without-bytes",
            "A code without bytes is its first record alone: name, lines and tables are items.",
        )
        .needs(&["name", "lines", "unwind", "inlined"])
        .group(&without_bytes(full(1)))
        .group(&without_bytes(Code { kind: "java-method", ..b.clone() })),
        case("extension-unknown-item", "Items with unknown tags are skipped.")
            .needs(&["tier"])
            .write(|file| {
                file.group_with(&baseline, |file| {
                    file.item(999, 7, |file| file.raw(b"of a later version"))
                })
            })
            .finds(baseline.event())
            .load(&b),
        case(
            "extension-item-size-lies",
            "An item that does not fit into its tail ends the items; those before it apply.",
        )
        .needs(&["tier"])
        .write(|file| {
            file.group_with(&baseline, |file| file.u16(tag::INLINED).u16(0).u32(1 << 20).u64(0))
        })
        .finds(baseline.event())
        .load(&b),
        case(
            "extension-inlined-counts-lie",
            "Counts of INLINED that do not fit into the item are not believed.",
        )
        .needs(&["inlined"])
        .write(|file| {
            file.group_with(&a, |file| {
                file.item(tag::INLINED, 0, |file| file.u32(u32::MAX).u32(u32::MAX).u64(0))
            })
        })
        .finds(a.event())
        .load(&b),
        case(
            "extension-lines-count-lies",
            "A number of rows that does not fit into LINES is not believed.",
        )
        .needs(&["ir_lines"])
        .write(|file| {
            file.group_with(&a, |file| {
                file.item(tag::LINES, 1, |file| file.u32(1 << 31).u32(1).u64(0).u64(0))
            })
        })
        .finds(a.event())
        .load(&b),
        case(
            "extension-inlined-parent-later",
            "The list of calls ends at one whose parent is not before it.",
        )
        .needs(&["inlined"])
        .write(|file| {
            let mut wrong = calls();
            wrong[1].parent = Some(2);
            file.group(&Code { inlined: wrong, ..a.clone() })
        })
        .finds(Code { inlined: calls()[..1].to_vec(), ..a.clone() }.event())
        .load(&b),
        case("extension-big-endian", "Tails are in the byte order of the file.")
            .needs(&["name", "inlined", "tier"])
            .header(Header { is_big: true, machine: 22, ..Header::default() })
            .group(&Code { unwind: Some(unwind_tables(&a, true)), ..full(1) }),
        case("extension-filler", "A filler is skipped, also if it contains old records.")
            .group(&a)
            .write(|file| {
                let mut old = Bytes::default();
                old.u64(0).group(&full(3));
                file.filler(TIME, 32, b"").filler(TIME, 1024, &old.out)
            })
            .group(&b),
        case(
            "extension-cleared",
            "A first record as large as its group, without the flag for no bytes, is no code.",
        )
        .group(&a)
        .write(|file| {
            let start = file.out.len();
            let size = (file.group(&c).out.len() - start) as u32;
            file.set_u32(start + 4, size)
        })
        .group(&b),
        case(
            "extension-without-bytes-too-large",
            "A code without bytes that claims more than 256 MiB is not believed.",
        )
        .write(|file| file.group(&without_bytes(Code { size: (256 << 20) + 1, ..a.clone() })))
        .load(&b),
        case(
            "extension-tail-behind-entries",
            "Without a CODE item, the tail of a record with entries leaves the entries as they are.",
        )
        .needs(&["lines"])
        .write(|file| {
            file.record(id::DEBUG_INFO, a.time, |file| {
                let start = file.out.len() - 16;
                file.u64(a.address).u64(2);
                for line in &lined.lines {
                    file.entry(line, 0);
                }
                file.pad(start, 8).u32(MAGIC).u32(16);
                file.item(tag::TIER, 0, |file| file.raw(b"tier"))
            })
        })
        .load(&lined),
        case("extension-left-out", "LEFT_OUT counts the codes that were not written.")
            .needs(&["left_out"])
            .group(&a)
            .write(|file| {
                file.tail(b.time, 0, |file| {
                    file.item(tag::LEFT_OUT, 0, |file| {
                        left_out.iter().fold(file, |file, word| file.u64(*word))
                    })
                })
            })
            .left_out(left_out),
    ]
}
