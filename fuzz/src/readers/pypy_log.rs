//! The log of PyPy on any bytes, and its translation to a jitdump.

use code_index::{LogTranslator, translate_log};
use jitdump::{CodeEvent, Dump};
use pypy_log::{Reader, Trace};

/// Reads it as a whole and in parts, and checks what must hold.
pub fn run(bytes: &[u8]) {
    let whole = traces(&[bytes]);
    for trace in &whole {
        assert!(!trace.range.is_empty());
        assert!(trace.positions.iter().all(|position| trace.range.contains(&position.address)));
        assert!(trace.positions.is_sorted_by_key(|position| position.address));
    }
    let half = bytes.split_at(bytes.len() / 2);
    assert_eq!(traces(&[half.0, half.1]), whole);

    let Some(dump) = translate_log(bytes, 7) else {
        assert!(!pypy_log::recognizes(bytes));
        return;
    };
    // A code that is too large for a record is left out.
    let codes = Dump::parse(&dump).expect("a jitdump").codes().map(|event| match event {
        Ok(CodeEvent::Load(load)) => load.address..load.end(),
        other => panic!("{other:?}"),
    });
    let mut traces = whole.iter().map(|trace| trace.range.clone());
    codes.for_each(|code| assert!(traces.any(|trace| trace == code)));
    let mut translator = LogTranslator::of(bytes, 7).expect("a log");
    let mut parts = translator.header();
    translator.take(half.0, &mut parts);
    translator.take(half.1, &mut parts);
    translator.finish(&mut parts);
    assert_eq!(parts, dump);
}

fn traces(parts: &[&[u8]]) -> Vec<Trace> {
    let mut traces = Vec::new();
    let mut reader = Reader::default();
    for part in parts {
        reader.take(part, |trace| traces.push(trace));
    }
    reader.finish(|trace| traces.push(trace));
    traces
}
