//! Code that only a perf map knows.

use crate::inject::recording::{Recording, feature_text};
use crate::inject::scene::{ARENA, CODE, Expected, Injected, Jit, MS, PID, Scene, app, begun};

/// `HEADER_BUILD_ID`.
const HEADER_BUILD_ID: u32 = 2;
/// `HEADER_ARCH`.
const HEADER_ARCH: u32 = 6;

const MAP: &str = "perf-5000007.map";

/// A process that has mapped this, with a perf map.
fn expect(maps: &[(std::ops::Range<u64>, &str)], map: &str, samples: &[Expected<'_>]) -> Injected {
    let scene = Scene::new();
    let mut recording = Recording::new();
    recording.comm(PID, PID, "app", MS);
    for (range, name) in maps {
        recording.map(PID, range.clone(), name, 2 * MS);
    }
    scene.write(MAP, map);
    scene.expect(&mut recording, samples)
}

#[test]
fn code_in_memory_where_perf_would_not_look_is_named() {
    for memory in ["[anon:JIT]", "/memfd:jit (deleted)"] {
        let injected = expect(
            &[(ARENA, memory)],
            "7f0000000100 40 LFoo;::bar\n7f0000008200 20 b\n",
            &[
                (PID, 21, 0x100, "LFoo;::bar+0x0 jit-5000007-0.elf"),
                (PID, 22, 0x13f, "LFoo;::bar+0x3f jit-5000007-0.elf"),
                (PID, 23, 0x140, "[unknown] jit-5000007-0.elf"),
                (PID, 24, 0x8201, "b+0x1 jit-5000007-0.elf"),
            ],
        );
        assert_eq!(injected.counts(), (3, 1), "{memory}");
    }
}

#[test]
fn of_overlapping_lines_the_later_wins() {
    expect(
        &[(ARENA, "//anon")],
        "7f0000000000 1000 stale\n7f0000000100 40 first\n7f0000000100 40 second\n\
         7f0000000120 100 third\n",
        &[
            (PID, 21, 0, "stale+0x0 jit-5000007-0.elf"),
            (PID, 22, 0x101, "second+0x1 jit-5000007-0-1.elf"),
            (PID, 23, 0x120, "third+0x0 jit-5000007-0-2.elf"),
            (PID, 24, 0x21f, "third+0xff jit-5000007-0-2.elf"),
            (PID, 25, 0x220, "stale+0x220 jit-5000007-0.elf"),
        ],
    );
}

#[test]
fn lines_over_a_files_mapping_are_left_to_the_file() {
    let injected = expect(
        &[(ARENA, "//anon"), (CODE + 0x1000..CODE + 0x2000, "/srv/app/libx.so")],
        "7f0000000100 40 code\n7f0000001000 40 plt\n",
        &[(PID, 21, 0x100, "code+0x0 jit-5000007-0.elf"), (PID, 22, 0x1000, "[unknown] libx.so")],
    );
    assert_eq!(injected.counts(), (1, 0));
}

/// A code cache, or an image of a heap, into which a runtime also compiles: SBCL's core is one.
#[test]
fn lines_over_a_file_that_is_no_object_file_name_its_code() {
    let scene = Scene::new();
    let mut recording = app(PID, &scene.name("image.core"));
    scene.write("image.core", [0x90; 0x1000]).write(MAP, b"7f0000000100 40 code\n");
    scene.expect(&mut recording, &[(PID, 21, 0x101, "code+0x1 jit-5000007-0.elf")]);
}

/// Shared memory, and files that are removed when they are mapped: JITs with two mappings of one memory use them, libffi too.
#[test]
fn lines_over_a_file_that_is_gone_name_its_code() {
    for gone in
        ["/dev/shm/jitscribe-none-such", "/tmp/ffiNoneSuch (deleted)", "/srv/app/image.core"]
    {
        let injected = expect(
            &[(ARENA, gone)],
            "7f0000000100 40 code\n",
            &[(PID, 21, 0x101, "code+0x1 jit-5000007-0.elf")],
        );
        assert_eq!(injected.counts(), (1, 0), "{gone}");
    }
}

/// perf records build-ids of object files only. The file is elsewhere, and viewers may find its symbols.
#[test]
fn lines_over_an_object_file_that_is_gone_are_left_to_it() {
    let scene = Scene::new();
    let path = "/srv/app/program";
    let mut recording = app(PID, path);
    recording.sample(PID, CODE + 0x101, 21 * MS);
    // `struct perf_record_header_build_id`: type, flags and size; process; the build-id; the path.
    let size = 8 + 4 + 24 + 24;
    let mut build_id =
        [&67u32.to_le_bytes()[..], &[2, 0, size, 0], &u32::MAX.to_le_bytes()].concat();
    build_id.extend([7; 20].iter().chain(&[0; 4]));
    build_id.extend(path.bytes());
    build_id.resize(size.into(), 0);
    recording.feature(HEADER_BUILD_ID, &build_id);
    scene.write(MAP, "7f0000000100 40 code\n");
    let injected = scene.inject(&recording, &[]);
    injected.says("cannot be read, such as /srv/app/program");
    assert_eq!(injected.counts(), (0, 0));
}

/// What wasmtime's compiled modules are: object files that were not linked. perf names code in them, too.
#[test]
fn an_object_file_that_was_not_linked_names_its_code_itself() {
    let scene = Scene::new();
    scene.write("f.c", "int f(int n) { return n * 3; }\n").run("cc -O1 -c f.c -o f.cwasm");
    let sections = scene.run("objdump -hw f.cwasm");
    let text = sections.lines().find(|line| line.contains(" .text ")).expect("a section of code");
    let offset = u64::from_str_radix(text.split_whitespace().nth(5).unwrap(), 16).unwrap();
    let mut recording = app(PID, &scene.name("f.cwasm"));
    recording.sample(PID, CODE + offset + 1, 21 * MS).sample(PID, CODE + 0x8000, 22 * MS);
    scene.write("perf.data", recording.file());
    let shown = |of: &str| scene.script(of).iter().map(|sample| sample.shown()).collect::<Vec<_>>();
    assert_eq!(shown("perf.data"), ["21 f+0x1 f.cwasm", "22 [unknown] f.cwasm"]);
    let report = scene.ask("report -i perf.data --stdio").ok().stdout;
    assert!(report.lines().any(|line| line.trim_end().ends_with(" f")), "{report}");
    // It is compiled code that the runtime kept, and may describe, too.
    scene.write(MAP, format!("{:x} 4 by_the_map\n", CODE + offset));
    assert_eq!(scene.inject(&recording, &[]).clean().counts(), (1, 0));
    let by_the_map = "21 by_the_map+0x1 jit-5000007-0.elf";
    assert_eq!(shown("out.data"), [by_the_map, "22 [unknown] f.cwasm"]);
}

/// What a library has symbols for is its own, and this is said.
#[test]
fn lines_over_a_file_with_symbols_say_why_they_are_not_used() {
    let scene = Scene::new();
    scene.write("f.c", "int f(void) { return 1; }").run("cc -shared f.c -o libf.so");
    let symbols = scene.run("nm --defined-only libf.so");
    let symbol = symbols.lines().find(|line| line.ends_with(" T f")).expect("a function");
    let address = CODE + u64::from_str_radix(symbol.split(' ').next().unwrap(), 16).unwrap();
    let mut recording = app(PID, &scene.name("libf.so"));
    recording.sample(PID, address, 21 * MS);
    scene.write(MAP, format!("{address:x} 4 code\n"));
    let injected = scene.inject(&recording, &[]);
    injected.says("(1 in all) is in files that have symbols of their own there");
    injected.says(&scene.name("libf.so"));
    assert!(!injected.said().contains("jitscribe check"), "{}", injected.said());
    assert_eq!(injected.counts(), (0, 0), "the sample is the library's");
}

#[test]
fn a_dump_of_the_same_process_says_more() {
    let (scene, mut recording) = begun(Jit::begun().code(20, 0, "old").code(30, 0, "new"));
    scene.write(MAP, b"7f0000000100 40 stub\n7f0000000000 60 by the map\n");
    scene.expect(
        &mut recording,
        &[
            (PID, 25, 1, "old+0x1 jit-5000007-0-1.elf"),
            (PID, 35, 1, "new+0x1 jit-5000007-0-2.elf"),
            (PID, 36, 0x101, "stub+0x1 jit-5000007-0.elf"),
            (PID, 37, 0x51, "by the map+0x51 jit-5000007-0.elf"),
        ],
    );
}

/// V8 writes both, and a signal leaves the dump without its end.
#[test]
fn a_map_of_the_same_writer_has_what_the_dump_lacks_at_its_end() {
    let (scene, mut recording) = begun(Jit::begun().code(20, 0, "first").code(30, 0x100, "last"));
    let lines = [
        "7f0000000000 40 first",
        "7f0000000100 40 last",
        "7f0000000000 40 second",
        "7f0000000300 40 third",
    ];
    scene.write(MAP, format!("{}\n", lines.join("\n")));
    scene.expect(
        &mut recording,
        &[
            (PID, 25, 1, "first+0x1 jit-5000007-0.elf"),
            (PID, 35, 1, "second+0x1 jit-5000007-0-1.elf"),
            (PID, 36, 0x101, "last+0x1 jit-5000007-0.elf"),
            (PID, 37, 0x301, "third+0x1 jit-5000007-0.elf"),
        ],
    );
}

#[test]
fn a_map_is_found_in_a_folder_and_by_its_name() {
    for args in [
        &["--aux-dir", "moved"][..],
        &["--perf-map", "5000007=moved/x"],
        &["--perf-map", "moved/perf-5000007.map"],
    ] {
        let scene = Scene::new();
        let mut recording = app(PID, "[anon:x]");
        recording.sample(PID, CODE + 1, 25 * MS);
        let map = b"0x7f0000000000 0x40 code\n";
        scene.write("moved/x", map).write("moved/perf-5000007.map", map);
        assert_eq!(scene.inject(&recording, args).clean().counts(), (1, 0), "{args:?}");
        assert_eq!(scene.shown(), ["25 code+0x1 jit-5000007-0.elf"]);
    }
}

#[test]
fn a_line_of_absurd_size_spoils_nothing_else() {
    for huge in
        ["7f0000000000 ffffffffffffffff", "1000 7fffffffffffffff", "7e0000000000 10000000000"]
    {
        let scene = Scene::new();
        let mut recording = app(PID, "//anon");
        recording.sample(PID, CODE + 0x101, 21 * MS);
        scene.write(MAP, format!("{huge} huge\n7f0000000100 40 code\n"));
        assert_eq!(scene.inject(&recording, &[]).counts(), (1, 0), "{huge}");
        let [shown] = &scene.shown()[..] else { panic!() };
        assert!(shown.starts_with("21 code+0x1 "), "{shown}");
    }
}

#[test]
fn code_without_a_gap_that_is_larger_than_one_image_can_be() {
    // Lines of 256 MiB each, with no byte between them: more than 32 bits can count.
    const LINE: u64 = 1 << 28;
    for arch in ["x86_64", "i686"] {
        let scene = Scene::new();
        let mut recording = Recording::new();
        recording.feature(HEADER_ARCH, &feature_text(arch));
        recording.comm(PID, PID, "app", MS).map(PID, CODE..CODE + 18 * LINE, "[anon:JIT]", 2 * MS);
        let mut map = String::new();
        let mut expected = Vec::new();
        for n in 0..18 {
            let address = CODE + n * LINE;
            map += &format!("{address:x} {LINE:x} f{n}\n");
            recording.sample(PID, address + n, (21 + n) * MS);
            expected.push(format!("{} f{n}+{n:#x} jit-5000007-{}.elf", 21 + n, n / 4));
        }
        scene.write(MAP, map);
        assert_eq!(scene.inject(&recording, &[]).clean().counts(), (18, 0), "{arch}");
        assert_eq!(scene.shown(), expected, "{arch}");
    }
}
