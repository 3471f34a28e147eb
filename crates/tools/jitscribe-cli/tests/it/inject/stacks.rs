//! Recordings with copies of the stacks: an image for each span of time.

use std::collections::BTreeSet;

use object::{Object, ObjectSection};

use crate::inject::recording::{Attr, REGS_USER, STACK_USER, USUAL};
use crate::inject::scene::{CODE, Expected, Injected, Jit, MS, PID, Scene, begun_with};

fn expect(jit: Jit, samples: &[Expected<'_>]) -> (Scene, Injected) {
    let (scene, mut recording) = begun_with(Attr::new(USUAL | REGS_USER | STACK_USER), jit);
    let injected = scene.expect(&mut recording, samples);
    (scene, injected)
}

#[test]
fn each_span_of_time_has_an_image() {
    let jit = Jit::begun()
        .code(20, 0, "first")
        .code(20, 0x40, "stays")
        .code(30, 0, "second")
        .code(40, 0, "third, never seen")
        .code(50, 0, "fourth");
    let (_, injected) = expect(
        jit,
        &[
            (PID, 21, 1, "first+0x1 jit-5000007-0-0.elf"),
            (PID, 22, 0x41, "stays+0x1 jit-5000007-0-0.elf"),
            (PID, 31, 1, "second+0x1 jit-5000007-0-1.elf"),
            (PID, 32, 0x41, "stays+0x1 jit-5000007-0-1.elf"),
            (PID, 51, 1, "fourth+0x1 jit-5000007-0-2.elf"),
            (PID, 52, 0x41, "stays+0x1 jit-5000007-0-2.elf"),
        ],
    );
    assert_eq!(
        injected.images(),
        ["jit-5000007-0-0.elf", "jit-5000007-0-1.elf", "jit-5000007-0-2.elf"]
    );
}

#[test]
fn code_that_was_never_seen_running_makes_no_image() {
    let load = |jit: Jit, version: u64| jit.code(20 + version, 0, &format!("v{version}"));
    let jit = (0..100).fold(Jit::begun(), load);
    let (_, injected) = expect(jit, &[(PID, 70, 1, "v50+0x1 jit-5000007-0.elf")]);
    assert_eq!(injected.images(), ["jit-5000007-0.elf"]);
}

/// perf's libunwind ends a stack in a file without any, and follows the frame pointer where they do not have the code.
#[test]
fn images_have_unwind_tables_even_if_no_code_has() {
    let samples = [(PID, 21, 1, "plain+0x1 jit-5000007-0.elf")];
    let (scene, injected) = expect(Jit::begun().code(20, 0, "plain"), &samples);
    let path = injected.json()["images"][0]["path"].as_str().unwrap().to_owned();
    let image = std::fs::read(&path).unwrap();
    let file = object::File::parse(&*image).unwrap();
    for name in [".eh_frame_hdr", ".eh_frame"] {
        let section = file.section_by_name(name).unwrap_or_else(|| panic!("no {name}"));
        assert!(section.size() > 0, "{name}");
    }
    let events = scene.run("perf script -i out.data --show-mmap-events");
    let is_of_tables = |line: &str| line.contains(": r--p ") && line.ends_with(&path);
    assert!(events.lines().any(is_of_tables), "{events}");
}

/// The first free address above two arenas may be the same. perf reads the tables of an image where they are mapped: those of the
/// other image there would hide them.
#[test]
fn tables_of_images_have_places_of_their_own() {
    let between = 32 << 20;
    let jit = Jit::begun().code(20, 0, "near").code(20, between, "far");
    let (scene, mut recording) = begun_with(Attr::new(USUAL | REGS_USER | STACK_USER), jit);
    // Nothing is free between the two.
    recording.map(PID, CODE..CODE + between + 0x1000, "//anon", 3 * MS);
    scene.expect(
        &mut recording,
        &[
            (PID, 21, 1, "near+0x1 jit-5000007-0.elf"),
            (PID, 22, between + 1, "far+0x1 jit-5000007-1.elf"),
        ],
    );
    let events = scene.run("perf script -i out.data --show-mmap-events");
    let tables = events.lines().filter(|line| line.contains(": r--p ") && line.ends_with(".elf"));
    let address = |line: &str| line.split_once('[')?.1.split_once('(').map(|it| it.0.to_owned());
    let addresses: BTreeSet<String> = tables.filter_map(address).collect();
    assert_eq!(addresses.len(), 2, "{events}");
}
