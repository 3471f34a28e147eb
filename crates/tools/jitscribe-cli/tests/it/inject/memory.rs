//! Images beside what else was mapped.

use crate::inject::recording::Recording;
use crate::inject::scene::{ARENA, CODE, Jit, MARKER, MS, PID, Scene};

/// What a process has mapped, at which times.
fn shown(
    maps: &[(std::ops::Range<u64>, &str, u64)],
    jit: Jit,
    samples: &[(u64, u64)],
) -> (Vec<String>, Vec<String>) {
    let scene = Scene::new();
    let mut recording = Recording::new();
    recording.comm(PID, PID, "app", MS);
    let marker = scene.name("jit-5000007.dump");
    for (range, name, time) in maps {
        let name = if *name == "MARKER" { &marker } else { *name };
        recording.map(PID, range.clone(), name, time * MS);
    }
    for &(ip, time) in samples {
        recording.sample(PID, ip, time * MS);
    }
    scene.write("jit-5000007.dump", &jit.bytes());
    scene.inject(&recording, &[]).clean();
    let before = scene.script("perf.data").into_iter().map(|sample| sample.shown()).collect();
    (before, scene.shown())
}

fn jit() -> Jit {
    Jit::new(PID, 10 * MS)
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
            let maps = [(ARENA, name, time), (MARKER, "MARKER", 10)];
            let jit = jit().load(20 * MS, CODE + 0x1_0000, 0x40, "one").load(
                20 * MS,
                CODE + 0x2_0000,
                0x40,
                "two",
            );
            let samples = [
                (CODE, 21),
                (CODE + 0x1_0000, 22),
                (CODE + 0x1_8000, 23),
                (CODE + 0x2_003f, 24),
                (CODE + 0x2_0040, 25),
                (ARENA.end - 1, 26),
            ];
            let (before, after) = shown(&maps, jit, &samples);
            let unknown = |time| format!("{time} [unknown] {file}");
            assert_eq!(before, [21, 22, 23, 24, 25, 26].map(unknown), "{name} at {time}");
            assert_eq!(
                after,
                [
                    unknown(21),
                    "22 one+0x0 jit-5000007-0.elf".into(),
                    "23 [unknown] jit-5000007-0.elf".into(),
                    "24 two+0x3f jit-5000007-0.elf".into(),
                    unknown(25),
                    unknown(26),
                ],
                "{name} at {time}"
            );
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
        (MARKER, "MARKER", 10),
        (page(0), "//anon", 30),
        (page(1), "//anon", 40),
        (whole, "[anon:v8]", 50),
        (page(1), "[anon:v8]", 60),
    ];
    let jit = jit().load(20 * MS, CODE + 0xf80, 0x100, "over two pages").load(
        45 * MS,
        CODE + 0x5000,
        0x40,
        "later",
    );
    let samples = [
        (CODE + 0xf80, 21),
        (CODE + 0xfff, 31),
        (CODE + 0x1000, 32),
        (CODE + 0x1000, 41),
        (CODE + 0x107f, 51),
        (CODE + 0x1080, 52),
        (CODE + 0x5000, 53),
        (CODE + 0xfff, 61),
        (CODE + 0x1000, 62),
        (CODE + 0x1100, 63),
    ];
    let (_, after) = shown(&maps, jit, &samples);
    assert_eq!(
        after,
        [
            "21 over two pages+0x0 jit-5000007-0.elf",
            "31 over two pages+0x7f jit-5000007-0.elf",
            "32 over two pages+0x80 jit-5000007-0.elf",
            "41 over two pages+0x80 jit-5000007-0.elf",
            "51 over two pages+0xff jit-5000007-0.elf",
            "52 [unknown] jit-5000007-0.elf",
            "53 later+0x0 jit-5000007-0.elf",
            "61 over two pages+0x7f jit-5000007-0.elf",
            "62 over two pages+0x80 jit-5000007-0.elf",
            "63 [unknown] jit-5000007-0.elf",
        ]
    );
}

#[test]
fn a_library_that_is_mapped_over_dead_code_is_shown() {
    let library = CODE + 0x1_0000..CODE + 0x2_0000;
    let maps = [(ARENA, "//anon", 2), (MARKER, "MARKER", 10), (library, "/nowhere/libx.so.1", 50)];
    let jit = jit().load(20 * MS, CODE + 0x1_0000, 0x40, "dead").load(
        20 * MS,
        CODE + 0xffe0,
        0x10,
        "alive",
    );
    let samples = [
        (CODE + 0x1_0000, 30),
        (CODE + 0xffe0, 31),
        (CODE + 0x1_0000, 60),
        (CODE + 0x1_8000, 61),
        (CODE + 0xffe0, 62),
    ];
    let (_, after) = shown(&maps, jit, &samples);
    assert_eq!(
        after,
        [
            "30 dead+0x0 jit-5000007-0.elf",
            "31 alive+0x0 jit-5000007-0.elf",
            "60 [unknown] libx.so.1",
            "61 [unknown] libx.so.1",
            "62 alive+0x0 jit-5000007-0.elf",
        ]
    );
}

#[test]
fn a_library_that_was_there_before_gives_way_to_code() {
    let library = CODE..CODE + 0x1_0000;
    let maps = [(library, "/nowhere/libx.so.1", 2), (MARKER, "MARKER", 10)];
    let jit = jit().load(100 * MS, CODE, 0x40, "code");
    let (_, after) = shown(&maps, jit, &[(CODE + 1, 101), (CODE + 0x41, 102)]);
    assert_eq!(after, ["101 code+0x1 jit-5000007-0.elf", "102 [unknown] libx.so.1"]);
}

#[test]
fn builtins_inside_the_runtimes_own_file_keep_their_names_when_it_is_mapped_again() {
    let text = CODE..CODE + 0x10_0000;
    let maps = [
        (text.clone(), "/nowhere/node", 2),
        (MARKER, "MARKER", 10),
        (text.clone(), "/nowhere/node", 40),
        (CODE + 0x4000..CODE + 0x6000, "/nowhere/node", 60),
    ];
    let jit = jit().load(20 * MS, CODE + 0x5000, 0x40, "Builtins_A").load(
        20 * MS,
        CODE + 0x8000,
        0x40,
        "Builtins_B",
    );
    let at = |time| [(CODE + 0x5000, time), (CODE + 0x8001, time + 1), (CODE + 0x5080, time + 2)];
    let samples: Vec<_> = [30, 50, 70].into_iter().flat_map(at).collect();
    let (_, after) = shown(&maps, jit, &samples);
    let expected: Vec<String> = [30, 50, 70]
        .into_iter()
        .flat_map(|time| {
            [
                format!("{time} Builtins_A+0x0 jit-5000007-0.elf"),
                format!("{} Builtins_B+0x1 jit-5000007-0.elf", time + 1),
                format!("{} [unknown] node", time + 2),
            ]
        })
        .collect();
    assert_eq!(after, expected);
}
