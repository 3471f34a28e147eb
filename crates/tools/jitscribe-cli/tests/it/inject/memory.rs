//! Images beside what else was mapped.

use crate::inject::recording::Recording;
use crate::inject::scene::{ARENA, CODE, DUMP, Expected, Jit, MARKER, MS, PID, Scene};

/// A process that has mapped this, and its marker at 10 ms. Times are milliseconds.
fn expect(maps: &[(std::ops::Range<u64>, &str, u64)], jit: Jit, samples: &[Expected<'_>]) -> Scene {
    let scene = Scene::new();
    let mut recording = Recording::new();
    recording.comm(PID, PID, "app", MS);
    for (range, name, time) in maps {
        recording.map(PID, range.clone(), name, time * MS);
    }
    recording.map(PID, MARKER, &scene.name(DUMP), 10 * MS);
    scene.dump(jit);
    scene.expect(&mut recording, samples);
    scene
}

/// Names that memory of no file has, and the file that perf shows for each.
const ANONYMOUS: [(&str, &str); 7] = [
    ("//anon", "perf-5000007.map"),
    ("[anon:v8]", "[anon:v8]"),
    ("[anon:JS JIT code]", "[anon:JS JIT code]"),
    ("/memfd:x (deleted)", "/memfd:x (deleted)"),
    ("/memfd:doublemapper (deleted)", "/memfd:doublemapper (deleted)"),
    ("/dev/zero", "perf-5000007.map"),
    ("/dev/zero (deleted)", "perf-5000007.map"),
];

#[test]
fn memory_of_no_file_gives_way_from_the_first_code_to_the_last() {
    for (name, file) in ANONYMOUS {
        for time in [2, 15] {
            let jit = Jit::begun().code(20, 0x1_0000, "one").code(20, 0x2_0000, "two");
            let unknown = format!("[unknown] {file}");
            let samples = [
                (PID, 21, 0, &*unknown),
                (PID, 22, 0x1_0000, "one+0x0 jit-5000007-0.elf"),
                (PID, 23, 0x1_8000, "[unknown] jit-5000007-0.elf"),
                (PID, 24, 0x2_003f, "two+0x3f jit-5000007-0.elf"),
                (PID, 25, 0x2_0040, &unknown),
                (PID, 26, ARENA.end - 1 - CODE, &unknown),
            ];
            let scene = expect(&[(ARENA, name, time)], jit, &samples);
            let before = scene.script("perf.data");
            let before: Vec<String> = before.into_iter().map(|sample| sample.shown()).collect();
            let all_unknown = [21, 22, 23, 24, 25, 26].map(|time| format!("{time} {unknown}"));
            assert_eq!(before, all_unknown, "{name} at {time}");
        }
    }
}

#[test]
fn memory_that_is_mapped_piece_by_piece_and_again_shows_the_code() {
    // V8 changes the protection of its pages one by one: each time perf sees them mapped anew.
    let page = |number: u64| CODE + 0x1000 * number..CODE + 0x1000 * (number + 1);
    let whole = CODE..CODE + 0x8000;
    let maps = [
        (whole.clone(), "//anon", 2),
        (page(0), "//anon", 30),
        (page(1), "//anon", 40),
        (whole, "[anon:v8]", 50),
        (page(1), "[anon:v8]", 60),
    ];
    let jit = Jit::begun().load(20 * MS, CODE + 0xf80, 0x100, "over two pages");
    expect(
        &maps,
        jit.code(45, 0x5000, "later"),
        &[
            (PID, 21, 0xf80, "over two pages+0x0 jit-5000007-0.elf"),
            (PID, 31, 0xfff, "over two pages+0x7f jit-5000007-0.elf"),
            (PID, 32, 0x1000, "over two pages+0x80 jit-5000007-0.elf"),
            (PID, 41, 0x1000, "over two pages+0x80 jit-5000007-0.elf"),
            (PID, 51, 0x107f, "over two pages+0xff jit-5000007-0.elf"),
            (PID, 52, 0x1080, "[unknown] jit-5000007-0.elf"),
            (PID, 53, 0x5000, "later+0x0 jit-5000007-0.elf"),
            (PID, 61, 0xfff, "over two pages+0x7f jit-5000007-0.elf"),
            (PID, 62, 0x1000, "over two pages+0x80 jit-5000007-0.elf"),
            (PID, 63, 0x1100, "[unknown] jit-5000007-0.elf"),
        ],
    );
}

#[test]
fn a_library_that_is_mapped_over_dead_code_is_shown() {
    let library = CODE + 0x1_0000..CODE + 0x2_0000;
    let jit = Jit::begun().code(20, 0x1_0000, "dead").load(20 * MS, CODE + 0xffe0, 0x10, "alive");
    expect(
        &[(ARENA, "//anon", 2), (library, "/nowhere/libx.so.1", 50)],
        jit,
        &[
            (PID, 30, 0x1_0000, "dead+0x0 jit-5000007-0.elf"),
            (PID, 31, 0xffe0, "alive+0x0 jit-5000007-0.elf"),
            (PID, 60, 0x1_0000, "[unknown] libx.so.1"),
            (PID, 61, 0x1_8000, "[unknown] libx.so.1"),
            (PID, 62, 0xffe0, "alive+0x0 jit-5000007-0.elf"),
        ],
    );
}

#[test]
fn a_library_that_was_there_before_gives_way_to_code() {
    expect(
        &[(CODE..CODE + 0x1_0000, "/nowhere/libx.so.1", 2)],
        Jit::begun().code(100, 0, "code"),
        &[(PID, 101, 1, "code+0x1 jit-5000007-0.elf"), (PID, 102, 0x41, "[unknown] libx.so.1")],
    );
}

#[test]
fn builtins_inside_the_runtimes_own_file_keep_their_names_when_it_is_mapped_again() {
    let text = CODE..CODE + 0x10_0000;
    let maps = [
        (text.clone(), "/nowhere/node", 2),
        (text, "/nowhere/node", 40),
        (CODE + 0x4000..CODE + 0x6000, "/nowhere/node", 60),
    ];
    let jit = Jit::begun().code(20, 0x5000, "Builtins_A").code(20, 0x8000, "Builtins_B");
    let samples = [30, 50, 70].map(|time| {
        [
            (PID, time, 0x5000, "Builtins_A+0x0 jit-5000007-0.elf"),
            (PID, time + 1, 0x8001, "Builtins_B+0x1 jit-5000007-0.elf"),
            (PID, time + 2, 0x5080, "[unknown] node"),
        ]
    });
    expect(&maps, jit, samples.as_flattened());
}
