//! Which code was where, from sources of any bytes.

use code_index::{AddressSpaceId, CodeIndex, FORMATS, JITDUMP};
use jitdump::{CodeEvent, Dump};

const ONE: AddressSpaceId = AddressSpaceId::ONLY;
/// Each code is described for itself, which takes long where there are many.
const ASKED: usize = 64;

/// Reads it as a source of each format, and asks about the addresses and times that it names.
pub fn run(bytes: &[u8]) {
    for keeps_unloaded in [false, true] {
        let mut index = CodeIndex::new();
        if keeps_unloaded {
            index = index.keeping_unloaded();
        }
        for format in &FORMATS {
            let added = index.add(format, bytes).map_or(0, |added| added.codes);
            assert!(added <= bytes.len());
        }
        for (time, address) in questions(bytes).into_iter().take(ASKED) {
            answer(&index, time, address, bytes);
        }
    }
    // A source that changes while it is asked.
    let mut index = CodeIndex::new();
    if index.add(&JITDUMP, bytes).is_ok() {
        let cut = bytes.get(..bytes.len() / 2).unwrap_or_default();
        for (time, address) in questions(bytes).into_iter().take(ASKED) {
            answer(&index, time, address, cut);
        }
    }
}

/// Checks what is said of an address at a time.
fn answer(index: &CodeIndex, time: u64, address: u64, content: &[u8]) {
    for found in [index.at(ONE, time, address), index.last(ONE, address)].into_iter().flatten() {
        assert!(address.checked_sub(found.start).is_some_and(|offset| offset < found.size));
        let Some(code) = index.describe(&found, content) else { continue };
        let lines = code.lines();
        let last = lines.at(address).last().expect("the code itself");
        assert!(!last.inlined && last.function == code.name());
        assert!(lines.line_start(address).is_none_or(|start| start <= address));
        let _ = (code.machine(), code.tier(), code.bytes(), code.frames());
    }
}

/// Times and addresses at which something is, or just not.
fn questions(bytes: &[u8]) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    for entry in perf_map::entries(bytes).flatten().take(ASKED) {
        all.extend([(0, entry.address), (u64::MAX, entry.end().wrapping_sub(1))]);
    }
    let Ok(dump) = Dump::parse(bytes) else { return all };
    for event in dump.codes().flatten() {
        match event {
            CodeEvent::Load(load) => all.extend([
                (load.timestamp, load.address),
                (load.timestamp.wrapping_sub(1), load.address),
                (load.died().unwrap_or(u64::MAX), load.end().wrapping_sub(1)),
            ]),
            CodeEvent::Move(moved) => all.extend([
                (moved.timestamp, moved.old_address),
                (moved.timestamp, moved.new_address),
            ]),
            _ => {}
        }
    }
    all
}
