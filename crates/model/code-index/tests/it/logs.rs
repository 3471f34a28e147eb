//! Logs of runtimes in formats of their own.

use code_index::{AddressSpaceId, CodeIndex, JITDUMP, LogTranslator, translate_log};
use jitdump::{CodeEvent, Dump};
use proptest::prelude::*;

const PYPY: &[u8] = include_bytes!("../../../../formats/pypy-log/tests/data/pypy-7.3.11.log");

/// Function and line of the frames at an address, the innermost first.
fn frames(index: &CodeIndex, dump: &[u8], address: u64) -> Vec<(String, u32)> {
    let found = index.last(AddressSpaceId::ONLY, address).expect("a code");
    let lines = index.describe(&found, dump).expect("its description").lines();
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    lines.at(address).map(|frame| (text(frame.function), frame.line)).collect()
}

#[test]
fn pypy_has_names_tiers_lines_and_inlined_calls() {
    let dump = translate_log(PYPY, 7).expect("a log");
    let mut index = CodeIndex::new();
    let added = index.add(&JITDUMP, &dump).expect("a jitdump");
    assert_eq!((added.codes, added.damaged), (2, 0));
    let found = index.last(AddressSpaceId::ONLY, 0x7ff3_f40e_29d0).expect("the loop");
    let code = index.describe(&found, &dump).expect("its description");
    assert_eq!((code.name(), code.tier()), (&b"outer"[..], Some(&b"loop"[..])));
    let table = 0x7ff3_f40e_2950;
    let outer = |line| vec![("outer".to_owned(), line)];
    assert_eq!(frames(&index, &dump, table + 128), outer(6), "where it begins");
    assert_eq!(frames(&index, &dump, table + 460), outer(7));
    assert_eq!(frames(&index, &dump, table + 520), outer(10));
    let bridge = 0x7ff3_f40e_2e80;
    assert_eq!(frames(&index, &dump, bridge + 110), outer(8));
    let inlined = [("leaf".to_owned(), 2), ("outer".to_owned(), 8)];
    assert_eq!(frames(&index, &dump, bridge + 170), inlined);
    assert_eq!(frames(&index, &dump, bridge + 186), outer(8), "behind the call");
}

#[test]
fn a_function_that_a_bridge_returns_to_is_not_its_own() {
    let log = "[1] {jit-backend-addr\nbridge out of Guard 0x1 has address 0x100 to 0x180\n[2] jit-backend-addr}\n\
               [3] {jit-log-opt-bridge\n# bridge out of Guard 0x1 with 9 ops\n\
               debug_merge_point(1, 1, 'leaf;/a.py:1-2~#0 X')\n+16: i1 = int_add()\n\
               debug_merge_point(0, 0, 'outer;/a.py:5-6~#0 X')\n+32: i1 = int_add()\n\
               debug_merge_point(1, 1, 'leaf;/a.py:1-3~#0 X')\n+48: i1 = int_add()\n\
               [4] jit-log-opt-bridge}\n";
    let dump = translate_log(log.as_bytes(), 7).expect("a log");
    let mut index = CodeIndex::new();
    index.add(&JITDUMP, &dump).expect("a jitdump");
    let at = |address| frames(&index, &dump, address);
    let frame = |name: &str, line| (name.to_owned(), line);
    assert_eq!(at(0x110), [frame("leaf", 2)]);
    assert_eq!(at(0x120)[0], frame("outer", 6));
    assert_eq!(at(0x130)[..2], [frame("leaf", 3), frame("outer", 6)]);
}

#[test]
fn what_is_no_log_is_not_translated() {
    for content in [&b""[..], b"1000 20 name\n", b"DTiJ\x01\0\0\0", &dump_of(7)] {
        assert_eq!(translate_log(content, 7), None);
    }
}

fn dump_of(pid: u32) -> Vec<u8> {
    translate_log(PYPY, pid).expect("a log")
}

proptest! {
    #[test]
    fn a_translation_is_a_jitdump_without_damage(
        log in proptest::collection::vec(any::<prop::sample::Index>(), 0..80),
        cut in any::<prop::sample::Index>(),
    ) {
        // Lines of the log in any order.
        let lines: Vec<&[u8]> = PYPY.split_inclusive(|byte| *byte == b'\n').collect();
        let mut content = b"[1] {jit-backend-addr\n".to_vec();
        log.iter().for_each(|line| content.extend_from_slice(lines[line.index(lines.len())]));
        let whole = translate_log(&content, 7).expect("a log");
        let dump = Dump::parse(&whole).expect("a jitdump");
        for event in dump.codes() {
            let CodeEvent::Load(load) = event.expect("no damage") else { panic!("a load") };
            prop_assert_eq!(load.pid, 7);
        }
        // In parts, it is the same.
        let (first, second) = content.split_at(cut.index(content.len()));
        let mut translator = LogTranslator::of(&content, 7).expect("a log");
        let mut parts = translator.header();
        translator.take(first, &mut parts);
        translator.take(second, &mut parts);
        translator.finish(&mut parts);
        prop_assert_eq!(parts, whole);
    }
}
