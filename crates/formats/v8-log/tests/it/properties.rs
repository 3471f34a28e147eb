//! Properties of every log.

use proptest::collection::vec;
use proptest::prelude::*;
use v8_log::{Cause, Entry, Event, LineStarts, Reader, unescape};

/// A script's text as V8 writes it.
fn escaped(text: &str) -> String {
    let escape = |unit: u16| match u8::try_from(unit) {
        Ok(b',') => r"\x2C".to_owned(),
        Ok(b'\\') => r"\\".to_owned(),
        Ok(b'\n') => r"\n".to_owned(),
        Ok(byte @ 0x20..0x7f) => char::from(byte).to_string(),
        Ok(byte) => format!(r"\x{byte:02x}"),
        Err(_) => format!(r"\u{unit:04x}"),
    };
    text.encode_utf16().map(escape).collect()
}

/// Passes all entries to `take`; returns how many there were.
fn read(log: &[u8], mut take: impl FnMut(Entry<'_>)) -> usize {
    let mut reader = Reader::new(log);
    let mut count = 0;
    while let Some(entry) = reader.next_event().unwrap() {
        take(entry);
        count += 1;
    }
    count
}

/// A word of a log, or something like it.
fn word() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "code-creation",
        "code-source-info",
        "script-source",
        "code-move",
        "sfi-move",
        "JS",
        "13",
        "0x7f00",
        "f /a.js:1:2",
        "C0O1I2",
        "C1",
        "F0O1",
        "F",
        "S0x1S0x2",
        "\\x2C",
        "\\u12",
        "\n",
        ",",
    ];
    prop_oneof![
        4 => prop::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..4),
    ]
}

proptest! {
    #[test]
    fn codes_and_their_positions_are_read(
        codes in vec((any::<u64>(), any::<u32>(), any::<u64>(), "\\PC{0,9}", any::<bool>()), 0..9),
        positions in vec((any::<u32>(), proptest::option::of(any::<u32>()), proptest::option::of(any::<u32>())), 0..9),
        functions in vec(any::<u64>(), 0..5),
    ) {
        let mut log = String::from("v8-version,11,3,244,8,-node.38,0\nnew,MemoryChunk,0x1,262144\n");
        for (address, size, time, name, is_function) in &codes {
            let function = if *is_function { ",0x18a8,*" } else { "" };
            log += &format!("code-creation,JS,13,{time},{address:#x},{size},{}{function}\n", escaped(name));
        }
        let number = |number: Option<u32>| number.map_or("-1".to_owned(), |number| number.to_string());
        let list: String = positions.iter().map(|(at, offset, inlining)| {
            let inlining = inlining.map_or(String::new(), |number| format!("I{number}"));
            format!("C{at}O{}{inlining}", number(*offset))
        }).collect();
        let addresses: String = functions.iter().map(|address| format!("S{address:#x}")).collect();
        log += &format!("code-source-info,0x7f00,81,1,2,{list},F0O7F1O8I0FO-1,{addresses}\n");
        let mut read_codes = Vec::new();
        let mut infos = 0;
        read(log.as_bytes(), |entry| match entry.event.unwrap() {
            Event::Code(code) => {
                let (name, is_function) = (code.name(), code.function.is_some());
                read_codes.push((code.address, code.size as u32, code.time_us, name, is_function));
                assert_eq!(code.mark, if is_function { &b"*"[..] } else { b"" });
            }
            Event::SourceInfo(info) => {
                infos += 1;
                let read: Vec<_> = info.positions()
                    .map(|at| at.unwrap())
                    .map(|at| (at.code_offset, at.script_offset, at.inlining))
                    .collect();
                assert_eq!(read, positions);
                assert_eq!(info.functions().map(|at| at.unwrap()).collect::<Vec<_>>(), functions);
                let read: Vec<_> = info.inlinings()
                    .map(|call| call.unwrap())
                    .map(|call| (call.function, call.script_offset, call.parent))
                    .collect();
                assert_eq!(read, [(Some(0), Some(7), None), (Some(1), Some(8), Some(0)), (None, None, None)]);
            }
            other => panic!("{other:?}"),
        });
        prop_assert_eq!(infos, 1);
        prop_assert_eq!(read_codes, codes);
    }

    #[test]
    fn scripts_are_read_with_their_lines(url in "\\PC{0,9}", text in "(\\PC|\n|\r|\u{2028}){0,40}") {
        let log = format!("script-source,7,{},{}\n", escaped(&url), escaped(&text));
        let mut scripts = 0;
        read(log.as_bytes(), |entry| {
            let Ok(Event::Script(script)) = entry.event else { panic!("{entry:?}") };
            scripts += 1;
            assert_eq!((script.script, script.url(), script.text()), (7, url.clone(), text.clone()));
            let starts = LineStarts::new(script.escaped_text);
            // A naive count: each unit begins a line if what is before it ends one.
            let units: Vec<u16> = text.encode_utf16().collect();
            let (mut line, mut column) = (1, 1);
            for at in 0..=units.len() {
                assert_eq!(starts.place(at as u32), Some((line, column)), "{at}");
                let Some(unit) = units.get(at) else { break };
                let is_pair = *unit == 0x0d && units.get(at + 1) == Some(&0x0a);
                if [0x0a, 0x0d, 0x2028, 0x2029].contains(unit) && !is_pair {
                    (line, column) = (line + 1, 1);
                } else {
                    column += 1;
                }
            }
        });
        prop_assert_eq!(scripts, 1);
    }

    #[test]
    fn any_input_is_survived(words in vec(word(), 0..60)) {
        let log = words.concat();
        let mut behind = 0;
        let lines = log.iter().filter(|byte| **byte == b'\n').count();
        let count = read(&log, |entry| {
            assert!(entry.offset >= behind);
            behind = entry.offset + entry.len as u64;
            if let Ok(Event::SourceInfo(info)) = entry.event {
                info.positions().for_each(drop);
                info.inlinings().for_each(drop);
                info.functions().for_each(drop);
            }
        });
        prop_assert!(count <= lines + 1);
        prop_assert!(unescape(&log).len() <= 3 * log.len());
    }
}

#[test]
fn what_cannot_be_read_is_reported_and_skipped() {
    let log =
        b"code-creation,JS,13,1,0x7g,8,f\ncode-move,0x1,0x2\nsfi-move,0x3,0x4\ncode-creation,JS";
    let mut events = Vec::new();
    read(log, |entry| {
        events.push(match entry.event {
            Ok(Event::CodeMove(moved)) => format!("code {:x} {:x}", moved.from, moved.to),
            Ok(Event::FunctionMove(moved)) => format!("function {:x} {:x}", moved.from, moved.to),
            Ok(other) => panic!("{other:?}"),
            Err(error) => error.to_string(),
        })
    });
    assert_eq!(
        events,
        [
            "line 1 (offset 0x0): the address is missing or not valid",
            "code 1 2",
            "function 3 4",
            "line 4 (offset 0x42): the file ends within the line",
        ]
    );
}

#[test]
fn a_line_that_is_too_long_is_skipped() {
    let mut log = b"script-source,1,/a.js,".to_vec();
    log.resize(v8_log::LONGEST_LINE + 1, b'x');
    log.extend_from_slice(b"\ncode-move,0x1,0x2\n");
    let mut causes = Vec::new();
    read(&log, |entry| causes.push(entry.event.map(|_| ()).map_err(|error| error.cause)));
    assert_eq!(causes, [Err(Cause::TooLong), Ok(())]);
}
