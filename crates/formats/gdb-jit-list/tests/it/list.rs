//! What changes in a list.

use gdb_jit_list::{Change, List, limits};

use crate::memory::{HEAD, Memory};

/// The changes of a poll, as text.
fn poll(list: &mut List, memory: &Memory) -> Vec<String> {
    let mut changes = Vec::new();
    list.poll(memory, &[HEAD], |change| {
        changes.push(match change {
            Change::Registered { id, object, .. } => {
                format!("+{id} {}", String::from_utf8_lossy(object))
            }
            Change::Unregistered { id } => format!("-{id}"),
        });
    });
    changes
}

#[test]
fn each_change_is_passed_on_once() {
    let mut list = List::default();
    assert!(poll(&mut list, &Memory::default()).is_empty());
    let one = Memory::list(&[(0x9000, b"one")]);
    assert_eq!(poll(&mut list, &one), ["+0 one"]);
    assert!(poll(&mut list, &one).is_empty());
    let both = Memory::list(&[(0x8000, b"two"), (0x9000, b"one")]);
    assert_eq!(poll(&mut list, &both), ["+1 two"]);
    assert_eq!(poll(&mut list, &Memory::list(&[(0x8000, b"two")])), ["-0"]);
    assert_eq!(poll(&mut list, &Memory::list(&[])), ["-1"]);
    assert_eq!(poll(&mut list, &one), ["+2 one"]);
}

#[test]
fn another_object_at_the_same_place_is_another_one() {
    let mut list = List::default();
    assert_eq!(poll(&mut list, &Memory::list(&[(0x9000, b"one")])), ["+0 one"]);
    // PostgreSQL: a query's code was unregistered, and the next one's is in its place, with an equal head.
    assert_eq!(poll(&mut list, &Memory::list(&[(0x9000, b"two")])), ["-0", "+1 two"]);
}

#[test]
fn one_object_in_two_entries_is_one() {
    let memory = Memory::list(&[(0x9000, b"one"), (0x9000, b"one")]);
    assert_eq!(poll(&mut List::default(), &memory), ["+0 one"]);
}

#[test]
fn what_is_behind_the_newest_is_found_although_the_head_is_as_before() {
    let mut objects: Vec<(u64, &[u8])> =
        (0..100).map(|at| (0x10000 + at * 16, &b"x"[..])).collect();
    let mut list = List::default();
    assert_eq!(poll(&mut list, &Memory::list(&objects)).len(), 100);
    objects.remove(50);
    let memory = Memory::list(&objects);
    let changes: Vec<String> = (0..20).flat_map(|_| poll(&mut list, &memory)).collect();
    assert_eq!(changes, ["-50"]);
}

#[test]
fn a_list_that_cannot_be_read_to_its_end_loses_nothing() {
    let mut list = List::default();
    poll(&mut list, &Memory::list(&[(0x9000, b"one"), (0x8000, b"two")]));
    let mut cut = Memory::default();
    cut.head(1, 0x2000, 0x2000);
    cut.entry(0x2000, 0xdead_0000, 0x9000, 3);
    cut.put(0x9000, b"one");
    for _ in 0..40 {
        assert!(poll(&mut list, &cut).is_empty());
    }
}

#[test]
fn loops_wild_pointers_and_huge_objects_end() {
    let mut memory = Memory::list(&[(0x9000, b"one"), (0x8000, b"two")]);
    memory.entry(0x2040, 0x2000, 0x8000, 3);
    assert_eq!(poll(&mut List::default(), &memory), ["+0 one", "+1 two"]);
    memory.entry(0x2040, 0x2080, 0x8000, 1 << 62);
    memory.entry(0x2080, 0x20c0, 0x8000, limits::OBJECT + 1);
    memory.entry(0x20c0, 0x1234_5678_9000, 0xdead_0000, 64);
    assert_eq!(poll(&mut List::default(), &memory), ["+0 one"]);
    for version in [0, 2] {
        let mut memory = Memory::list(&[(0x9000, b"one")]);
        let mut head = [0; 24];
        head[0] = version;
        head[17] = 0x20;
        memory.put(HEAD, &head);
        assert!(poll(&mut List::default(), &memory).is_empty());
    }
}

#[test]
fn the_object_of_the_last_registration_is_marked() {
    let marked = |memory: &Memory| {
        let mut marked = Vec::new();
        List::default().poll(memory, &[HEAD], |change| {
            if let Change::Registered { object, is_last, .. } = change {
                marked.push((String::from_utf8_lossy(object).into_owned(), is_last));
            }
        });
        marked
    };
    let mut memory = Memory::list(&[(0x8000, b"two"), (0x9000, b"one")]);
    let expected = |last: Option<&str>| {
        ["two", "one"].map(|name| (name.to_owned(), last == Some(name))).to_vec()
    };
    let first = 0x2000;
    for (action, relevant, last) in
        [(1, first, Some("two")), (2, first, None), (0, 0, None), (1, 0xdead_0000, None)]
    {
        memory.head(action, relevant, first);
        assert_eq!(marked(&memory), expected(last), "{action} {relevant:#x}");
    }
}
