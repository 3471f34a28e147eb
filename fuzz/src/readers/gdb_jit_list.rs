//! GDB's JIT list, its objects, and the files that have its head, on any bytes.

use std::collections::HashSet;

use gdb_jit_list::{Change, Heads, List, Symfile};

/// Reads the bytes as memory with lists, as an object, and as a program, and checks what must hold.
pub fn run(bytes: &[u8]) {
    let mut list = List::default();
    let mut live = HashSet::new();
    for from in [0, bytes.len() / 2] {
        list.poll(&bytes[from..], &[0, 8, 64, u64::MAX], |change| match change {
            Change::Registered { id, .. } => assert!(live.insert(id)),
            Change::Unregistered { id } => assert!(live.remove(&id)),
        });
    }
    if let Some(heads) = Heads::find(bytes) {
        let found = heads.in_process(0x1000..0x9000, 0).count();
        assert!(found <= heads.addresses.len());
    }
    let Some(symfile) = Symfile::parse(bytes) else { return };
    let functions = symfile.functions();
    assert!(
        functions.iter().all(|one| one.size > 0 && one.address.checked_add(one.size).is_some())
    );
    assert!(functions.windows(2).all(|two| two[0].range().end <= two[1].address));
    let frames = symfile.frames();
    for function in &functions {
        let section = frames.of(&function.range());
        assert!(section.is_none_or(|section| section.len() < bytes.len() + 8));
    }
    assert!(symfile.lines().is_sorted_by_key(|line| line.address));
}
