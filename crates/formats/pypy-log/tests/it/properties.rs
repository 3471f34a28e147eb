//! What holds for any bytes.

use proptest::prelude::*;
use pypy_log::{Reader, Trace};

use super::real::traces;

/// Lines as a log has them, and others.
fn log() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("[10] {jit-backend-addr".to_owned()),
        Just("[11] jit-backend-addr}".to_owned()),
        Just("[12] {jit-log-opt-loop".to_owned()),
        Just("[13] jit-log-opt-loop}".to_owned()),
        Just("[14] {other".to_owned()),
        (0..3_u8, 0..200_u64, 0..200_u64).prop_map(|(n, a, b)| format!(
            "Loop {n} (f;/a:1-{n}~#0 X) has address {a:#x} to {b:#x} (bootstrap {a:#x})"
        )),
        (0..3_u8, 0..200_u64, 0..200_u64).prop_map(|(n, a, b)| format!(
            "bridge out of Guard 0x{n} has address {a:#x} to {b:#x}"
        )),
        (0..3_u8).prop_map(|n| format!("# Loop {n} (f;/a:1-{n}~#0 X) : loop with 1 ops")),
        (0..3_u8).prop_map(|n| format!("# bridge out of Guard 0x{n} with 1 ops")),
        (any::<u32>(), 0..9_u8).prop_map(|(depth, line)| format!(
            "debug_merge_point({depth}, 0, 'g;/b:1-{line}~#1 Y')"
        )),
        (any::<u64>(), 0..3_u8)
            .prop_map(|(offset, n)| format!("+{offset}: guard_true(descr=<Guard0x{n}>)")),
        (0..200_u64).prop_map(|address| format!("  gc table: {address:#x}")),
        (0..200_u64).prop_map(|address| format!("  end: {address:#x}")),
        ".{0,40}",
    ];
    let lines = proptest::collection::vec(line, 0..60);
    (lines, proptest::collection::vec(any::<u8>(), 0..30)).prop_map(|(lines, rest)| {
        let mut log = lines.join("\n").into_bytes();
        log.extend(rest);
        log
    })
}

proptest! {
    #[test]
    fn parts_give_what_the_whole_gives(log in log(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(log.len() + 1)).collect();
        cuts.extend([0, log.len()]);
        cuts.sort_unstable();
        let mut reader = Reader::default();
        let mut found: Vec<Trace> = Vec::new();
        for cut in cuts.windows(2) {
            reader.take(&log[cut[0]..cut[1]], |trace| found.push(trace));
        }
        reader.finish(|trace| found.push(trace));
        prop_assert_eq!(found, traces(&log));
    }

    #[test]
    fn traces_are_as_documented(log in log()) {
        for trace in traces(&log) {
            prop_assert!(!trace.range.is_empty());
            let addresses: Vec<u64> = trace.positions.iter().map(|position| position.address).collect();
            prop_assert!(addresses.is_sorted());
            prop_assert!(addresses.iter().all(|address| trace.range.contains(address)));
        }
    }
}

/// A log of places that are all different, in one trace.
#[test]
fn what_is_held_is_bounded() {
    let mut reader = Reader::default();
    let mut found = Vec::new();
    let begin = "[1] {jit-backend-addr\nLoop 1 (f) has address 0x10 to 0xfffffff (bootstrap 0x8)\n[2] jit-backend-addr}\n\
                 [3] {jit-log-opt-loop\n# Loop 1 (f) : loop with 9 ops\n";
    reader.take(begin.as_bytes(), |trace| found.push(trace));
    let name = "x".repeat(1000);
    for line in 0..100_000 {
        let text = format!(
            "debug_merge_point(0, 0, '{name}{line};/a:1-2~#0 X')\n+{line}: i1 = int_add()\n"
        );
        reader.take(text.as_bytes(), |trace| found.push(trace));
        assert!(reader.held() < 64 << 20);
    }
    let endless = vec![b'+'; 1 << 16];
    for _ in 0..1000 {
        reader.take(&endless, |trace| found.push(trace));
    }
    assert!(reader.held() < 64 << 20);
    reader.finish(|trace| found.push(trace));
    let held: usize = found[0].positions.iter().map(|position| position.place.function.len()).sum();
    assert!((1 << 20..20 << 20).contains(&held), "{held}");
}
