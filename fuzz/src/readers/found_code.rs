//! Code that is found in the memory of a process, and compilers in a file, on any bytes.

use std::collections::HashSet;

use found_code::{Change, Compilers, Finder, Mapped, Poll};

/// Reads the bytes as memory at address 0, of which the last part is code, and as a program, and checks what must hold.
pub fn run(bytes: &[u8]) {
    let _ = Compilers::find(bytes);
    let size = bytes.len() as u64;
    let (data, code) = (0..size, 1 << 20..2 << 20);
    let mapped = Mapped { data: [data].into(), code: [code.clone()].into() };
    let mut finder = Finder::default();
    let mut live = HashSet::new();
    for from in [0, bytes.len() / 2, 0, 0] {
        let poll = Poll {
            memory: &bytes[from..],
            mapped: &mapped,
            compilers: Compilers::ALL,
            bytes: size,
            now: 1,
            last: 0,
        };
        finder.poll(
            &poll,
            |_| None,
            |change| match change {
                Change::Found { id, code: found, .. } => {
                    assert!(live.insert(id));
                    assert!(code.contains(&found.address) && found.size > 0);
                    assert!(found.address + found.size <= code.end);
                }
                Change::Gone { id } => assert!(live.remove(&id)),
            },
        );
    }
}
