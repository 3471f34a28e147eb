//! Every rule of the checker, violated once in a dump that is otherwise correct.

use std::collections::BTreeSet;

use crate::made::{EH_FRAME_HDR, code, config, entry, load, same, tables};
use jitdump::check::{Finding, MAX_OFFSETS, RULES, Report, Severity, check, check_named};
use jitdump::extension::LeftOut;
use jitdump::{Endian, ExtendedCode, Load, Move, UnwindOrder, UnwindingInfo, Writer, WriterConfig};

/// A time by the clock of the header of [`crate::made::config`].
const NOW: u64 = 1_000_100;

fn finding<'r>(report: &'r Report, rule: &str) -> Option<&'r Finding> {
    report.findings.iter().find(|finding| finding.rule == rule)
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

/// The same with a field of the header changed.
fn headed(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut data = dump(|_| ());
    data[at..at + bytes.len()].copy_from_slice(bytes);
    data
}

fn loaded(change: impl FnOnce(&mut Load<'_>)) -> Vec<u8> {
    let code = code(32);
    let mut load = load(0x1000, 1, b"f", &code);
    change(&mut load);
    dump(|writer| writer.load(NOW, &load).unwrap())
}

fn unwound(info: UnwindingInfo<'_>) -> Vec<u8> {
    let code = code(32);
    dump(|writer| {
        writer.unwinding_info(NOW, &info).unwrap();
        writer.load(NOW + 1, &load(0x1000, 1, b"f", &code)).unwrap();
    })
}

fn debugged(entries: &[jitdump::DebugEntry<'_>]) -> Vec<u8> {
    let code = code(32);
    dump(|writer| {
        writer.debug_info(NOW, 0x1000, entries.iter().copied()).unwrap();
        writer.load(NOW + 1, &load(0x1000, 1, b"f", &code)).unwrap();
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

/// A record of one load, bytes changed.
fn patched(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut data = loaded(|_| ());
    data[40 + at..][..bytes.len()].copy_from_slice(bytes);
    data
}

fn moved(change: impl FnOnce(&mut Move)) -> Vec<u8> {
    let code = code(32);
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
        writer.load(NOW, &load(0x1000, 1, b"f", &code)).unwrap();
        writer.move_code(NOW + 1, &moved).unwrap();
    })
}

/// For each rule a dump that violates it, with the offset, the count, and the other rules that the same dump
/// violates.
#[expect(clippy::type_complexity, reason = "a table")]
fn cases() -> Vec<(&'static str, Vec<u8>, u64, u64, &'static [&'static str])> {
    let good_code = code(32);
    let with_config = |config: &WriterConfig| {
        let mut writer = Writer::new(Vec::new(), config).unwrap();
        writer.load(config.timestamp + 1, &load(0x1000, 1, b"f", &code(32))).unwrap();
        writer.close(config.timestamp + 2).unwrap();
        writer.into_sink()
    };
    let config = config(Endian::Little);
    let arm64 = [0xa9bf_7bfd_u32, 0xd65f_03c0].map(u32::to_le_bytes).concat();
    vec![
        ("not-a-jitdump", b"just a text, and not a dump of any kind at all".to_vec(), 0, 1, &[]),
        ("unknown-version", headed(4, &[2]), 0, 1, &[]),
        ("version-zero", headed(4, &[0]), 4, 1, &[]),
        (
            "header-size",
            {
                let mut data = headed(8, &[48]);
                data.splice(40..40, [0; 8]);
                data
            },
            8,
            1,
            &[],
        ),
        ("no-machine", headed(12, &[0]), 12, 1, &[]),
        (
            "wrong-machine",
            {
                let mut writer = crate::made::writer();
                writer.load(NOW, &load(0x1000, 1, b"f", &arm64)).unwrap();
                writer.close(NOW + 1).unwrap();
                writer.into_sink()
            },
            12,
            1,
            &[],
        ),
        ("header-padding", headed(16, &[0xef, 0xbe, 0xad, 0xde]), 16, 1, &[]),
        ("no-pid", headed(20, &[0; 4]), 20, 1, &["pid-differs"]),
        ("unknown-flags", headed(32, &[6]), 32, 1, &[]),
        ("header-clock", headed(24, &1_795_225_001_506_971_u64.to_le_bytes()), 24, 1, &[]),
        (
            "record-clock",
            with_config(&WriterConfig { timestamp: 1_795_225_001_506_971_000, ..config }),
            40,
            1,
            &[],
        ),
        ("hole", dump(|writer| writer.sink_mut().extend([0; 64])), 40, 1, &[]),
        ("garbage", dump(|writer| writer.sink_mut().extend([0xaa; 64])), 40, 1, &[]),
        (
            "record-too-small",
            dump(|writer| {
                writer.unknown(NOW, 1, b"too short").unwrap();
            }),
            40,
            1,
            &[],
        ),
        (
            "cut-off",
            {
                let mut data = dump(|_| ());
                data.truncate(data.len() - 1);
                data
            },
            dump(|_| ()).len() as u64 - 16,
            1,
            &["no-close"],
        ),
        (
            "zero-tail",
            {
                let mut data = dump(|_| ());
                data.extend([0; 400]);
                data
            },
            dump(|_| ()).len() as u64,
            1,
            &[],
        ),
        ("no-code", crate::made::writer().into_sink(), 0, 1, &[]),
        ("unknown-record", dump(|writer| writer.unknown(NOW, 9, b"x").unwrap()), 40, 1, &[]),
        ("record-after-close", dump(|writer| writer.close(NOW).unwrap()), 56, 3, &[]),
        (
            "no-close",
            {
                let mut data = dump(|_| ());
                data.truncate(data.len() - 16);
                data
            },
            dump(|_| ()).len() as u64 - 16,
            1,
            &[],
        ),
        (
            "timestamp-zero",
            dump(|writer| writer.load(0, &load(0x1000, 1, b"f", &good_code)).unwrap()),
            40,
            1,
            &["older-than-header"],
        ),
        (
            "timestamp-order",
            dump(|writer| {
                writer.load(NOW + 9, &load(0x1000, 1, b"f", &good_code)).unwrap();
                writer.load(NOW + 8, &load(0x2000, 2, b"f", &good_code)).unwrap();
            }),
            40 + 56 + 2 + 32,
            1,
            &[],
        ),
        (
            "timestamp-equal",
            dump(|writer| {
                writer.load(NOW, &load(0x1000, 1, b"f", &good_code)).unwrap();
                writer.load(NOW, &load(0x2000, 2, b"f", &good_code)).unwrap();
            }),
            40 + 56 + 2 + 32,
            1,
            &[],
        ),
        ("name-not-terminated", patched(56, &[b'n'; 34]), 40, 1, &[]),
        ("code-too-large", patched(40, &[33]), 40, 1, &[]),
        (
            "code-missing",
            loaded(|load| {
                load.missing = load.code_size();
                load.code = &[];
            }),
            40,
            1,
            &[],
        ),
        ("load-padding", loaded(|load| load.padding = &[0; 6]), 40, 1, &[]),
        ("address-zero", loaded(|load| load.code_addr = 0), 40, 1, &["vma-differs"]),
        (
            "address-wraps",
            loaded(|load| {
                load.code_addr = u64::MAX - 30;
                load.vma = load.code_addr;
            }),
            40,
            1,
            &[],
        ),
        ("vma-differs", loaded(|load| load.vma = 0), 40, 1, &[]),
        (
            "thumb-bit",
            {
                let mut writer =
                    Writer::new(Vec::new(), &WriterConfig { machine: 40, ..config }).unwrap();
                writer.load(NOW, &load(0x1001, 1, b"f", &good_code)).unwrap();
                finish(writer)
            },
            40,
            1,
            &[],
        ),
        ("code-empty", loaded(|load| load.code = &[]), 40, 1, &[]),
        ("code-zeroed", loaded(|load| load.code = &[0; 32]), 40, 1, &[]),
        (
            "code-altered",
            dump(|writer| {
                for index in 1..5 {
                    let mut code = good_code.clone();
                    let salt = 0x1234_5678_9abc_def0_u64 ^ (index << 32);
                    code[24..].copy_from_slice(&salt.to_le_bytes());
                    writer.load(NOW + index, &load(0x1000 * index, index, b"py", &code)).unwrap();
                }
            }),
            40 + 56 + 3 + 32,
            3,
            &[],
        ),
        (
            "duplicate-index",
            dump(|writer| {
                for at in 1..4 {
                    writer.load(NOW + at, &load(0x1000 * at, 7, b"f", &good_code)).unwrap();
                }
            }),
            40 + 56 + 2 + 32,
            2,
            &[],
        ),
        ("pid-differs", loaded(|load| load.pid = 701), 40, 1, &[]),
        (
            "older-than-header",
            dump(|writer| writer.load(5, &load(0x1000, 1, b"f", &good_code)).unwrap()),
            40,
            1,
            &[],
        ),
        (
            "partial-overlap",
            dump(|writer| {
                writer.load(NOW, &load(0x1000, 1, b"f", &good_code)).unwrap();
                writer.load(NOW + 1, &load(0x1010, 2, b"g", &good_code)).unwrap();
                // This one replaces both completely.
                writer.load(NOW + 2, &load(0x1000, 3, b"h", &code(0x40))).unwrap();
            }),
            40 + 56 + 2 + 32,
            1,
            &[],
        ),
        ("name-empty", loaded(|load| load.name = b""), 40, 1, &[]),
        ("name-control", loaded(|load| load.name = b"two\nlines"), 40, 1, &[]),
        ("name-not-utf8", loaded(|load| load.name = b"f\xe4"), 40, 1, &[]),
        ("move-of-unknown", moved(|moved| moved.code_index = 5), 40 + 90, 1, &[]),
        ("move-mismatch", moved(|moved| moved.old_code_addr = 0x1800), 40 + 90, 1, &[]),
        (
            "debug-after-load",
            dump(|writer| {
                writer.load(NOW, &load(0x1000, 1, b"f", &good_code)).unwrap();
                writer.debug_info(NOW + 1, 0x1000, [entry(0x1000, 1, b"a")]).unwrap();
            }),
            40 + 90,
            1,
            &[],
        ),
        (
            "debug-not-adjacent",
            dump(|writer| {
                writer.debug_info(NOW, 0x1000, [entry(0x1000, 1, b"a")]).unwrap();
                writer.load(NOW + 1, &load(0x2000, 2, b"g", &good_code)).unwrap();
                writer.load(NOW + 2, &load(0x1000, 1, b"f", &good_code)).unwrap();
            }),
            40,
            1,
            &[],
        ),
        (
            "debug-without-load",
            {
                let mut writer = crate::made::writer();
                writer.load(NOW, &load(0x1000, 1, b"f", &good_code)).unwrap();
                writer.debug_info(NOW + 1, 0x2000, [entry(0x2000, 1, b"a")]).unwrap();
                writer.close(NOW + 2).unwrap();
                writer.into_sink()
            },
            40 + 90,
            1,
            &[],
        ),
        (
            "debug-count",
            {
                let mut data = debugged(&[entry(0x1000, 1, b"a")]);
                data[40 + 24] = 9;
                data
            },
            40 + 32 + 18,
            1,
            &[],
        ),
        (
            "debug-garbled",
            {
                let mut name = *b"/srv/app/long/dir/work.js";
                let entries = [entry(0x1000, 1, &name), entry(0x1008, 2, &name)];
                let mut data = debugged(&entries);
                name[6..8].fill(0);
                data[40 + 48..][..name.len()].copy_from_slice(&name);
                data
            },
            40,
            1,
            &[],
        ),
        (
            "debug-address-bias",
            {
                let mut writer = crate::made::writer();
                for index in 1..10 {
                    let address = index * 0x1000;
                    let entries = [entry(address + 0x40, 1, b"a"), entry(address + 0x50, 1, b"a")];
                    writer.debug_info(NOW + 2 * index, address, entries).unwrap();
                    let load = load(address, index, b"f", &good_code);
                    writer.load(NOW + 2 * index + 1, &load).unwrap();
                }
                writer.close(NOW + 50).unwrap();
                writer.into_sink()
            },
            40,
            9,
            &[],
        ),
        (
            "debug-outside",
            debugged(&[
                entry(0xff0, 1, b"a"),
                entry(0x1000, 1, b"a"),
                entry(0x1020, 1, b"a"),
                entry(0x1021, 1, b"a"),
            ]),
            40,
            2,
            &[],
        ),
        ("debug-order", debugged(&[entry(0x1008, 1, b"a"), entry(0x1000, 2, b"a")]), 40, 1, &[]),
        ("debug-empty", debugged(&[]), 40, 1, &[]),
        ("debug-blank", debugged(&[entry(0x1000, 0, b"")]), 40, 1, &[]),
        ("debug-no-file", debugged(&[entry(0x1000, 1, b"")]), 40, 1, &[]),
        ("same-file", debugged(&[entry(0x1000, 1, b"a"), same(0x1008, 2)]), 40, 1, &[]),
        ("same-file-first", debugged(&[same(0x1000, 2)]), 40, 1, &[]),
        (
            "debug-tail",
            {
                let mut data = debugged(&[entry(0x1000, 1, b"a")]);
                data[40 + 4] += 8;
                data.splice(40 + 50..40 + 50, [0; 8]);
                data
            },
            40,
            1,
            &[],
        ),
        (
            "unwinding-sizes",
            {
                let mut data = unwound(tables());
                data[40 + 24] = 60;
                data
            },
            40,
            1,
            &[],
        ),
        (
            "unwinding-no-header",
            unwound(UnwindingInfo { eh_frame_hdr: &[], ..tables() }),
            40,
            1,
            &[],
        ),
        (
            "unwinding-order",
            unwound(UnwindingInfo { order: UnwindOrder::HeaderFirst, ..tables() }),
            40,
            1,
            &[],
        ),
        (
            "unwinding-malformed",
            unwound(UnwindingInfo { eh_frame: &[7; 16], eh_frame_hdr: &[7; 20], ..tables() }),
            40,
            1,
            &[],
        ),
        ("unwinding-not-mapped", unwound(UnwindingInfo { mapped_size: 0, ..tables() }), 40, 1, &[]),
        (
            "unwinding-mapped-size",
            unwound(UnwindingInfo { mapped_size: 8, ..tables() }),
            40,
            1,
            &[],
        ),
        ("extension-malformed", grouped(None, |data| data[76] = 0x99), 40, 1, &[]),
        (
            "group-without-load",
            // Another group is where the LOAD should be.
            grouped(Some(&code(32)), |data| data.truncate(40 + usize::from(data[44]))),
            40,
            1,
            &[],
        ),
        (
            "left-out",
            dump(|writer| {
                writer.left_out(NOW, &LeftOut { count: 3, first: NOW, last: NOW + 1 }).unwrap();
            }),
            40,
            1,
            &[],
        ),
        (
            "unwinding-without-load",
            dump(|writer| {
                writer.unwinding_info(NOW, &tables()).unwrap();
                writer.unwinding_info(NOW + 1, &tables()).unwrap();
            }),
            40,
            1,
            &[],
        ),
    ]
}

#[test]
fn each_rule_finds_its_defect_and_no_other() {
    let mut wrong = Vec::new();
    for (rule, data, offset, count, others) in cases() {
        let report = check(&data);
        let found: BTreeSet<_> = report.findings.iter().map(|finding| finding.rule).collect();
        let expected: BTreeSet<_> = others.iter().copied().chain([rule]).collect();
        let place = finding(&report, rule).map(|finding| {
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
    let data = dump(|_| ());
    let rules = |name: &[u8]| -> Vec<&str> {
        check_named(name, &data).findings.iter().map(|finding| finding.rule).collect()
    };
    assert_eq!(rules(b"jit-700.dump"), [""; 0]);
    // JavaScriptCore since 2.52
    assert_eq!(rules(b"jit-712-700.dump"), ["file-name"]);
    assert_eq!(rules(b"jit-.dump"), ["file-name"]);
    assert_eq!(rules(b"perf-700.dump"), ["file-name"]);
    assert_eq!(rules(b"jit-712.dump"), ["file-name-pid"]);
    assert_eq!(rules(b"jit-99999999999999999999.dump"), ["file-name-pid"]);
}

#[test]
fn every_rule_is_tested_and_documented() {
    let named = ["file-name", "file-name-pid"];
    let tested: BTreeSet<_> = cases().iter().map(|case| case.0).chain(named).collect();
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
