//! Every rule of the checker, violated once in a dump that is otherwise correct.

use std::collections::BTreeSet;

use crate::made::{EH_FRAME_HDR, code, config, entry, load, rules, same, tables};
use jitdump::check::{MAX_OFFSETS, RULES, Severity, check, check_named};
use jitdump::extension::LeftOut;
use jitdump::{
    DebugEntry, Endian, ExtendedCode, Load, Move, UnwindOrder, UnwindingInfo, Writer, WriterConfig,
};

/// A time by the clock of the header of [`crate::made::config`].
const NOW: u64 = 1_000_100;
/// Where the second record begins if the first is the LOAD of 32 bytes named `f`.
const SECOND: u64 = 40 + 56 + 2 + 32;

/// A dump with the given content and CLOSE.
fn closed(config: &WriterConfig, content: impl FnOnce(&mut Writer<Vec<u8>>)) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), config).unwrap();
    content(&mut writer);
    writer.close(config.timestamp + 1000).unwrap();
    writer.into_sink()
}

/// A dump with the given content, then one correct code, and CLOSE.
fn dump(something: impl FnOnce(&mut Writer<Vec<u8>>)) -> Vec<u8> {
    let mut writer = crate::made::writer();
    something(&mut writer);
    finish(writer)
}

fn finish(mut writer: Writer<Vec<u8>>) -> Vec<u8> {
    let code = code(32);
    writer.debug_info(NOW + 100, 0xf000, [entry(0xf000, 1, b"good.c")]).unwrap();
    writer.load(NOW + 101, &load(0xf000, 0xffff, b"good", &code)).unwrap();
    writer.close(NOW + 102).unwrap();
    writer.into_sink()
}

/// Nothing else.
fn good() -> Vec<u8> {
    dump(|_| ())
}

/// Writes the LOAD of a correct code named `f`.
fn put(writer: &mut Writer<Vec<u8>>, time: u64, address: u64, index: u64) {
    writer.load(time, &load(address, index, b"f", &code(32))).unwrap();
}

fn loaded(change: impl FnOnce(&mut Load<'_>)) -> Vec<u8> {
    let code = code(32);
    let mut load = load(0x1000, 1, b"f", &code);
    change(&mut load);
    dump(|writer| writer.load(NOW, &load).unwrap())
}

fn unwound(info: UnwindingInfo<'_>) -> Vec<u8> {
    dump(|writer| {
        writer.unwinding_info(NOW, &info).unwrap();
        put(writer, NOW + 1, 0x1000, 1);
    })
}

fn debugged(entries: &[DebugEntry<'_>]) -> Vec<u8> {
    dump(|writer| {
        writer.debug_info(NOW, 0x1000, entries.iter().copied()).unwrap();
        put(writer, NOW + 1, 0x1000, 1);
    })
}

/// A dump of one code with a tail, changed, and of one code without bytes.
fn grouped(bytes: Option<&[u8]>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let extended = ExtendedCode {
        timestamp: NOW,
        size: 32,
        name: b"f",
        pid: crate::made::PID,
        ..Default::default()
    };
    let mut writer = crate::made::writer();
    writer.extended(&ExtendedCode { address: 0x1000, index: 1, bytes, ..extended }).unwrap();
    let mut data = writer.into_sink();
    change(&mut data);
    let mut writer = Writer::append(data, Endian::Little);
    let without_bytes = ExtendedCode { address: 0x2000, index: 2, timestamp: NOW + 1, ..extended };
    writer.extended(&without_bytes).unwrap();
    finish(writer)
}

fn moved(change: impl FnOnce(&mut Move)) -> Vec<u8> {
    let mut moved = Move {
        pid: 700,
        tid: 700,
        vma: 0x2000,
        old_code_addr: 0x1000,
        new_code_addr: 0x2000,
        code_size: 32,
        code_index: 1,
    };
    change(&mut moved);
    dump(|writer| {
        put(writer, NOW, 0x1000, 1);
        writer.move_code(NOW + 1, &moved).unwrap();
    })
}

/// The same with other bytes at an offset.
fn set(mut data: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    data[at..at + bytes.len()].copy_from_slice(bytes);
    data
}

/// The same with 8 zeros more.
fn spaced(mut data: Vec<u8>, at: usize) -> Vec<u8> {
    data.splice(at..at, [0; 8]);
    data
}

/// The same without its last bytes.
fn cut(mut data: Vec<u8>, bytes: usize) -> Vec<u8> {
    data.truncate(data.len() - bytes);
    data
}

/// A dump that violates a rule: where, how often, and the other rules that it violates.
struct Case {
    rule: &'static str,
    data: Vec<u8>,
    offset: u64,
    count: u64,
    others: &'static [&'static str],
}

/// A violation by the first record.
fn case(rule: &'static str, data: Vec<u8>) -> Case {
    Case { rule, data, offset: 40, count: 1, others: &[] }
}

impl Case {
    fn at(self, offset: u64) -> Self {
        Self { offset, ..self }
    }

    fn times(self, count: u64) -> Self {
        Self { count, ..self }
    }

    fn with(self, others: &'static [&'static str]) -> Self {
        Self { others, ..self }
    }
}

fn cases() -> Vec<Case> {
    let config = config(Endian::Little);
    let arm64 = [0xa9bf_7bfd_u32, 0xd65f_03c0].map(u32::to_le_bytes).concat();
    let nanoseconds = 1_795_225_001_506_971_000_u64;
    let first = entry(0x1000, 1, b"a");
    let close_at = good().len() as u64 - 16;
    vec![
        case("not-a-jitdump", b"just a text, and not a dump of any kind at all".to_vec()).at(0),
        case("unknown-version", set(good(), 4, &[2])).at(0),
        case("version-zero", set(good(), 4, &[0])).at(4),
        case("header-size", spaced(set(good(), 8, &[48]), 40)).at(8),
        case("no-machine", set(good(), 12, &[0])).at(12),
        case(
            "wrong-machine",
            closed(&config, |to| to.load(NOW, &load(0x1000, 1, b"f", &arm64)).unwrap()),
        )
        .at(12),
        case("header-padding", set(good(), 16, &[0xef, 0xbe, 0xad, 0xde])).at(16),
        case("no-pid", set(good(), 20, &[0; 4])).at(20).with(&["pid-differs"]),
        case("unknown-flags", set(good(), 32, &[6])).at(32),
        case("header-clock", set(good(), 24, &(nanoseconds / 1000).to_le_bytes())).at(24),
        case(
            "record-clock",
            closed(&WriterConfig { timestamp: nanoseconds, ..config }, |to| {
                put(to, nanoseconds + 1, 0x1000, 1);
            }),
        ),
        case("hole", dump(|to| to.sink_mut().extend([0; 64]))),
        case("garbage", dump(|to| to.sink_mut().extend([0xaa; 64]))),
        case("record-too-small", dump(|to| to.unknown(NOW, 1, b"too short").unwrap())),
        case("cut-off", cut(good(), 1)).at(close_at).with(&["no-close"]),
        case("zero-tail", [good(), vec![0; 400]].concat()).at(close_at + 16),
        case("no-code", crate::made::writer().into_sink()).at(0),
        case("unknown-record", dump(|to| to.unknown(NOW, 9, b"x").unwrap())),
        case("record-after-close", dump(|to| to.close(NOW).unwrap())).at(56).times(3),
        case("no-close", cut(good(), 16)).at(close_at),
        case("timestamp-zero", dump(|to| put(to, 0, 0x1000, 1))).with(&["older-than-header"]),
        case(
            "timestamp-order",
            dump(|to| {
                put(to, NOW + 9, 0x1000, 1);
                put(to, NOW + 8, 0x2000, 2);
            }),
        )
        .at(SECOND),
        case(
            "timestamp-equal",
            dump(|to| {
                put(to, NOW, 0x1000, 1);
                put(to, NOW, 0x2000, 2);
            }),
        )
        .at(SECOND),
        case("name-not-terminated", set(loaded(|_| ()), 40 + 56, &[b'n'; 34])),
        case("code-too-large", set(loaded(|_| ()), 40 + 40, &[33])),
        case(
            "code-missing",
            loaded(|load| {
                load.missing = load.code_size();
                load.code = &[];
            }),
        ),
        case("load-padding", loaded(|load| load.padding = &[0; 6])),
        case("address-zero", loaded(|load| load.code_addr = 0)).with(&["vma-differs"]),
        case(
            "address-wraps",
            loaded(|load| {
                load.code_addr = u64::MAX - 30;
                load.vma = load.code_addr;
            }),
        ),
        case("vma-differs", loaded(|load| load.vma = 0)),
        case("thumb-bit", {
            let arm = WriterConfig { machine: 40, ..config };
            let mut writer = Writer::new(Vec::new(), &arm).unwrap();
            put(&mut writer, NOW, 0x1001, 1);
            finish(writer)
        }),
        case("code-empty", loaded(|load| load.code = &[])),
        case("code-zeroed", loaded(|load| load.code = &[0; 32])),
        case(
            "code-altered",
            dump(|to| {
                for index in 1..5 {
                    let salt = 0x1234_5678_9abc_def0_u64 ^ (index << 32);
                    let code = set(code(32), 24, &salt.to_le_bytes());
                    to.load(NOW + index, &load(0x1000 * index, index, b"f", &code)).unwrap();
                }
            }),
        )
        .at(SECOND)
        .times(3),
        case("duplicate-index", dump(|to| (1..4).for_each(|n| put(to, NOW + n, 0x1000 * n, 7))))
            .at(SECOND)
            .times(2),
        case("pid-differs", loaded(|load| load.pid = 701)),
        case("older-than-header", dump(|to| put(to, 5, 0x1000, 1))),
        case(
            "partial-overlap",
            dump(|to| {
                put(to, NOW, 0x1000, 1);
                put(to, NOW + 1, 0x1010, 2);
                // This one replaces both completely.
                to.load(NOW + 2, &load(0x1000, 3, b"h", &code(0x40))).unwrap();
            }),
        )
        .at(SECOND),
        case("name-empty", loaded(|load| load.name = b"")),
        case("name-control", loaded(|load| load.name = b"two\nlines")),
        case("name-not-utf8", loaded(|load| load.name = b"f\xe4")),
        case("move-of-unknown", moved(|moved| moved.code_index = 5)).at(SECOND),
        case("move-mismatch", moved(|moved| moved.old_code_addr = 0x1800)).at(SECOND),
        case(
            "debug-after-load",
            dump(|to| {
                put(to, NOW, 0x1000, 1);
                to.debug_info(NOW + 1, 0x1000, [first]).unwrap();
            }),
        )
        .at(SECOND),
        case(
            "debug-not-adjacent",
            dump(|to| {
                to.debug_info(NOW, 0x1000, [first]).unwrap();
                put(to, NOW + 1, 0x2000, 2);
                put(to, NOW + 2, 0x1000, 1);
            }),
        ),
        case(
            "debug-without-load",
            closed(&config, |to| {
                put(to, NOW, 0x1000, 1);
                to.debug_info(NOW + 1, 0x2000, [entry(0x2000, 1, b"a")]).unwrap();
            }),
        )
        .at(SECOND),
        case("debug-count", set(debugged(&[first]), 40 + 24, &[9])).at(40 + 32 + 18),
        case("debug-garbled", {
            let mut name = *b"/srv/app/long/dir/work.js";
            let data = debugged(&[entry(0x1000, 1, &name), entry(0x1008, 2, &name)]);
            name[6..8].fill(0);
            set(data, 40 + 48, &name)
        }),
        case(
            "debug-address-bias",
            closed(&config, |to| {
                for index in 1..10 {
                    let address = index * 0x1000;
                    let entries = [entry(address + 0x40, 1, b"a"), entry(address + 0x50, 1, b"a")];
                    to.debug_info(NOW + 2 * index, address, entries).unwrap();
                    put(to, NOW + 2 * index + 1, address, index);
                }
            }),
        )
        .times(9),
        case(
            "debug-outside",
            debugged(&[0xff0, 0x1000, 0x1020, 0x1021].map(|address| entry(address, 1, b"a"))),
        )
        .times(2),
        case("debug-order", debugged(&[entry(0x1008, 1, b"a"), entry(0x1000, 2, b"a")])),
        case("debug-empty", debugged(&[])),
        case("debug-blank", debugged(&[entry(0x1000, 0, b"")])),
        case("debug-no-file", debugged(&[entry(0x1000, 1, b"")])),
        case("same-file", debugged(&[first, same(0x1008, 2)])),
        case("same-file-first", debugged(&[same(0x1000, 2)])),
        case("debug-tail", spaced(set(debugged(&[first]), 40 + 4, &[50 + 8]), 40 + 50)),
        case("unwinding-sizes", set(unwound(tables()), 40 + 24, &[60])),
        case("unwinding-no-header", unwound(UnwindingInfo { eh_frame_hdr: &[], ..tables() })),
        case(
            "unwinding-order",
            unwound(UnwindingInfo { order: UnwindOrder::HeaderFirst, ..tables() }),
        ),
        case(
            "unwinding-malformed",
            unwound(UnwindingInfo { eh_frame: &[7; 16], eh_frame_hdr: &[7; 20], ..tables() }),
        ),
        case("unwinding-not-mapped", unwound(UnwindingInfo { mapped_size: 0, ..tables() })),
        case("unwinding-mapped-size", unwound(UnwindingInfo { mapped_size: 8, ..tables() })),
        case("extension-malformed", grouped(None, |data| data[76] = 0x99)),
        // Another group is where the LOAD should be.
        case(
            "group-without-load",
            grouped(Some(&code(32)), |data| data.truncate(40 + usize::from(data[44]))),
        ),
        case(
            "left-out",
            dump(|to| to.left_out(NOW, &LeftOut { count: 3, first: NOW, last: NOW + 1 }).unwrap()),
        ),
        case(
            "unwinding-without-load",
            dump(|to| {
                to.unwinding_info(NOW, &tables()).unwrap();
                to.unwinding_info(NOW + 1, &tables()).unwrap();
            }),
        ),
    ]
}

#[test]
fn each_rule_finds_its_defect_and_no_other() {
    let mut wrong = Vec::new();
    for Case { rule, data, offset, count, others } in cases() {
        let report = check(&data);
        let found: BTreeSet<_> = report.findings.iter().map(|finding| finding.rule).collect();
        let expected: BTreeSet<_> = others.iter().copied().chain([rule]).collect();
        let place = report.findings.iter().find(|finding| finding.rule == rule).map(|finding| {
            assert_eq!(finding.offset, finding.offsets[0]);
            (finding.offset, finding.count)
        });
        if found != expected || place != Some((offset, count)) {
            wrong.push((rule, found, place));
        }
    }
    assert_eq!(wrong, []);
}

#[test]
fn a_header_of_tables_for_frame_pointers_is_in_order() {
    // V8 writes these 20 bytes for every code that keeps a frame pointer.
    let header_only =
        UnwindingInfo { eh_frame: &[], eh_frame_hdr: &EH_FRAME_HDR, mapped_size: 0, ..tables() };
    assert_eq!(check(&unwound(header_only)).findings, []);
}

#[test]
fn the_name_of_the_file_is_checked_as_perf_does() {
    for (name, expected) in [
        (&b"jit-700.dump"[..], &[][..]),
        // JavaScriptCore since 2.52
        (b"jit-712-700.dump", &["file-name"]),
        (b"jit-.dump", &["file-name"]),
        (b"perf-700.dump", &["file-name"]),
        (b"jit-712.dump", &["file-name-pid"]),
        (b"jit-99999999999999999999.dump", &["file-name-pid"]),
    ] {
        assert_eq!(rules(&check_named(name, &good())), expected, "{}", name.escape_ascii());
    }
}

#[test]
fn every_rule_is_tested_and_documented() {
    let named = ["file-name", "file-name-pid"];
    let tested: BTreeSet<_> = cases().iter().map(|case| case.rule).chain(named).collect();
    let all: BTreeSet<_> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(tested, all);
    assert_eq!(all.len(), RULES.len(), "a name is used twice");

    let page = include_str!("../../../../../docs/format.md");
    for rule in RULES {
        let row = format!("| `{}` | {} |", rule.name, rule.severity);
        assert!(page.contains(&row), "docs/format.md lacks the row {row}");
    }
    let rows = page.lines().filter(|line| {
        ["| error |", "| warning |", "| note |"].iter().any(|severity| line.contains(severity))
    });
    assert_eq!(rows.count(), RULES.len(), "docs/format.md has rows for other rules");
}

#[test]
fn findings_are_counted_and_not_repeated() {
    let mut writer = crate::made::writer();
    for index in 0..1000 {
        writer.load(NOW + index, &load(0x1000 + index * 64, 1, b"", &code(8))).unwrap();
    }
    writer.close(NOW + 1000).unwrap();
    let report = check(writer.sink());
    let [duplicate, unnamed] = &report.findings[..] else { panic!("{report:#?}") };
    assert_eq!((duplicate.rule, duplicate.count), ("duplicate-index", 999));
    assert_eq!((unnamed.rule, unnamed.count), ("name-empty", 1000));
    assert_eq!((duplicate.severity, unnamed.severity), (Severity::Error, Severity::Warning));
    assert_eq!(duplicate.offsets.len(), MAX_OFFSETS);
    assert_eq!(duplicate.offsets[1], 40 + 2 * 65);
    assert_eq!(duplicate.what, "code_index 1 again");
    assert!(report.has_errors());
    assert_eq!((report.records, report.loads), (1001, 1000));
}
