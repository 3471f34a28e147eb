//! Any bytes in the place of lists, objects and files.

use gdb_jit_list::{Change, Heads, List, Symfile, limits};
use proptest::prelude::*;

const SYMFILES: [&[u8]; 4] = [
    include_bytes!("../symfiles/lli-14.o"),
    include_bytes!("../symfiles/numba-debug.o"),
    include_bytes!("../symfiles/wasmtime.o"),
    include_bytes!("../symfiles/php.o"),
];

fn read(object: &[u8]) {
    let _ = Heads::find(object);
    let Some(symfile) = Symfile::parse(object) else { return };
    let functions = symfile.functions();
    assert!(functions.len() <= limits::FUNCTIONS);
    assert!(functions.iter().all(|it| it.size > 0 && it.address.checked_add(it.size).is_some()));
    assert!(functions.windows(2).all(|two| two[0].range().end <= two[1].address));
    let frames = symfile.frames();
    let sections = functions.iter().filter_map(|it| frames.of(&it.range()));
    assert!(sections.map(|section| section.len()).all(|size| size <= object.len() + 4));
    let lines = symfile.lines();
    assert!(lines.windows(2).all(|two| two[0].address < two[1].address));
}

proptest! {
    #[test]
    fn any_object_is_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read(&bytes);
        let mut elf = b"\x7fELF\x02\x01".to_vec();
        elf.extend(bytes);
        read(&elf);
    }

    #[test]
    fn any_damaged_object_is_read(
        which in 0_usize..4,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..30),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut object = SYMFILES[which].to_vec();
        for (at, byte) in changes {
            let at = at.index(object.len());
            object[at] = byte;
        }
        if is_cut {
            object.truncate(cut.index(object.len()));
        }
        read(&object);
    }

    /// Small numbers, so that pointers lead somewhere: to entries within each other, in circles, and out of the memory.
    #[test]
    fn any_list_ends(words in prop::collection::vec(0_u64..300, 40), polls in 1_usize..20) {
        let mut memory = words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        memory[..4].copy_from_slice(&1_u32.to_le_bytes());
        memory[4..8].copy_from_slice(&1_u32.to_le_bytes());
        let mut list = List::default();
        let mut live = std::collections::HashSet::new();
        for poll in 0..polls {
            list.poll(memory.as_slice(), &[0, 8, 16, 1 << 60], |change| match change {
                Change::Registered { id, object, .. } => {
                    assert!(live.insert(id) && !object.is_empty());
                }
                Change::Unregistered { id } => assert!(live.remove(&id)),
            });
            let at = 24 + poll * 8;
            memory[at] = memory[at].wrapping_add(8);
        }
    }
}

#[test]
fn objects_beyond_the_limit_are_not_read() {
    use crate::memory::{HEAD, Memory};
    let object = vec![7; usize::try_from(limits::OBJECT).unwrap()];
    // Each is a byte shorter than the one before it, so that they are different places.
    let mut memory = Memory::default();
    memory.head(1, 0x2000, 0x2000);
    for number in 0..40 {
        let at = 0x2000 + number * 64;
        memory.entry(at, at + 64, 1 << 40, limits::OBJECT - number);
    }
    memory.put(1 << 40, &object);
    let mut list = List::default();
    let mut read = 0;
    for _ in 0..3 {
        list.poll(&memory, &[HEAD], |change| {
            if let Change::Registered { object, .. } = change {
                read += object.len() as u64;
            }
        });
    }
    assert!(list.is_full() && read <= limits::OBJECTS, "{read}");
}
