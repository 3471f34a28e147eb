//! Where dumps and perf maps are found, and what is said of those that are not.

use crate::common::{JITSCRIBE, finish};
use crate::inject::recording::Recording;
use crate::inject::scene::{ARENA, CODE, DUMP, Jit, MARKER, MS, OTHER, PID, Scene, app};

fn dump(pid: u32) -> Vec<u8> {
    Jit::new(pid, 10 * MS).code(20, 0, "code").bytes()
}

/// A process with this marker, and a sample in its code.
fn recording(marker: Option<&str>) -> Recording {
    let mut recording = app(PID, "//anon");
    if let Some(marker) = marker {
        recording.map(PID, MARKER, marker, 10 * MS);
    }
    recording.sample(PID, CODE + 1, 25 * MS);
    recording
}

const NAMED: [&str; 1] = ["25 code+0x1 jit-5000007-0.elf"];

/// The dump at `path` is found and applied.
fn finds(what: &str, scene: &Scene, marker: Option<&str>, args: &[&str], path: &str) {
    let injected = scene.inject(&recording(marker), args);
    assert_eq!(injected.clean().counts(), (1, 0), "{what}");
    let found = injected.json()["sources"][0]["path"].as_str().unwrap().to_owned();
    assert_eq!(scene.path(&found), scene.path(path), "{what}: {found}");
    assert_eq!(scene.shown(), NAMED, "{what}");
}

/// Where a dump of `PID` was, and is no more.
const NOWHERE: Option<&str> = Some("/nowhere/jit-5000007.dump");

#[test]
fn at_the_recorded_path() {
    for (what, path) in [
        ("by its name", "there/jit-5000007.dump"),
        ("by JavaScriptCore's name", "there/jit-5000009-5000007.dump"),
        ("by its header", "there/code.log"),
        ("by its header", "there/perf"),
        ("by its header", "there/x.dump (deleted)"),
    ] {
        let scene = Scene::new();
        scene.write(path, dump(PID));
        finds(what, &scene, Some(&scene.name(path)), &[], path);
    }
}

#[test]
fn in_a_folder_rather_than_at_the_recorded_path() {
    // Another dump may lie there by now.
    let scene = Scene::new();
    scene.write("moved/jit-5000007.dump", dump(PID));
    scene.write("there/jit-5000007.dump", Jit::begun().bytes());
    let marker = scene.name("there/jit-5000007.dump");
    finds("moved", &scene, Some(&marker), &["--aux-dir", "moved"], "moved/jit-5000007.dump");
}

#[test]
fn elsewhere() {
    // Dumps, with the processes in their headers; the recorded path; options; which is found.
    type Case<'a> = (&'a str, &'a [(&'a str, u32)], Option<&'a str>, &'a [&'a str], &'a str);
    let by_name: &[_] = &[("moved/deep/jit-5000007.dump", 1), ("moved/a.dump", OTHER)];
    let by_header: &[_] = &[("moved/other.dump", OTHER), ("moved/renamed.dump", PID)];
    let beside: &[_] = &[(DUMP, PID)];
    let said: &[_] = &[("x/y", PID), ("x/z", 1)];
    let (moved, y, z) =
        (["--aux-dir", "moved"], ["--jitdump", "x/y"], ["--jitdump", "5000007=x/z"]);
    let cases: &[Case<'_>] = &[
        ("in a folder, by its name", by_name, NOWHERE, &moved, "moved/deep/jit-5000007.dump"),
        ("in a folder, by its header", by_header, NOWHERE, &moved, "moved/renamed.dump"),
        ("in a folder, without a marker", by_header, None, &moved, "moved/renamed.dump"),
        ("beside the recording", beside, NOWHERE, &[], DUMP),
        ("beside the recording, without a marker", beside, None, &[], DUMP),
        ("as said", said, None, &y, "x/y"),
        ("as said with a process", said, None, &z, "x/z"),
        ("as said with a process, though there is a marker", said, NOWHERE, &z, "x/z"),
    ];
    for (what, files, marker, args, found) in cases {
        let scene = Scene::new();
        for (name, pid) in *files {
            scene.write(name, dump(*pid));
        }
        finds(what, &scene, *marker, args, found);
    }
}

#[test]
fn a_file_of_a_process_that_was_not_recorded_is_named() {
    let scene = Scene::new();
    scene.write("x/y", dump(OTHER));
    let injected = scene.inject(&recording(None), &["--jitdump", "x/y"]);
    injected.says(
        "x/y: the recording has no process 5000008; specify the process with --jitdump PID=x/y",
    );
    assert_eq!(injected.counts(), (0, 1));
}

#[test]
fn a_missing_or_damaged_dump_is_named_and_the_rest_goes_on() {
    let good = dump(PID);
    let mut cut = dump(OTHER);
    cut.extend(&good[40..good.len() - 1]);
    let missing = "/nowhere/jit-5000008.dump: the jitdump of lost (pid 5000008) is not there; \
                   specify where it is now with --jitdump FILE or --aux-dir DIR";
    let damaged = "./jit-5000008.dump: truncated at offset 0xa5, or still being written; \
                   the 1 codes before that are used";
    for (content, warned, shown) in [
        (None, missing, "26 [unknown] [unknown]"),
        (Some(cut), damaged, "26 code+0x2 jit-5000008-0.elf"),
    ] {
        let scene = Scene::new();
        let mut recording = recording(Some(&scene.name(DUMP)));
        scene.write(DUMP, &good);
        let mut marker = "/nowhere/jit-5000008.dump".to_owned();
        if let Some(content) = content {
            marker = scene.name("jit-5000008.dump");
            scene.write("jit-5000008.dump", content);
        }
        recording.comm(OTHER, OTHER, "lost", MS).map(OTHER, MARKER, &marker, 10 * MS);
        recording.sample(OTHER, CODE + 2, 26 * MS);
        let injected = scene.inject(&recording, &[]);
        assert_eq!(injected.warnings(), [warned]);
        assert_eq!(scene.shown(), [NAMED[0], shown]);
    }
}

#[test]
fn what_is_no_file_at_the_recorded_path_holds_nothing_up() {
    let scene = Scene::new();
    let [fifo, plain_fifo] = [scene.name("there/jit-5000007.dump"), scene.name("there/pipe")];
    let folder = scene.name("there/jit-5000008.dump");
    scene.write("there/x", b"").run(&["mkfifo", &fifo, &plain_fifo]);
    std::fs::create_dir(&folder).unwrap();
    for path in [&fifo, &plain_fifo, &folder, "/dev/zero", "/dev/tty"] {
        let injected = scene.inject(&recording(Some(path)), &["--force"]);
        assert_eq!(injected.counts(), (0, 1), "{path}");
        let by_name = path.contains("jit-");
        let is_skipped = injected.said().contains("not a regular file; skipped");
        assert_eq!(is_skipped, by_name, "{}", injected.said());
        for option in ["--jitdump", "--perf-map"] {
            let said = format!("5000007={path}");
            let injected = scene.inject(&recording(None), &["--force", option, &said]);
            assert_eq!(injected.counts(), (0, 1), "{path}");
            injected.says(path);
        }
    }
}

#[test]
fn a_marker_from_before_the_recording_is_followed() {
    // perf record -p tells of what is mapped already at time 0.
    let scene = Scene::new();
    let mut recording = Recording::new();
    recording.comm(PID, PID, "app", 0).map(PID, ARENA, "//anon", 0);
    recording.map(PID, MARKER, &scene.name(DUMP), 0);
    let jit = Jit::begun().code(20, 0, "old").code(30, 0, "new");
    scene.dump(jit);
    let old = (PID, 25, 1, "old+0x1 jit-5000007-0.elf");
    scene.expect(&mut recording, &[old, (PID, 35, 2, "new+0x2 jit-5000007-0-1.elf")]);
}

#[test]
fn a_dump_that_cannot_be_used_is_named_as_what_it_is() {
    let scene = Scene::new();
    scene.write(DUMP, "");
    let marker = scene.name(DUMP);
    for args in [&["--force"][..], &["--force", "--jitdump", DUMP]] {
        let injected = scene.inject(&recording(Some(&marker)), args);
        injected.says(&format!("{DUMP}: empty (0 bytes)"));
    }
    scene.write(DUMP, "some text, which is longer than the header of a jitdump");
    let injected = scene.inject(&recording(Some(&marker)), &["--force"]);
    injected.says(&format!("{DUMP}: not a readable jitdump"));
    std::fs::remove_file(scene.path(DUMP)).expect("removed");
    std::fs::create_dir(scene.path(DUMP)).expect("a folder");
    let injected = scene.inject(&recording(Some(&marker)), &["--force"]);
    injected.says(&format!("{DUMP}: not a regular file"));
    std::fs::remove_dir(scene.path(DUMP)).expect("removed");
    let injected = scene.inject(&recording(Some(&marker)), &["--force"]);
    injected.says("is not there; specify where it is now");
    scene.write("perf-5000007.map", "");
    let injected = scene.inject(&recording(None), &["--force"]);
    injected.says("perf-5000007.map: empty (0 bytes)");
}

#[test]
fn nothing_to_do_says_why() {
    let scene = Scene::new();
    let injected = scene.inject(&recording(None), &[]);
    injected.says("nothing was applied: the recording shows no jitdump and no perf map was found");
    assert_eq!(injected.counts(), (0, 1));
    assert_eq!(injected.images(), [""; 0]);
    assert_eq!(scene.read("perf.data"), scene.read("out.data"));
    let injected = scene.inject(&recording(NOWHERE), &["--force"]);
    injected.says("none of the recorded dumps can be used");
    scene.dump(Jit::begun());
    let injected = scene.inject(&recording(None), &["--force"]);
    injected.says("the files that were found have no code to use");
}

/// Started by the dynamic linker, the command takes that for its own program, and cannot start its helper process.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_helper_that_does_not_start_is_no_missing_file() {
    let scene = Scene::new();
    scene.write(DUMP, dump(PID));
    scene.write("perf.data", recording(Some(&scene.name(DUMP))).file());
    let mut command = scene.command(&["/lib64/ld-linux-x86-64.so.2", JITSCRIBE, "inject"]);
    command.args(["-i", "perf.data", "-o", "out.data", "--no-inferred-names"]);
    let done = finish(&mut command);
    assert_ne!(done.code, 0, "{done:?}");
    assert_eq!(done.stderr.matches("the helper process").count(), 1, "{done:?}");
    done.says("ld-linux-x86-64.so.2");
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

    scene.write(DUMP, loaded_at(2000 * MS));
    let marker = scene.name(DUMP);
    says(&scene, &recording(Some(&marker)), "after the recording ended");

    scene.write(DUMP, loaded_at(20 * MS));
    let mut later = Recording::new();
    later.exec(PID, "app", 3000 * MS).map(PID, ARENA, "//anon", 3001 * MS);
    later.map(PID, MARKER, &marker, 3002 * MS).sample(PID, CODE + 1, 3003 * MS);
    says(&scene, &later, "before the process started");
}
