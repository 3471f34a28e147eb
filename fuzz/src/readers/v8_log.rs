//! The code log of V8 on any bytes.

use v8_log::{Event, LineStarts, Reader};

/// Reads it, and checks what must hold.
pub fn run(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let mut behind = 0;
    while let Some(entry) = reader.next_event().expect("memory to read") {
        assert!(entry.offset >= behind);
        behind = entry.offset + entry.len as u64;
        let line = &bytes[entry.offset as usize..behind as usize];
        match entry.event {
            Ok(event) => {
                // A line that was read alone is the same.
                assert_eq!(Event::parse(line), Ok(Some(event)));
                look_at(event);
            }
            Err(error) => assert_eq!(error.offset, entry.offset),
        }
    }
    assert!(behind <= bytes.len() as u64);
}

fn look_at(event: Event<'_>) {
    match event {
        Event::Code(code) => {
            let _ = v8_log::split_name(&code.name(), "/a.js");
        }
        Event::SourceInfo(info) => {
            // Only the last item may be malformed.
            let positions: Vec<_> = info.positions().collect();
            assert!(positions.iter().rev().skip(1).all(Result::is_ok));
            let inlinings: Vec<_> = info.inlinings().collect();
            assert!(inlinings.iter().rev().skip(1).all(Result::is_ok));
            assert_eq!(info.has_inlinings(), !inlinings.is_empty());
            info.functions().for_each(drop);
        }
        Event::Script(script) => {
            let starts = LineStarts::new(script.escaped_text);
            let units = script.text().encode_utf16().count() as u32;
            assert!(starts.place(units).is_some() && starts.place(units + 1).is_none());
            let places: Vec<_> = (0..units.min(1000)).map(|at| starts.place(at)).collect();
            assert!(places.is_sorted());
        }
        _ => {}
    }
}
