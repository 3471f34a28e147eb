//! What PyPy 7.3.11 wrote for a loop with a call, and logs that are like it.

use pypy_log::{Reader, Trace, TraceKind, recognizes};

const LOG: &[u8] = include_bytes!("../data/pypy-7.3.11.log");

/// The traces of a log, with line ends as in the log.
pub fn traces(log: &[u8]) -> Vec<Trace> {
    let mut traces = Vec::new();
    let mut reader = Reader::default();
    reader.take(log, |trace| traces.push(trace));
    reader.finish(|trace| traces.push(trace));
    traces
}

/// Function and line of each position, from the code's beginning.
fn positions(trace: &Trace) -> Vec<(u64, u32, String, u32)> {
    let positions = trace.positions.iter().map(|position| {
        let function = String::from_utf8_lossy(&position.place.function).into_owned();
        (position.address - trace.range.start, position.depth, function, position.place.line)
    });
    positions.collect()
}

#[test]
fn a_loop_and_a_bridge_have_addresses_names_and_lines() {
    assert!(recognizes(LOG) && recognizes(&LOG[..32]));
    let traces = traces(LOG);
    let [first, second] = traces.as_slice() else { panic!("{traces:?}") };
    let place = |trace: &Trace| {
        let place = trace.place.as_deref().expect("a place");
        format!("{} {}:{}", place.function.escape_ascii(), place.file.escape_ascii(), place.line)
    };
    assert_eq!((first.kind, first.time), (TraceKind::Loop, 0x22f5_86af_12b3));
    assert_eq!(first.range, 0x7ff3_f40e_29d0..0x7ff3_f40e_2dc7);
    assert_eq!(place(first), "outer /src.py:6");
    let at = |offset, depth, function: &str, line| (offset, depth, function.to_owned(), line);
    // Offsets in the log count from the table in front of the code, 128 bytes earlier.
    let lines = [(384, 6), (438, 7), (510, 10), (566, 6), (589, 7), (645, 10), (681, 6)];
    assert_eq!(positions(first), lines.map(|(offset, line)| at(offset - 128, 0, "outer", line)));

    assert_eq!((second.kind, second.time), (TraceKind::Bridge, 0x22f5_86fb_35ca));
    assert_eq!(second.range, 0x7ff3_f40e_2ed0..0x7ff3_f40e_30bf);
    assert_eq!(place(second), "outer /src.py:7");
    let lines = [(104, 0, 7), (104, 0, 8), (161, 1, 2), (184, 0, 8)];
    let lines = lines.map(|(offset, depth, line)| {
        at(offset - 80, depth, if depth == 0 { "outer" } else { "leaf" }, line)
    });
    assert_eq!(positions(second)[..4], lines);
}

#[test]
fn without_operations_a_loop_has_its_name_alone() {
    let text = std::str::from_utf8(LOG).expect("text");
    let is_operation = |line: &&str| {
        !line.starts_with('+') && !line.starts_with("debug_merge") && !line.starts_with("# ")
    };
    let log: String = text.lines().filter(is_operation).map(|line| format!("{line}\n")).collect();
    let traces = traces(log.as_bytes());
    let names = traces.iter().map(|trace| trace.place.as_deref().map(|place| place.line));
    assert_eq!(names.collect::<Vec<_>>(), [Some(6), None]);
    assert!(traces.iter().all(|trace| trace.positions.is_empty()));
}

/// Its operations begin after the line at which the guard failed.
#[test]
fn a_bridge_without_lines_begins_where_its_guard_is() {
    let log = "[1] {jit-backend-addr\n\
               Loop 7 (f;/a.py:1-2~#0 LOAD_FAST) has address 0x1040 to 0x1080 (bootstrap 0x1000)\n\
               [2] jit-backend-addr}\n\
               [3] {jit-log-opt-loop\n# Loop 7 (f;/a.py:1-2~#0 LOAD_FAST) : loop with 2 ops\n\
               debug_merge_point(0, 0, 'f;/a.py:1-5~#9 COMPARE_OP')\n+80: guard_true(i1, descr=<Guard0xabc>) [p0]\n\
               [4] jit-log-opt-loop}\n\
               [5] {jit-backend-addr\nbridge out of Guard 0xabc has address 0x2000 to 0x2040\n[6] jit-backend-addr}\n\
               [7] {jit-log-opt-bridge\n# bridge out of Guard 0xabc with 1 ops\n+3: jump(p0)\n[8] jit-log-opt-bridge}\n";
    let traces = traces(log.as_bytes());
    assert_eq!(
        traces[0].positions[0].address, 0x1050,
        "offsets count from the code if there is no table"
    );
    let place = traces[1].place.as_deref().expect("a place");
    assert_eq!((&*place.function, &*place.file, place.line), (&b"f"[..], &b"/a.py"[..], 5));
}

#[test]
fn places_of_old_versions_and_of_other_interpreters_are_names() {
    let of = |text: &str| {
        let log = format!(
            "[1] {{jit-backend-addr\nLoop 0 ({text}) has address 0x10 to 0x20 (bootstrap 0x8)\n"
        );
        let traces = traces(log.as_bytes());
        let place = traces[0].place.clone().expect("a place");
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        (text(&place.function), text(&place.file), place.line)
    };
    let old = "<code object run. file '/a b.py'. line 12> #21 FOR_ITER";
    assert_eq!(of(old), ("run".into(), "/a b.py".into(), 12));
    assert_eq!(of("re.match at 7/3"), ("re.match at 7/3".into(), String::new(), 0));
    assert_eq!(of("f;C:\\a.py:1-2~#0 X"), ("f".into(), "C:\\\\a.py".into(), 2));
    assert_eq!(of("a\0b;/x:1-2~#0 X"), ("a?b".into(), "/x".into(), 2));
}

#[test]
fn other_texts_are_no_logs() {
    for text in ["", "[", "1000 10 name\n", "[12] text\n", "[xy] {jit\n", "[12] {\n", "[12] jit}\n"]
    {
        assert!(!recognizes(text.as_bytes()), "{text:?}");
    }
}
