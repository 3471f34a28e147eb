//! Traces of LuaJIT.

use found_code::Compilers;

use crate::memory::{CODE, CODE_SIZE, FORMS, Memory, Seen};

#[test]
fn traces_have_number_file_and_line_in_each_layout() {
    for form in FORMS {
        let mut memory = Memory::new(form);
        let mut seen = Seen::default();
        assert!(seen.poll(&memory).is_empty());
        memory.trace(1, 0, CODE, 0x100);
        memory.trace(3, 4, CODE + 0x100, 0x80);
        let mut names = Vec::new();
        for _ in 0..4 {
            names = seen.poll(&memory);
        }
        assert_eq!(names, ["TRACE_1::a.lua:10", "TRACE_3::a.lua:14"], "{form:?}");
        let (code, _) = seen.codes.values().last().expect("a code");
        assert_eq!((code.file.as_slice(), code.line), (&b"a.lua"[..], 14));
        assert_eq!((code.address, code.size), (CODE + 0x100, 0x80));
        assert_eq!(code.frame.expect("a frame").size, 96);
    }
}

#[test]
fn what_is_not_a_file_is_called_as_luajit_does() {
    for (source, name) in [(&b"=stdin"[..], "stdin"), (b"return 1", "(string)")] {
        let mut memory = Memory::new(FORMS[0]);
        memory.source(source);
        memory.trace(1, 1, CODE, 0x100);
        assert_eq!(Seen::default().poll(&memory), [format!("TRACE_1::{name}:11")]);
    }
}

#[test]
fn traces_that_go_and_come_are_noticed_at_the_next_poll() {
    let mut memory = Memory::new(FORMS[0]);
    memory.trace(1, 0, CODE, 0x100);
    let mut seen = Seen::default();
    assert_eq!(seen.poll(&memory), ["TRACE_1::a.lua:10"]);
    assert_eq!(seen.poll(&memory).len(), 1);
    memory.trace(2, 2, CODE + 0x100, 0x100);
    assert_eq!(seen.poll(&memory), ["TRACE_1::a.lua:10", "TRACE_2::a.lua:12"]);
    // It was not there at the poll before.
    assert_eq!(seen.codes.values().last().map(|(_, since)| *since), Some(20));
    memory.without_trace(1);
    assert_eq!(seen.poll(&memory), ["TRACE_2::a.lua:12"]);
    // Another trace in its place.
    memory.trace(2, 3, CODE + 0x200, 0x100);
    assert_eq!(seen.poll(&memory), ["TRACE_2::a.lua:13"]);
    // All are thrown away, and others are made.
    memory.without_trace(2);
    assert!(seen.poll(&memory).is_empty());
    memory.trace(1, 5, CODE, 0x40);
    assert_eq!(seen.poll(&memory), ["TRACE_1::a.lua:15"]);
}

#[test]
fn what_the_first_scan_finds_may_be_there_from_the_beginning() {
    let mut memory = Memory::new(FORMS[0]);
    memory.trace(1, 0, CODE, 0x100);
    let mut seen = Seen { compilers: Compilers::default(), ..Seen::default() };
    for _ in 0..3 {
        assert!(seen.poll(&memory).is_empty());
    }
    seen.compilers = Compilers::ALL;
    assert_eq!(seen.poll(&memory).len(), 1);
    assert_eq!(seen.codes.values().map(|(_, since)| *since).collect::<Vec<_>>(), [0]);
}

#[test]
fn a_trace_of_which_one_pointer_is_wrong_is_none() {
    let whole = {
        let mut memory = Memory::new(FORMS[0]);
        memory.trace(1, 2, CODE, 0x100);
        memory
    };
    let names = |memory: &Memory| Seen::default().poll(memory);
    assert_eq!(names(&whole).len(), 1);
    let trace = 0x1100;
    let function = 0x400;
    // The function, the instruction, the code, its size, the source, the number of instructions, the table of lines.
    let fields = [trace + 64, trace + 72, trace + 88, function + 64, function + 80];
    for at in fields {
        for wrong in [1, 8, u64::MAX, 0x7fff_0000_0000, CODE + CODE_SIZE - 1] {
            let mut memory = whole.clone();
            memory.u64(at, wrong);
            assert!(names(&memory).is_empty(), "{wrong:#x} at {at:#x}");
        }
    }
    for (at, wrong) in
        [(trace + 84, 0), (trace + 84, 0x10001), (function + 12, 2), (trace + 104, 2)]
    {
        let mut memory = whole.clone();
        memory.u32(at, wrong);
        assert!(names(&memory).is_empty(), "{wrong:#x} at {at:#x}");
    }
}
