//! perf.data recordings: files and pipes, compressed or not, and the writer on what was read.
use std::io::Cursor;

use perf_data::{End, Input, Record, Writer};

/// What can be asked of the recording as a whole.
fn ask(input: &Input) {
    for attr in input.attrs().list() {
        for id in attr.ids() {
            assert!(input.attrs().by_id(*id).is_some());
        }
    }
    let _ = input.attrs().trailer(1, 2, 3);
    let _ = input.features().build_ids(input.endian());
    let _ = input.features().clock_data(input.endian());
}

/// All events, each decoded as far as it can be.
fn events(input: &mut Input) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(event) = input.next_event().expect("reading from memory") {
        let _ = event.timestamp();
        let _ = event.attr();
        match event.record() {
            Ok(Record::Mmap(map)) => {
                let _ = map.is_executable();
                if let Some(bytes) = map.encode(event.endian(), &[]) {
                    assert!(!bytes.is_empty());
                }
            }
            Ok(record) => {
                let _ = format!("{record:?}");
            }
            Err(_) => {}
        }
        all.push(event.bytes().to_vec());
    }
    all
}

/// Those that say something of the recorded processes. The others describe the recording, and are
/// part of its header in one format and events in the other.
fn of_the_kernel(mut events: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    events.retain(|event| {
        let kind = event.first_chunk().map(|kind| u32::from_le_bytes(*kind));
        kind.is_some_and(|kind| kind.min(kind.swap_bytes()) < perf_data::kind::USER_TYPE_START)
    });
    events
}

/// Reads it in every way, and checks what must hold.
pub fn run(bytes: &[u8]) {
    let Ok(mut input) = Input::from_bytes(bytes.to_vec()) else { return };
    ask(&input);
    let first = events(&mut input);
    input.restart();
    let mut file = Vec::new();
    let mut pipe = Vec::new();
    let mut to_file = Writer::file(Cursor::new(&mut file), &input).expect("writing to memory");
    let mut to_pipe = Writer::pipe(&mut pipe, &input);
    let mut again = Vec::new();
    let mut written = true;
    while let Some(event) = input.next_event().expect("reading from memory") {
        again.push(event.bytes().to_vec());
        written &= to_file.write_event(&event).is_ok() & to_pipe.write_event(&event).is_ok();
    }
    assert_eq!(first, again, "reading twice");
    written &= to_file.finish().is_ok() & to_pipe.finish().is_ok();
    if !written {
        return;
    }
    for copy in [file, pipe] {
        let mut copy = Input::from_bytes(copy).expect("a recording we wrote");
        assert_eq!(of_the_kernel(events(&mut copy)), of_the_kernel(first.clone()));
        assert_eq!(copy.end(), End::Complete);
    }
}
