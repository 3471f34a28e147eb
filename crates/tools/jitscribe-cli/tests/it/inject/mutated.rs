//! Recordings, dumps and maps of which a few words are not what they were.

use crate::inject::scene::{ARENA, CODE, DUMP, Jit, MS, OTHER, PID, Scene, begun};
use crate::mutants::{mutate, try_mutants};

const FILES: [&str; 3] = ["perf.data", DUMP, "perf-5000008.map"];

/// A recording of two processes, one with a dump and a child, the other with a perf map.
fn files() -> [Vec<u8>; 3] {
    let (_, mut recording) = begun(Jit::begun());
    recording.comm(OTHER, OTHER, "other", MS).map(OTHER, ARENA, "[anon:JIT]", 2 * MS);
    recording.fork(PID + 2, PID, 22 * MS).time_conv(0, 1, 0);
    for time in 25..45 {
        let pid = [PID, OTHER, PID + 2][time as usize % 3];
        recording.sample(pid, CODE + 0x20 * (time - 25), time * MS).round();
    }
    recording.exit(PID + 2, 60 * MS);
    recording.feature(6, b"\x08\0\0\0x86_64\0\0");
    let mut jit = Jit::new(PID, 10 * MS);
    for number in 0..8 {
        let address = CODE + 0x40 * number;
        let time = (12 + number) * MS;
        jit = jit.lines(time, address, &[(address, 1), (address + 8, 2)]);
        jit = jit.load(time, address, 0x40, "code");
    }
    let dump = jit.moved(30 * MS, 2, CODE + 0x80, CODE + 0x1000, 0x40).bytes();
    let map = (0..8).map(|number| format!("{:x} 40 name {number}\n", CODE + 0x40 * number));
    [recording.file(), dump, map.collect::<String>().into_bytes()]
}

#[test]
fn a_mutated_recording_is_used_or_refused() {
    let scene = Scene::new();
    let sound = files();
    let write = |files: &[Vec<u8>; 3]| {
        for (name, bytes) in FILES.iter().zip(files) {
            scene.write(name, bytes);
        }
    };
    write(&sound);
    let whole = scene.inject_file("perf.data", &["--aux-dir", "."]);
    assert!(whole.counts().0 > 10, "{:?}", whole.json());
    let words = "inject -i perf.data -o out.data --force --aux-dir . --allow-empty";
    let inject = scene.jitscribe(words);
    try_mutants("a recording, a dump and a map", |numbers, seed| {
        let mut files = sound.clone();
        // Most is decided by the recording.
        let which = [0, 0, 1, 2][numbers.next(4)];
        let bytes = &mut files[which];
        let all = 0..bytes.len();
        let head = 0..bytes.len().min(400);
        mutate(numbers, bytes, &[head, all.clone(), all]);
        write(&files);
        crate::mutants::run(&inject, seed, &[&FILES[..], &["out.data"]].concat())
    });
}
