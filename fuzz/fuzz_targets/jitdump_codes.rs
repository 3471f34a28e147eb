//! Jitdumps, the unified level: what a consumer asks of every code of any bytes.
#![no_main]

use jitdump::{CodeEvent, Dump};
use jitscribe_fuzz as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(dump) = Dump::parse(bytes) else { return };
    for event in dump.codes() {
        let Ok(CodeEvent::Load(code)) = event else { continue };
        assert_eq!(code.bytes.len() as u64, code.size);
        assert!(!code.name.contains(&0));
        for line in code.lines() {
            assert!((code.address..code.end()).contains(&line.address));
        }
        if let Some(unwind) = code.unwind() {
            assert!(unwind.eh_frame.len() + unwind.eh_frame_hdr.len() <= bytes.len());
        }
    }
});
