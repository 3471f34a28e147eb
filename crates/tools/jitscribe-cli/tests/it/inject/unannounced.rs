//! Code that nothing announces, next to code that something does.

use crate::inject::recording::Recording;
use crate::inject::scene::{CODE, MS, PID, Scene};

/// The names that samples at these offsets get, where anonymous memory is mapped in these pages; the code of the map is in page 0.
fn names(pages: &[(u64, u64)], offsets: &[u64]) -> Vec<String> {
    let pages: Vec<_> = pages.iter().map(|&(first, behind)| (first, behind, "//anon")).collect();
    names_in(&pages, offsets)
}

/// The same, where each memory has a name.
fn names_in(pages: &[(u64, u64, &str)], offsets: &[u64]) -> Vec<String> {
    let scene = Scene::new();
    scene.write("perf-5000007.map", "7f0000000000 40 announced\n");
    let mut recording = Recording::new();
    recording.comm(PID, PID, "app", MS);
    for (first, behind, name) in pages {
        let range = CODE + first * 0x1000..CODE + behind * 0x1000;
        recording.map(PID, range, name, 2 * MS);
    }
    for (at, offset) in offsets.iter().enumerate() {
        recording.sample(PID, CODE + offset, (10 + at as u64) * MS);
    }
    scene.write("perf.data", recording.file());
    scene.ask("inject -i perf.data -o out.data --allow-empty").ok();
    scene.names_alone()
}

#[test]
fn code_in_the_same_memory_is_named_by_its_neighbour() {
    let after = "[jit code after announced]";
    assert_eq!(names(&[(0, 4)], &[0x10, 0x1010, 0x3010]), ["announced", after, after]);
    // Memory that was made executable page by page is one.
    assert_eq!(names(&[(0, 1), (1, 2)], &[0x10, 0x1010]), ["announced", after]);
}

/// Between two compilers' memory are pages that are not executable, or not mapped.
#[test]
fn code_in_other_memory_is_not() {
    let alone = "[anonymous executable memory]";
    assert_eq!(names(&[(0, 1), (2, 4)], &[0x10, 0x2010]), ["announced", alone]);
    assert_eq!(
        names(&[(0, 1), (8, 9), (3, 4)], &[0x10, 0x8010, 0x3010]),
        ["announced", alone, alone]
    );
}

/// The memory of another compiler may be directly behind.
#[test]
fn code_in_memory_of_another_name_is_not() {
    let memory = "[executable memory of /memfd:other (deleted)]";
    let other = "/memfd:other (deleted)";
    let pages = [(0, 1, "//anon"), (1, 2, other)];
    assert_eq!(names_in(&pages, &[0x10, 0x1010]), ["announced", memory]);
    let pages = [(0, 1, "//anon"), (1, 2, other), (2, 3, "//anon")];
    let names = names_in(&pages, &[0x10, 0x1010, 0x2010]);
    assert_eq!(names[..2], ["announced", memory]);
}
