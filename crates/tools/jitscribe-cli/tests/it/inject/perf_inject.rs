//! Recordings that `perf inject --jit` has written: each code is in a file `jitted-PID-NUMBER.so`.

use crate::inject::recording::Recording;
use crate::inject::scene::{ARENA, CODE, DUMP, Injected, Jit, MARKER, MS, PID, Scene};

/// A recording of code of V8's tiers, and `q.jit.data`, which perf made of it.
fn begun() -> (Scene, Recording) {
    let scene = Scene::new();
    let jit = Jit::begun().code(20, 0, "JS:~render /src/a.js:2:21");
    let jit = jit.code(21, 0x100, "JS:*render /src/a.js:2:21").code(30, 0, "JS:^sum /src/b.js:7:1");
    scene.dump(jit);
    let mut recording = Recording::new();
    recording.comm(PID, PID, "app", MS).map(PID, ARENA, "//anon", 2 * MS);
    recording.map(PID, MARKER, &scene.name(DUMP), 10 * MS);
    for (time, offset) in [(25, 1), (26, 0x101), (27, 0x120), (35, 1)] {
        recording.sample(PID, CODE + offset, time * MS);
    }
    scene.write("q.data", recording.file());
    scene.run("perf inject --jit -i q.data -o q.jit.data");
    let shown = scene.script("q.jit.data");
    assert_eq!(shown[0].shown(), "25 JS:~render /src/a.js:2:21+0x1 jitted-5000007-0.so");
    (scene, recording)
}

#[test]
fn its_files_are_jitted_code() {
    let (scene, _) = begun();
    let folded = |input: &str| {
        // Not the lines: those of a definition are in our images only.
        let export = ["export", "--folded", "--tiers", "-i", input, "-o", "-"];
        let done = scene.ask(&export[..]).ok();
        assert!(!done.stderr.contains("warning"), "{}", done.stderr);
        let mut lines: Vec<&str> = done.stdout.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    };
    let of_original = folded("q.data");
    assert!(of_original.contains("turbofan"), "{of_original}");
    assert_eq!(folded("q.jit.data"), of_original);
    // The machine code of the function is there.
    let annotated = scene.ask("annotate render -i q.jit.data --asm").ok().stdout;
    assert!(annotated.contains("nop") && annotated.contains("turbofan"), "{annotated}");
    // What perf found is all that there is without the jitdump, too.
    std::fs::remove_file(scene.path(DUMP)).unwrap();
    assert_eq!(folded("q.jit.data"), of_original);
}

/// perf writes them beside the jitdump, where they may be removed.
#[test]
fn code_of_files_that_are_gone_is_in_the_jitdump() {
    let (scene, _) = begun();
    for file in ["jitted-5000007-0.so", "jitted-5000007-1.so", "jitted-5000007-2.so"] {
        std::fs::remove_file(scene.path(file)).unwrap();
    }
    let report = scene.ask("report -i q.jit.data --stdio").ok().stdout;
    for name in ["turbofan +1  render", "sparkplug    sum"] {
        assert!(report.contains(name), "{report}");
    }
}

#[test]
fn inject_says_so() {
    let (scene, _) = begun();
    let says_so = |injected: &Injected| {
        let said = injected.said();
        assert_eq!(said.matches("been through perf inject --jit; use the original").count(), 1);
        for wrong in ["contains no code", "jitscribe check", "nothing was applied"] {
            assert!(!said.contains(wrong), "{said}");
        }
    };
    says_so(&scene.inject_file("q.jit.data", &[]));
    assert_eq!(scene.read("q.jit.data"), scene.read("out.data"));
    std::fs::remove_file(scene.path(DUMP)).unwrap();
    says_so(&scene.inject_file("q.jit.data", &["--force"]));
}

/// perf names no memory without a jitdump: a map for it is used.
#[test]
fn maps_of_other_code_are_used() {
    let (scene, mut recording) = begun();
    recording.sample(PID, CODE + 0x4000, 40 * MS);
    scene.write("q.data", recording.file());
    scene.run("perf inject --jit -f -i q.data -o q.jit.data");
    scene.write("perf-5000007.map", "7f0000000100 40 other\n7f0000004000 40 by the map\n");
    let injected = scene.inject_file("q.jit.data", &[]);
    assert_eq!(injected.counts(), (1, 0));
    let names = ["JS:~render /src/a.js:2:21", "JS:*render /src/a.js:2:21"];
    let names = [names[0], names[1], names[1], "JS:^sum /src/b.js:7:1", "by the map"];
    assert_eq!(scene.names_alone(), names);
}
