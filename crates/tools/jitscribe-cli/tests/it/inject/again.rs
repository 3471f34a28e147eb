//! Recordings that were injected before, as all are that `jitscribe record` writes.

use crate::inject::recording::Recording;
use crate::inject::scene::{CODE, DUMP, Injected, Jit, MS, PID, Scene};

/// Code of a map, and samples in it, in other memory of the same page, and in the next page. `first.data` has names for all of them.
fn begun() -> Scene {
    let scene = Scene::new();
    scene.write("first.map", "7f0000000000 40 announced\n");
    let mut recording = Recording::new();
    recording.comm(PID, PID, "app", MS).map(PID, CODE..CODE + 0x4000, "//anon", 2 * MS);
    for (time, offset) in [(10, 0x10), (11, 0x100), (12, 0x1010), (13, 0x104), (14, 0x11)] {
        recording.sample(PID, CODE + offset, time * MS);
    }
    scene.write("perf.data", recording.file());
    scene.ask("inject -i perf.data -o first.data --perf-map 5000007=first.map").ok();
    scene
}

fn again(scene: &Scene, source: &[&str]) -> Injected {
    scene.inject_file("first.data", &[&["--force"], source].concat())
}

const AFTER: &str = "[jit code after announced]";

#[test]
fn an_announced_name_takes_the_place_of_an_inferred_one() {
    let scene = begun();
    scene.write("later.map", "7f0000000000 40 other\n7f0000000100 40 late\n");
    let maps = ["--perf-map", "5000007=later.map"];
    assert_eq!(again(&scene, &maps).clean().counts(), (2, 0));
    let expected = ["announced", "late", AFTER, "late", "announced"];
    assert_eq!(scene.names_alone(), expected);
    // The new image has another name than those that are there.
    assert_eq!(scene.shown()[1], "11 late+0x0 jit-5000007-1.elf");
    let report = scene.ask("report -i out.data --stdio").ok().stdout;
    for name in ["announced", "late", AFTER] {
        assert!(report.contains(&format!(" {name}\n")), "{report}");
    }
    // Once more, from what was written now.
    scene.write("last.map", "7f0000001000 40 last\n7f0000000100 40 other\n");
    let last = ["-i", "out.data", "-o", "last.data", "--perf-map", "5000007=last.map", "--json"];
    assert_eq!(scene.injected(&last).clean().counts(), (1, 0));
    let shown = scene.script("last.data").into_iter().map(|sample| sample.shown());
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            "10 announced+0x10 jit-5000007-0.elf",
            "11 late+0x0 jit-5000007-1.elf",
            "12 last+0x10 jit-5000007-2.elf",
            "13 late+0x4 jit-5000007-1.elf",
            "14 announced+0x11 jit-5000007-0.elf",
        ]
    );
}

/// Code of a jitdump has its times: what ran before keeps its name.
#[test]
fn so_does_a_name_of_a_jitdump_from_its_load_on() {
    let scene = begun();
    scene.write(DUMP, Jit::new(PID, 5 * MS).load(5 * MS, CODE + 0x100, 0x40, "old").bytes());
    assert_eq!(again(&scene, &["--jitdump", DUMP]).counts(), (2, 0));
    assert_eq!(scene.names_alone(), ["announced", "old", AFTER, "old", "announced"]);
    let jit = Jit::new(PID, 5 * MS).load(5 * MS, CODE + 0x100, 0x40, "old");
    scene.write(DUMP, jit.load(12 * MS + 1, CODE + 0x100, 0x40, "new").bytes());
    assert_eq!(again(&scene, &["--jitdump", DUMP]).counts(), (2, 0));
    assert_eq!(scene.names_alone(), ["announced", "old", AFTER, "new", "announced"]);
}

#[test]
fn what_is_named_already_is_not_blamed_on_the_file() {
    let scene = begun();
    let said = again(&scene, &["--perf-map", "5000007=first.map"]).said();
    assert!(said.contains("an earlier run of jitscribe named it"), "{said}");
    assert!(!said.contains("jitscribe check"), "{said}");
    assert_eq!(scene.names_alone(), ["announced", AFTER, AFTER, AFTER, "announced"]);
}
