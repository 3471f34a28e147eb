//! Recordings of every shape: pipes, several events, old kernels, other machines, cut off.

use crate::inject::recording::{Attr, CPU, IDENTIFIER, PERIOD, Recording, USUAL};
use crate::inject::scene::{ARENA, CODE, DUMP, Injected, Jit, MS, PID, Scene, process};

/// `CODE` re-jitted at 30 ms.
fn dump() -> Vec<u8> {
    Jit::begun().code(20, 0, "old").code(30, 0, "new").bytes()
}

fn sampled(scene: &Scene, mut recording: Recording) -> Recording {
    process(scene, &mut recording, PID);
    recording.sample(PID, CODE + 1, 25 * MS).round();
    recording.sample(PID, CODE + 2, 35 * MS).round();
    scene.write(DUMP, dump());
    recording
}

/// What this recording was, all else being equal, makes no difference.
fn expect_both(recording: Recording) -> Injected {
    let scene = Scene::new();
    let injected = scene.inject(&sampled(&scene, recording), &[]);
    injected.clean();
    assert_eq!(scene.shown(), BOTH);
    injected
}

const BOTH: [&str; 2] = ["25 old+0x1 jit-5000007-0.elf", "35 new+0x2 jit-5000007-0-1.elf"];

#[test]
fn a_pipe_into_a_file_and_a_file_into_a_pipe() {
    let scene = Scene::new();
    let recording = sampled(&scene, Recording::new());
    scene.write("pipe.data", recording.pipe());
    scene.inject_file("pipe.data", &[]).clean();
    assert_eq!(scene.shown(), BOTH);

    scene.write("perf.data", recording.file());
    let to_pipe =
        |options: &[&str]| scene.injected(&[&["-i", "perf.data", "-o", "-"], options].concat());
    let piped = to_pipe(&["--image-dir", "images"]);
    assert!(piped.output.status.success(), "{}", piped.said());
    piped.says("2 named, 0 inferred, 0 unnamed");
    scene.write("piped.data", &piped.output.stdout);
    let shown: Vec<String> = scene.script("piped.data").iter().map(|s| s.shown()).collect();
    assert_eq!(shown, BOTH);
    // Two images, and the list of compilations.
    assert_eq!(std::fs::read_dir(scene.path("images")).unwrap().count(), 3);

    let refused = to_pipe(&[]);
    refused.fails("-o - needs --image-dir DIR");
    assert_eq!(refused.output.stdout, b"");
    to_pipe(&["--image-dir", "images", "--json"]).fails("");
}

#[test]
fn two_events_of_different_layout() {
    // The first has trailers of four words, the second samples of other fields.
    let attrs = [
        Attr::new(USUAL | CPU | IDENTIFIER).id(41),
        Attr::new((USUAL | IDENTIFIER) & !PERIOD).id(42).only_samples(),
    ];
    let scene = Scene::new();
    let mut recording = Recording::of(&attrs);
    process(&scene, &mut recording, PID);
    recording
        .sample_of(0, (PID, PID), CODE + 1, &[], 25 * MS)
        .sample_of(1, (PID, PID), CODE + 2, &[], 26 * MS)
        .sample_of(1, (PID, PID), CODE + 3, &[], 35 * MS)
        .sample_of(0, (PID, PID), CODE + 4, &[], 36 * MS);
    scene.write(DUMP, dump());
    scene.inject(&recording, &[]).clean();
    assert_eq!(
        scene.shown(),
        [
            "25 old+0x1 jit-5000007-0.elf",
            "26 old+0x2 jit-5000007-0.elf",
            "35 new+0x3 jit-5000007-0-1.elf",
            "36 new+0x4 jit-5000007-0-1.elf",
        ]
    );
}

#[test]
fn records_without_times() {
    // perf takes such a recording's events as they come.
    let attr = Attr::new(USUAL).without_sample_id_all();
    assert_eq!(expect_both(Recording::of(&[attr])).counts(), (2, 0));
}

#[test]
fn of_a_machine_of_the_other_byte_order() {
    expect_both(Recording::new().big_endian());
}

#[test]
fn cut_off_anywhere() {
    let scene = Scene::new();
    let recording = sampled(&scene, Recording::new());
    let whole = recording.file();
    for kept in (0..=whole.len()).rev() {
        scene.write("perf.data", &whole[..kept]);
        let injected = scene.inject_file("perf.data", &["--force"]);
        let at_data = whole.len() - recording.len();
        if kept < at_data {
            injected.fails("jitscribe: error: perf.data: ");
            continue;
        }
        let (named, _) = injected.counts();
        if kept == whole.len() {
            injected.clean();
        } else {
            injected.says("truncated at offset");
        }
        // perf is asked where an event ends, which is where the picture changes.
        if kept % 40 == 0 && injected.json()["events"] != 0 {
            assert_eq!(scene.shown(), BOTH[..named as usize], "{kept}");
        }
    }
}

#[test]
fn events_in_any_order_within_the_recording() {
    // CPUs' buffers are read one after the other: here mappings come behind the samples in them.
    let scene = Scene::new();
    let mut recording = Recording::new();
    recording
        .sample(PID, CODE + 2, 35 * MS)
        .sample(PID, CODE + 1, 25 * MS)
        .map(PID, ARENA, "[anon:later]", 40 * MS)
        .sample(PID, CODE + 3, 45 * MS);
    process(&scene, &mut recording, PID);
    recording.round();
    scene.write(DUMP, dump());
    scene.inject(&recording, &[]).clean();
    assert_eq!(scene.shown(), [BOTH[0], BOTH[1], "45 new+0x3 jit-5000007-0-1.elf"]);
}
