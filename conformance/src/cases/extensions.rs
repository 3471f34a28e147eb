//! Tails of DEBUG_INFO, and groups.

use crate::bytes::{Bytes, id};
use crate::case::{Case, Reading};
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

fn groups(name: &str, rule: &'static str, needs: &'static [&'static str], codes: &[Code]) -> Case {
    Case::codes(name, rule, needs, codes, Bytes::group)
}

fn with_items(
    name: &str,
    rule: &'static str,
    needs: &'static [&'static str],
    code: &Code,
    more: impl Fn(&mut Bytes) -> &mut Bytes,
) -> Case {
    let b = Code::number(2);
    Case::usual(
        name,
        rule,
        needs,
        |file| file.group_with(code, more).load(&b),
        vec![code.event(), b.event()],
    )
}

pub(super) fn cases() -> Vec<Case> {
    let [a, b, c] = [1, 2, 3].map(Code::number);
    let big_header = Header { is_big: true, machine: 22, ..Header::default() };
    let big_code = Code { unwind: Some(unwind_tables(&a, true)), ..full(1) };
    let mut big = big_header.file();
    big.group(&big_code);
    let kinds: Vec<Code> =
        (1..).zip(KINDS).map(|(number, (kind, _))| Code { kind, ..Code::number(number) }).collect();
    vec![
        groups(
            "extension-group",
            "A group: the tail with the description, then lines, unwind tables and LOAD.",
            &["name", "lines", "unwind", "inlined", "tier", "ir_lines", "frame_pointer"],
            &[full(1), b.clone(), full(3)],
        ),
        groups(
            "extension-unload",
            "CODE has the time when the code was unloaded.",
            &["died"],
            &[Code { died: Some(a.time + 77), ..a.clone() }, b.clone()],
        ),
        groups("extension-kind", "CODE has the kind of the code.", &["kind"], &kinds),
        groups(
            "extension-tier",
            "TIER names the compiler's tier.",
            &["tier"],
            &[
                Code { tier: Some("Stufe zwei ü".as_bytes().to_vec()), ..a.clone() },
                Code { tier: Some(b"baseline".to_vec()), ..b.clone() },
            ],
        ),
        groups(
            "extension-inlined",
            "INLINED has the calls inlined into the code; an empty file is the previous call's.",
            &["inlined"],
            &[Code { inlined: calls(), ..a.clone() }],
        ),
        groups(
            "extension-ir-lines",
            "LINES with detail 1 are lines of the bytecode, not of the source.",
            &["ir_lines", "lines"],
            &[Code { ir_lines: full(1).ir_lines, ..a.clone() }],
        ),
        groups(
            "extension-frame-pointer",
            "Flags of CODE say how the code keeps a frame pointer.",
            &["frame_pointer"],
            &[
                Code { frame_pointer: Some("prologue"), ..a.clone() },
                Code { frame_pointer: Some("throughout"), ..b.clone() },
                c.clone(),
            ],
        ),
        groups(
            "extension-without-bytes",
            "A code without bytes is its first record alone: name, lines and tables are items.",
            &["name", "lines", "unwind", "inlined"],
            &[without_bytes(full(1)), without_bytes(Code { kind: "java-method", ..b.clone() })],
        ),
        with_items(
            "extension-unknown-item",
            "Items with unknown tags are skipped.",
            &["tier"],
            &Code { tier: Some(b"baseline".to_vec()), ..a.clone() },
            |file| file.item(999, 7, |file| file.raw(b"of a later version")),
        ),
        with_items(
            "extension-item-size-lies",
            "An item that does not fit into its tail ends the items; those before it apply.",
            &["tier"],
            &Code { tier: Some(b"baseline".to_vec()), ..a.clone() },
            |file| file.u16(tag::INLINED).u16(0).u32(1 << 20).u64(0),
        ),
        with_items(
            "extension-inlined-counts-lie",
            "Counts of INLINED that do not fit into the item are not believed.",
            &["inlined"],
            &a,
            |file| file.item(tag::INLINED, 0, |file| file.u32(u32::MAX).u32(u32::MAX).u64(0)),
        ),
        with_items(
            "extension-lines-count-lies",
            "A number of rows that does not fit into LINES is not believed.",
            &["ir_lines"],
            &a,
            |file| file.item(tag::LINES, 1, |file| file.u32(1 << 31).u32(1).u64(0).u64(0)),
        ),
        Case::usual(
            "extension-inlined-parent-later",
            "The list of calls ends at one whose parent is not before it.",
            &["inlined"],
            |file| {
                let mut wrong = calls();
                wrong[1].parent = Some(2);
                file.group(&Code { inlined: wrong, ..a.clone() }).load(&b)
            },
            vec![Code { inlined: calls()[..1].to_vec(), ..a.clone() }.event(), b.event()],
        ),
        Case::dump(
            "extension-big-endian",
            "Tails are in the byte order of the file.",
            &["name", "inlined", "tier"],
            big,
            Reading::of(&big_header, vec![big_code.event()]),
        ),
        Case::usual(
            "extension-filler",
            "A filler is skipped, also if it contains old records.",
            &["name"],
            |file| {
                let mut old = Bytes::default();
                old.u64(0).group(&full(3));
                file.group(&a).filler(TIME, 32, b"").filler(TIME, 1024, &old.out).group(&b)
            },
            vec![a.event(), b.event()],
        ),
        Case::usual(
            "extension-cleared",
            "A first record as large as its group, without the flag for no bytes, is no code.",
            &["name"],
            |file| {
                file.group(&a);
                let start = file.out.len();
                file.group(&c);
                let size = (file.out.len() - start) as u32;
                file.set_u32(start + 4, size);
                file.group(&b)
            },
            vec![a.event(), b.event()],
        ),
        Case::usual(
            "extension-without-bytes-too-large",
            "A code without bytes that claims more than 256 MiB is not believed.",
            &["name"],
            |file| file.group(&without_bytes(Code { size: (256 << 20) + 1, ..a.clone() })).load(&b),
            vec![b.event()],
        ),
        Case::usual(
            "extension-tail-behind-entries",
            "Without a CODE item, the tail of a record with entries leaves the entries as they are.",
            &["lines"],
            |file| {
                let lined = a.clone().lined(&[(0, "/src/a.lang", 1, 1), (16, "/src/a.lang", 2, 7)]);
                file.record(id::DEBUG_INFO, a.time, |file| {
                    let start = file.out.len() - 16;
                    file.u64(a.address).u64(2);
                    for line in &lined.lines {
                        file.entry(line, 0);
                    }
                    file.pad(start, 8).u32(MAGIC).u32(16);
                    file.item(tag::TIER, 0, |file| file.raw(b"tier"))
                });
                file.load(&a)
            },
            vec![a.clone().lined(&[(0, "/src/a.lang", 1, 1), (16, "/src/a.lang", 2, 7)]).event()],
        ),
        Case::usual(
            "extension-left-out",
            "LEFT_OUT counts the codes that were not written.",
            &["left_out"],
            |file| {
                file.group(&a).tail(b.time, 0, |file| {
                    file.item(tag::LEFT_OUT, 0, |file| file.u64(12).u64(b.time - 5).u64(b.time))
                })
            },
            vec![a.event()],
        )
        .left_out([12, b.time - 5, b.time]),
    ]
}
