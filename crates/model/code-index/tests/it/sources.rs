//! Several sources, several processes, and what is said of a code.

use code_index::{AddressSpaceId, CodeIndex, Frame, JITDUMP, PERF_MAP, Processes, format_of};
use jitdump::{ExtendedCode, Inlined, LineEntry};

use crate::dumps::Made;

const ONE: AddressSpaceId = AddressSpaceId::ONLY;

#[test]
fn the_last_source_that_has_a_code_takes_precedence() {
    let map = b"1000 20 old\n1000 10 in_map\n".as_slice();
    let mut made = Made::new();
    made.load(50, 0x1008, 1, "in_dump", &[0x90; 4]);
    let dump = made.bytes();
    let mut index = CodeIndex::new();
    for content in [map, dump.as_slice(), b"not a dump"] {
        let format = format_of(content).unwrap();
        let codes = index.add(&format, content).unwrap().codes;
        assert_eq!(
            codes,
            match format.name {
                "jitdump" => 1,
                _ => 2 * usize::from(content == map),
            }
        );
    }
    assert!(index.add(&JITDUMP, b"neither").is_err());
    let name = |time, address| {
        let found = index.at(ONE, time, address)?;
        let content = [map, dump.as_slice()][found.source];
        Some(index.describe(&found, content)?.name().to_vec())
    };
    assert_eq!(name(50, 0x1008).as_deref(), Some(&b"in_dump"[..]));
    assert_eq!(name(49, 0x1008).as_deref(), Some(&b"in_map"[..]), "a map has no times");
    assert_eq!(name(u64::MAX, 0x100c).as_deref(), Some(&b"in_map"[..]));
    assert_eq!(name(0, 0x1010).as_deref(), Some(&b"old"[..]));
    assert_eq!(name(0, 0x1020), None);
}

#[test]
fn a_forked_process_has_the_code_of_its_parent() {
    let mut made = Made::new();
    made.load(10, 0x1000, 1, "before", &[0x90; 4]);
    let other = Made::code(30, 0x1000, 2, "elsewhere", &[0xcc; 4]);
    made.whole(&ExtendedCode { pid: 8, ..other });
    let dump = made.bytes();
    let mut processes = Processes::new();
    processes.add(7);
    processes.fork(8, 7, 20);
    let mut index = CodeIndex::of_processes(processes);
    index.add(&JITDUMP, &dump).unwrap();
    let name = |pid, time| {
        let found = index.at(index.space(pid, time)?, time, 0x1002)?;
        Some(index.describe(&found, &dump)?.name().to_vec())
    };
    assert_eq!(name(8, 25).as_deref(), Some(&b"before"[..]));
    assert_eq!(name(8, 30).as_deref(), Some(&b"elsewhere"[..]));
    assert_eq!(name(7, 30).as_deref(), Some(&b"before"[..]));
    assert_eq!(name(9, 30), None);
}

#[test]
fn lines_calls_and_tier_are_those_of_the_place_where_the_code_is() {
    let lines = [(0x1000, 3), (0x1004, 5)];
    let lines = lines.map(|(address, line)| LineEntry { address, file: b"a.src", line, column: 0 });
    let call = Inlined {
        parent: None,
        name: b"inner",
        file: b"a.src",
        line: 4,
        column: 0,
        ranges: vec![0x1004..0x1005, 0x1005..0x1006],
    };
    let code = Made::code(10, 0x1000, 1, "outer", &[0x90; 8]);
    let code = ExtendedCode { lines: &lines, inlined: &[call], tier: Some(b"opt"), ..code };
    let mut made = Made::new();
    made.whole(&code);
    made.moved(20, 1, 0x1000, 0x2000, 8);
    let dump = made.bytes();
    let mut index = CodeIndex::new();
    index.add(&JITDUMP, &dump).unwrap();
    for (time, start) in [(10, 0x1000), (20, 0x2000)] {
        let found = index.at(ONE, time, start + 5).unwrap();
        let described = index.describe(&found, &dump).unwrap();
        assert_eq!(described.tier(), Some(&b"opt"[..]));
        let frames: Vec<(Vec<u8>, u32, bool)> = described
            .lines()
            .at(start + 5)
            .map(|Frame { function, line, inlined, .. }| (function.to_vec(), line, inlined))
            .collect();
        assert_eq!(frames, [(b"inner".to_vec(), 5, true), (b"outer".to_vec(), 4, false)]);
    }
    assert!(index.at(ONE, 20, 0x1005).is_none());
    assert!(index.describe(&index.last(ONE, 0x2000).unwrap(), b"").is_none());
}

#[test]
fn unloaded_code_is_kept_where_that_is_asked_for() {
    let mut made = Made::new();
    let code = Made::code(10, 0x1000, 1, "gone", &[0x90; 8]);
    made.whole(&ExtendedCode { died: Some(20), ..code });
    made.load(30, 0x1004, 2, "new", &[0xcc; 4]);
    let dump = made.bytes();
    for keeps in [false, true] {
        let index = CodeIndex::new();
        let mut index = if keeps { index.keeping_unloaded() } else { index };
        index.add(&JITDUMP, &dump).unwrap();
        assert_eq!(index.last(ONE, 0x1000).map(|found| found.size), keeps.then_some(8));
        let found = index.last(ONE, 0x1004).unwrap();
        let described = index.describe(&found, &dump).unwrap();
        assert_eq!((described.name(), described.machine()), (&b"new"[..], Some(62)));
    }
}

#[test]
fn a_map_without_a_dump_is_recognized() {
    assert_eq!(format_of(b"1000 20 f\n").unwrap().name, PERF_MAP.name);
    assert!(format_of(&[0, 1, 2]).is_none());
}
