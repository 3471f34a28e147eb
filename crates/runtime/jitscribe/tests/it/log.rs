//! What is announced is what an outsider reads.
#![cfg(target_os = "linux")]

use crate::common::{codes, listening, living, snapshot};
use jitdump::LineEntry;
use jitscribe::{Code, Inlined, Kind, Line, LoadedCode, Row, Scribe, Unwind};
use unwind_info::Machine;

const LINES: [Line<'static>; 3] = [
    Line::new(0, "/src/one.lang", 7).column(2),
    Line::new(4, "/src/two.lang", 100_000).column(70_000),
    Line::new(9, "/src/one.lang", 8),
];

#[test]
fn a_code_without_bytes_has_everything_else() {
    let scribe = Scribe::builder().build();
    let ir = [Line::new(2, "f.ir", 3)];
    #[allow(clippy::single_range_in_vec_init)]
    let outer = [0..20];
    let inner = [2..5, 8..12];
    let inlined = [
        Inlined::new("outer", &outer).called_from("/src/one.lang", 7).column(4),
        Inlined::new("inner", &inner).called_from("/src/two.lang", 9).within(0),
    ];
    let code = Code::at(0x7000, 32)
        .named("a\nb\u{e9}")
        .kind(Kind::Stub)
        .tier("baseline")
        .lines(&LINES)
        .ir_lines(&ir)
        .inlined(&inlined)
        .frame_pointer();
    scribe.load(&code).leak();
    let snapshot = snapshot(scribe);
    let codes = codes(&snapshot.bytes);
    let [code] = codes.as_slice() else { panic!("{codes:?}") };
    assert_eq!((code.address, code.size, code.bytes.len()), (0x7000, 32, 0));
    assert_eq!(code.name, "a b\u{e9}".as_bytes());
    assert!(code.is_without_bytes());
    assert_eq!((code.kind(), code.tier()), (Kind::Stub, Some(b"baseline".as_slice())));
    assert_eq!(code.died(), None);
    assert!(code.frame_pointer().is_some());
    assert_eq!(code.lines().map(told).collect::<Vec<_>>(), expected(0x7000));
    let ir: Vec<_> = code.ir_lines().map(told).collect();
    assert_eq!(ir, [(0x7002, b"f.ir".to_vec(), 3, 0)]);
    let calls: Vec<_> = code.inlined().collect();
    assert_eq!(calls.len(), 2);
    assert_eq!((calls[0].name, calls[0].parent, calls[0].line), (&b"outer"[..], None, 7));
    assert_eq!((calls[1].name, calls[1].parent), (&b"inner"[..], Some(0)));
    assert_eq!(calls[1].file, b"/src/two.lang");
    assert_eq!(calls[1].ranges.clone().collect::<Vec<_>>(), [0x7002..0x7005, 0x7008..0x700c]);
}

/// Address, file, line and column.
fn told(line: LineEntry<'_>) -> (u64, Vec<u8>, u32, u32) {
    (line.address, line.file.to_vec(), line.line, line.column)
}

fn expected(address: u64) -> Vec<(u64, Vec<u8>, u32, u32)> {
    let told = |line: &Line<'_>| {
        (address + u64::from(line.offset), line.file.to_vec(), line.line, line.column)
    };
    LINES.iter().map(told).collect()
}

#[test]
fn a_code_with_bytes_is_a_standard_record() {
    let scribe = Scribe::builder().bytes().build();
    let memory: Vec<u8> = (0..77).collect();
    let rows = [Row::new(4, 7, 16), Row::new(68, 7, 8)];
    let code = Code::new(&memory).named("f").lines(&LINES).unwind(Unwind::Rows(&rows));
    scribe.load(&code).leak();
    let snapshot = snapshot(scribe);
    let codes = codes(&snapshot.bytes);
    let [code] = codes.as_slice() else { panic!("{codes:?}") };
    assert_eq!((code.address, code.bytes), (memory.as_ptr().addr() as u64, memory.as_slice()));
    assert!(!code.is_without_bytes());
    assert_eq!(code.lines().map(told).collect::<Vec<_>>(), expected(code.address));
    let has_unwind_info = code.unwind().is_some_and(|unwind| unwind.mapped_size > 0);
    assert_eq!(has_unwind_info, Machine::host().is_some());
    let findings = jitdump::check::check(&snapshot.bytes).findings;
    assert!(findings.is_empty(), "{findings:?}");
}

#[test]
fn moved_code_has_the_bytes_of_its_new_place() {
    let scribe = Scribe::builder().bytes().build();
    let (old, new) = ([1_u8; 40], [2_u8; 40]);
    let mut moved = scribe.load(&Code::new(&old).lines(&LINES));
    moved.moved_to(&new);
    let snapshot = snapshot(scribe);
    let code = &codes(&snapshot.bytes)[1];
    let address = new.as_ptr().addr() as u64;
    assert_eq!((code.address, code.bytes), (address, &new[..]));
    assert_eq!(code.lines().map(told).collect::<Vec<_>>(), expected(address));
}

#[test]
fn a_stale_handle_does_nothing() {
    let scribe = Scribe::builder().limit(2 << 20).bytes().build();
    // Bytes that look like handles' places from within.
    let memory: Vec<u8> = (0..400_u32).flat_map(u32::to_ne_bytes).collect();
    let code = Code::new(&memory).named("code");
    let gone: Vec<u64> = (0..100)
        .map(|_| {
            let handle = scribe.load(&code).into_raw();
            drop(LoadedCode::from_raw(scribe, handle));
            handle
        })
        .collect();
    let mut kept = Vec::new();
    for _ in 0..20 {
        let more: Vec<_> = (0..400).map(|_| scribe.load(&code)).collect();
        // The others die here.
        kept.extend(more.into_iter().step_by(20));
        for &handle in &gone {
            let mut stale = LoadedCode::from_raw(scribe, handle);
            assert!(stale.is_stale());
            stale.moved_to_address(0x1234);
            stale.leak();
            drop(LoadedCode::from_raw(scribe, handle));
        }
    }
    assert!(kept.iter().all(|code| !code.is_stale()));
    let snapshot = snapshot(scribe);
    let codes = codes(&snapshot.bytes);
    let alive = living(&codes);
    assert_eq!((alive.len(), snapshot.head.left_out), (kept.len(), 0));
    assert!(alive.iter().all(|code| code.address == memory.as_ptr().addr() as u64));
}

#[test]
fn space_is_reused_before_the_log_reaches_its_limit() {
    let scribe = Scribe::builder().limit(8 << 20).build();
    let taken = || u64::from(snapshot(scribe).head.chunks) * (64 << 10);
    let code = Code::at(0x1000, 1).named("short-lived");
    // What died stays known, up to a quarter of the limit.
    (0..10_000).for_each(|_| drop(scribe.load(&code)));
    assert_eq!(codes(&snapshot(scribe).bytes).len(), 10_000);
    // Some live on, here and there.
    let living: Vec<_> = (0..500_000)
        .filter_map(|number| Some(scribe.load(&code)).filter(|_| number % 100 == 0))
        .collect();
    assert!(taken() < 4 << 20, "{}", taken());
    let living_on: Vec<_> = (0..40_000).map(|_| scribe.load(&code)).collect();
    assert!(taken() > 4 << 20, "{}", taken());
    assert_eq!(snapshot(scribe).head.left_out, 0);
    drop((living, living_on));
}

#[test]
fn a_full_log_counts_the_codes_that_are_left_out() {
    let (builder, heard) = listening(Scribe::builder().limit(200 << 10));
    let scribe = builder.build();
    let kept: Vec<_> =
        (0..10_000).map(|n| scribe.load(&Code::at(0x1000 + n, 1).named("alive"))).collect();
    let before = snapshot(scribe);
    let count = codes(&before.bytes).len() as u64;
    assert_eq!(before.head.left_out + count, 10_000);
    assert!(before.head.left_out > 0 && count > 1000);
    assert_eq!(heard.lock().unwrap().len(), 1, "{heard:?}");
    drop(kept);
    let later: Vec<_> =
        (0..1_000).map(|n| scribe.load(&Code::at(0x9000 + n, 1).named("later"))).collect();
    let after = snapshot(scribe);
    let found = codes(&after.bytes).iter().filter(|code| code.name == b"later").count();
    // Some searched for space too soon after a search found none.
    assert!(found > 900, "{found}");
    assert_eq!(after.head.left_out - before.head.left_out, 1_000 - found as u64);
    drop(later);
}

#[test]
fn code_larger_than_a_chunk_is_written_and_its_space_reused() {
    let scribe = Scribe::builder().limit(2 << 20).bytes().build();
    let memory: Vec<u8> = (0..300_000_u32).map(|n| n as u8).collect();
    for round in 0..50_u8 {
        let small = scribe.load(&Code::at(0x1000, 1).named("small"));
        let size = 300_000 - usize::from(round) * 5_000;
        let large = scribe.load(&Code::new(&memory[..size]).named("large"));
        let snapshot = snapshot(scribe);
        assert_eq!(snapshot.head.left_out, 0, "round {round}");
        let codes = codes(&snapshot.bytes);
        let alive = living(&codes);
        assert_eq!(alive.len(), 2, "round {round}");
        assert_eq!(alive[1].bytes, &memory[..size]);
        drop((small, large));
    }
}

/// The processor's count, read before and after, holds the times of a code between.
#[cfg(target_arch = "x86_64")]
#[test]
#[allow(unsafe_code)]
fn timestamps_may_be_processor_ticks() {
    // SAFETY: every x86-64 has it.
    let ticks = || unsafe { core::arch::x86_64::_rdtsc() };
    let scribe = Scribe::builder().arch_clock().build();
    let start = ticks();
    let code = scribe.load(&Code::at(0x7000, 32).named("f"));
    let middle = ticks();
    drop(code);
    let end = ticks();
    let snapshot = snapshot(scribe);
    assert!(snapshot.head.arch_timestamp);
    let codes = codes(&snapshot.bytes);
    let [code] = codes.as_slice() else { panic!("{codes:?}") };
    assert!((start..=middle).contains(&code.timestamp), "{start} {} {middle}", code.timestamp);
    assert!(code.died().is_some_and(|died| (middle..=end).contains(&died)), "{middle} {end}");
    let quirks = jitdump::Quirks::detect(&jitdump::Dump::parse(&snapshot.bytes).unwrap());
    assert_eq!(quirks.record_clock, jitdump::RecordClock::Arch);
    let usual = crate::common::snapshot(Scribe::builder().build());
    assert!(!usual.head.arch_timestamp);
}
