//! Code that a dump has inside a mapped program: the program's own symbols go first.

use crate::inject::recording::Recording;
use crate::inject::scene::{CODE, Injected, Jit, MS, OTHER, PID, Scene, process};

/// Where the program is mapped.
const PROGRAM: u64 = 0x5000_0000;
/// The offset of its functions in the file.
const TEXT: u64 = 0x1000;
/// The number of the build-id feature.
const BUILD_ID: u32 = 2;

/// Writes the file `program`, with the functions `first` and, 0x200 bytes behind it, `second`; returns its build-id.
fn program(scene: &Scene) -> Vec<u8> {
    let mut recording = Recording::new();
    process(scene, &mut recording, OTHER);
    recording.sample(OTHER, CODE, 25 * MS);
    let jit = Jit::new(OTHER, 10 * MS).load(20 * MS, CODE, 0x40, "first");
    let jit = jit.load(20 * MS, CODE + 0x200, 0x40, "second");
    scene.write("jit-5000008.dump", jit.bytes());
    let image = scene.inject(&recording, &[]).json()["images"][0].clone();
    let bytes = std::fs::read(image["path"].as_str().unwrap()).unwrap();
    scene.write("program", &bytes);
    let id = image["build_id"].as_str().unwrap();
    (0..20).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap()).collect()
}

/// A process that has a program mapped, and whose dump has code in it: where `first` is, behind it, and elsewhere.
fn run(scene: &Scene, recording: &mut Recording) -> Injected {
    let end = PROGRAM + 0x10_0000;
    recording.map_path(PID, PROGRAM..end, &scene.name("program"), 3 * MS);
    process(scene, recording, PID);
    let text = PROGRAM + TEXT;
    for (address, time) in
        [(text + 1, 31), (text + 0x101, 32), (text + 0x202, 33), (CODE + 3, 34), (text + 0x180, 35)]
    {
        recording.sample(PID, address, time * MS);
    }
    let jit = Jit::new(PID, 10 * MS)
        .load(20 * MS, text, 0x40, "by the dump")
        .load(20 * MS, text + 0x100, 0x40, "without a symbol")
        .load(20 * MS, CODE, 0x40, "jitted");
    scene.dump(jit);
    scene.inject(recording, &["--force"])
}

/// An entry of the build-id feature.
fn build_id(scene: &Scene, id: &[u8]) -> Vec<u8> {
    let mut name = scene.name("program").into_bytes();
    name.resize((name.len() + 1).next_multiple_of(8), 0);
    let mut entry = 0u32.to_le_bytes().to_vec();
    entry.extend(2u16.to_le_bytes());
    entry.extend(u16::try_from(8 + 4 + 24 + name.len()).unwrap().to_le_bytes());
    entry.extend(u32::MAX.to_le_bytes());
    entry.extend(id);
    entry.extend([0; 4]);
    entry.extend(name);
    entry
}

#[test]
fn where_the_program_has_a_symbol_it_stays() {
    let scene = Scene::new();
    program(&scene);
    let injected = run(&scene, &mut Recording::new());
    assert_eq!(
        scene.shown(),
        [
            "31 first+0x1 program",
            "32 without a symbol+0x1 jit-5000007-0.elf",
            "33 second+0x2 program",
            "34 jitted+0x3 jit-5000007-1.elf",
            "35 [unknown] program",
        ]
    );
    assert_eq!(injected.clean().counts(), (2, 0));
}

#[test]
fn the_build_id_decides_whether_it_is_the_program() {
    for is_same in [true, false] {
        let scene = Scene::new();
        let mut id = program(&scene);
        id[19] ^= u8::from(!is_same);
        let mut recording = Recording::new();
        recording.feature(BUILD_ID, &build_id(&scene, &id));
        let injected = run(&scene, &mut recording);
        assert_eq!(injected.clean().counts(), (if is_same { 2 } else { 3 }, 0));
    }
}

#[test]
fn a_program_that_is_none_or_is_gone_names_nothing() {
    let scene = Scene::new();
    for content in [None, Some(&b"no ELF file"[..])] {
        content.map(|content| scene.write("program", content));
        let injected = run(&scene, &mut Recording::new());
        assert_eq!(injected.clean().counts(), (3, 0));
        assert_eq!(scene.shown()[0], "31 by the dump+0x1 jit-5000007-0.elf");
    }
}

#[test]
fn a_child_has_its_parents_program() {
    let scene = Scene::new();
    program(&scene);
    let mut recording = Recording::new();
    let child = OTHER + 1;
    recording.map_path(PID, PROGRAM..PROGRAM + 0x10_0000, &scene.name("program"), 3 * MS);
    process(&scene, &mut recording, PID);
    recording.fork(child, PID, 15 * MS);
    recording.map(
        child,
        0x6000_0000..0x6000_1000,
        &scene.name(&format!("jit-{child}.dump")),
        16 * MS,
    );
    recording.sample(child, PROGRAM + TEXT + 1, 31 * MS).sample(child, CODE + 1, 32 * MS);
    let jit = Jit::new(child, 16 * MS).load(20 * MS, PROGRAM + TEXT, 0x40, "by the dump");
    let jit = jit.load(20 * MS, CODE, 0x40, "jitted");
    scene.write(&format!("jit-{child}.dump"), jit.bytes());
    scene.dump(Jit::new(PID, 10 * MS));
    let injected = scene.inject(&recording, &["--force"]);
    assert_eq!(injected.counts(), (1, 0));
    assert_eq!(scene.shown()[0], "31 first+0x1 program");
}
