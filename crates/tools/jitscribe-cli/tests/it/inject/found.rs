//! Where dumps and perf maps are found, and what is said of those that are not.

use std::process::Command;

use crate::inject::recording::Recording;
use crate::inject::scene::{ARENA, CODE, Injected, Jit, MARKER, MS, OTHER, PID, Scene};

fn dump(pid: u32) -> Vec<u8> {
    Jit::new(pid, 10 * MS).load(20 * MS, CODE, 0x40, "code").bytes()
}

/// A process with this marker, and two samples in its code.
fn recording(marker: Option<&str>) -> Recording {
    let mut recording = Recording::new();
    recording.comm(PID, PID, "app", MS).map(PID, ARENA, "//anon", 2 * MS);
    if let Some(marker) = marker {
        recording.map(PID, MARKER, marker, 10 * MS);
    }
    recording.sample(PID, CODE + 1, 25 * MS);
    recording
}

const NAMED: [&str; 1] = ["25 code+0x1 jit-5000007-0.elf"];

/// The dump at `path` is found and applied.
fn finds(scene: &Scene, marker: Option<&str>, args: &[&str], path: &str) -> Injected {
    let injected = scene.inject(&recording(marker), args);
    assert_eq!(injected.clean().counts(), (1, 0));
    let found = injected.json()["sources"][0]["path"].as_str().unwrap().to_owned();
    assert_eq!(scene.folder().join(&found), scene.path(path), "{found}");
    assert_eq!(scene.shown(), NAMED);
    injected
}

#[test]
fn at_the_recorded_path() {
    let scene = Scene::new();
    scene.write("there/jit-5000007.dump", &dump(PID));
    finds(&scene, Some(&scene.name("there/jit-5000007.dump")), &[], "there/jit-5000007.dump");
}

#[test]
fn by_javascriptcores_name() {
    let scene = Scene::new();
    scene.write("there/jit-5000009-5000007.dump", &dump(PID));
    let name = scene.name("there/jit-5000009-5000007.dump");
    finds(&scene, Some(&name), &[], "there/jit-5000009-5000007.dump");
}

#[test]
fn under_any_name_if_its_header_says_jitdump() {
    let scene = Scene::new();
    for name in ["there/code.log", "there/perf", "there/x.dump (deleted)"] {
        scene.write(name, &dump(PID));
        finds(&scene, Some(&scene.name(name)), &["--force"], name);
    }
}

#[test]
fn in_a_folder_by_its_name() {
    let scene = Scene::new();
    scene.write("moved/deep/jit-5000007.dump", &dump(1)).write("moved/a.dump", &dump(OTHER));
    let marker = "/nowhere/jit-5000007.dump";
    finds(&scene, Some(marker), &["--aux-dir", "moved"], "moved/deep/jit-5000007.dump");
}

#[test]
fn in_a_folder_rather_than_at_the_recorded_path() {
    // Another dump may lie there by now.
    let scene = Scene::new();
    scene.write("moved/jit-5000007.dump", &dump(PID));
    scene.write("there/jit-5000007.dump", &Jit::new(PID, 10 * MS).bytes());
    let marker = scene.name("there/jit-5000007.dump");
    finds(&scene, Some(&marker), &["--aux-dir", "moved"], "moved/jit-5000007.dump");
}

#[test]
fn in_a_folder_by_the_pid_in_its_header() {
    let scene = Scene::new();
    scene.write("moved/other.dump", &dump(OTHER)).write("moved/renamed.dump", &dump(PID));
    let marker = "/nowhere/jit-5000007.dump";
    finds(&scene, Some(marker), &["--aux-dir", "moved"], "moved/renamed.dump");
    let args = ["--aux-dir", "moved", "--force"];
    finds(&scene, None, &args, "moved/renamed.dump");
}

#[test]
fn beside_the_recording() {
    let scene = Scene::new();
    scene.write("jit-5000007.dump", &dump(PID));
    finds(&scene, Some("/nowhere/jit-5000007.dump"), &[], "jit-5000007.dump");
    finds(&scene, None, &["--force"], "jit-5000007.dump");
}

#[test]
fn as_said() {
    let scene = Scene::new();
    scene.write("x/y", &dump(PID));
    finds(&scene, None, &["--jitdump", "x/y"], "x/y");
    let marker = "/nowhere/jit-5000007.dump";
    let said = ["--jitdump", "5000007=x/z", "--force"];
    scene.write("x/z", &dump(1));
    finds(&scene, None, &said, "x/z");
    finds(&scene, Some(marker), &said, "x/z");
}

#[test]
fn a_file_of_a_process_that_was_not_recorded_is_named() {
    let scene = Scene::new();
    scene.write("x/y", &dump(OTHER));
    let injected = scene.inject(&recording(None), &["--jitdump", "x/y"]);
    let said = injected.said();
    assert!(
        said.contains(
            "x/y: the recording has no process 5000008; specify the process with --jitdump PID=x/y"
        ),
        "{said}"
    );
    assert_eq!(injected.counts(), (0, 1));
}

#[test]
fn a_missing_dump_is_named_and_the_rest_goes_on() {
    let scene = Scene::new();
    let mut recording = recording(Some(&scene.name("jit-5000007.dump")));
    recording
        .comm(OTHER, OTHER, "lost", MS)
        .map(OTHER, MARKER, "/nowhere/jit-5000008.dump", 10 * MS)
        .sample(OTHER, CODE + 2, 26 * MS);
    scene.write("jit-5000007.dump", &dump(PID));
    let injected = scene.inject(&recording, &[]);
    assert_eq!(
        injected.warnings(),
        [
            "/nowhere/jit-5000008.dump: the jitdump of lost (pid 5000008) is not there; specify where it \
          is now with --jitdump FILE or --aux-dir DIR"
        ]
    );
    assert_eq!(scene.shown(), [NAMED[0], "26 [unknown] [unknown]"]);
}

#[test]
fn a_damaged_dump_is_named_and_the_rest_goes_on() {
    let scene = Scene::new();
    let good = dump(PID);
    let mut cut = dump(OTHER);
    cut.extend(&good[40..good.len() - 1]);
    let mut recording = recording(Some(&scene.name("jit-5000007.dump")));
    recording
        .comm(OTHER, OTHER, "cut", MS)
        .map(OTHER, MARKER, &scene.name("jit-5000008.dump"), 10 * MS)
        .sample(OTHER, CODE + 2, 26 * MS);
    scene.write("jit-5000007.dump", &good).write("jit-5000008.dump", &cut);
    let injected = scene.inject(&recording, &[]);
    let [warning] = &injected.warnings()[..] else { panic!("{:?}", injected.warnings()) };
    assert!(warning.contains("jit-5000008.dump: truncated at offset 0xa5"), "{warning}");
    assert_eq!(scene.shown(), [NAMED[0], "26 code+0x2 jit-5000008-0.elf"]);
}

#[test]
fn what_is_no_file_at_the_recorded_path_holds_nothing_up() {
    let scene = Scene::new();
    let fifo = scene.name("there/jit-5000007.dump");
    scene.write("there/x", b"");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let plain_fifo = scene.name("there/pipe");
    assert!(Command::new("mkfifo").arg(&plain_fifo).status().unwrap().success());
    let folder = scene.name("there/jit-5000008.dump");
    std::fs::create_dir(&folder).unwrap();
    for path in [&fifo, &plain_fifo, &folder, "/dev/zero", "/dev/tty"] {
        let injected = scene.inject(&recording(Some(path)), &["--force"]);
        assert_eq!(injected.counts(), (0, 1), "{path}");
        let by_name = path.contains("jit-");
        assert_eq!(injected.said().contains("is not there"), by_name, "{}", injected.said());
        for option in ["--jitdump", "--perf-map"] {
            let said = format!("5000007={path}");
            let injected = scene.inject(&recording(None), &["--force", option, &said]);
            assert_eq!(injected.counts(), (0, 1), "{path}");
            assert!(injected.said().contains(path), "{}", injected.said());
        }
    }
}

#[test]
fn a_marker_from_before_the_recording_is_followed() {
    // perf record -p tells of what is mapped already at time 0.
    let scene = Scene::new();
    let mut recording = Recording::new();
    recording
        .comm(PID, PID, "app", 0)
        .map(PID, ARENA, "//anon", 0)
        .map(PID, MARKER, &scene.name("jit-5000007.dump"), 0)
        .sample(PID, CODE + 1, 25 * MS)
        .sample(PID, CODE + 2, 35 * MS);
    let jit =
        Jit::new(PID, 10 * MS).load(20 * MS, CODE, 0x40, "old").load(30 * MS, CODE, 0x40, "new");
    scene.write("jit-5000007.dump", &jit.bytes());
    scene.inject(&recording, &[]).clean();
    assert_eq!(scene.shown(), ["25 old+0x1 jit-5000007-0.elf", "35 new+0x2 jit-5000007-0-1.elf"]);
}

#[test]
fn nothing_to_do_says_why() {
    let scene = Scene::new();
    let injected = scene.inject(&recording(None), &[]);
    assert_eq!(injected.counts(), (0, 1));
    assert!(
        injected.said().contains(
            "nothing was applied: the recording shows no jitdump and no perf map was found"
        ),
        "{}",
        injected.said()
    );
    assert_eq!(injected.images(), [""; 0]);
    assert_eq!(
        std::fs::read(scene.path("perf.data")).unwrap(),
        std::fs::read(scene.path("out.data")).unwrap()
    );
    let injected = scene.inject(&recording(Some("/nowhere/jit-5000007.dump")), &["--force"]);
    assert!(injected.said().contains("none of the recorded dumps exists"), "{}", injected.said());
    let empty = Jit::new(PID, 10 * MS).bytes();
    scene.write("jit-5000007.dump", &empty);
    let injected = scene.inject(&recording(None), &["--force"]);
    assert!(injected.said().contains("none of the files contains code"), "{}", injected.said());
}

/// Started by the dynamic linker, the command takes that for its own program, and cannot start its helper process.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_helper_that_does_not_start_is_no_missing_file() {
    let scene = Scene::new();
    scene.write("jit-5000007.dump", &dump(PID));
    scene.write("perf.data", &recording(Some(&scene.name("jit-5000007.dump"))).file());
    let mut command = Command::new("/lib64/ld-linux-x86-64.so.2");
    command.arg(env!("CARGO_BIN_EXE_jitscribe")).current_dir(scene.folder());
    command.args(["inject", "-i", "perf.data", "-o", "out.data", "--no-inferred-names"]);
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert_eq!(said.matches("the helper process").count(), 1, "{said}");
    assert!(said.contains("ld-linux-x86-64.so.2"), "{said}");
}

/// Names come again: a pid's, and a container's `jit-1.dump`.
#[test]
fn but_not_the_dump_of_another_run() {
    let scene = Scene::new();
    let loaded_at = |time| Jit::new(PID, time).load(time, CODE, 0x40, "other").bytes();
    let says = |scene: &Scene, recording: &Recording, why: &str| {
        let injected = scene.inject(recording, &["--force"]);
        let warnings = injected.warnings();
        assert!(warnings.iter().any(|warning| warning.contains(why)), "{warnings:?}");
        assert_eq!(injected.counts(), (0, 1));
        assert!(scene.shown()[0].contains("[unknown]"), "{:?}", scene.shown());
    };

    scene.write("jit-5000007.dump", &loaded_at(2000 * MS));
    let marker = scene.name("jit-5000007.dump");
    says(&scene, &recording(Some(&marker)), "after the recording ended");

    scene.write("jit-5000007.dump", &loaded_at(20 * MS));
    let mut later = Recording::new();
    later.exec(PID, "app", 3000 * MS).map(PID, ARENA, "//anon", 3001 * MS);
    later.map(PID, MARKER, &marker, 3002 * MS).sample(PID, CODE + 1, 3003 * MS);
    says(&scene, &later, "before the process started");
}
