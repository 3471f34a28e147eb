//! Forks, execs, threads, namespaces: whose code it is.

use crate::inject::recording::Recording;
use crate::inject::scene::{ARENA, CODE, Jit, MARKER, MS, OTHER, PID, Scene, process};

fn jit() -> Jit {
    Jit::new(PID, 10 * MS)
}

/// The process that most tests begin with.
fn begun() -> (Scene, Recording) {
    let scene = Scene::new();
    let mut recording = Recording::new();
    process(&scene, &mut recording, PID);
    (scene, recording)
}

/// PID, symbol and file of each sample.
fn by_pid(scene: &Scene) -> Vec<String> {
    let name = |pid| if pid == PID { "one" } else { "other" };
    let samples = scene.script("out.data").into_iter();
    samples.map(|sample| format!("{} {}", name(sample.pid), sample.shown())).collect()
}

#[test]
fn a_child_shows_its_parents_code_as_of_the_fork() {
    let (scene, mut recording) = begun();
    recording
        .sample(PID, CODE + 1, 25 * MS)
        .fork(OTHER, PID, 50 * MS)
        .sample(OTHER, CODE + 2, 55 * MS)
        .sample(PID, CODE + 3, 65 * MS)
        .sample(OTHER, CODE + 4, 66 * MS)
        .sample(OTHER, CODE + 0x1000, 67 * MS)
        .sample(PID, CODE + 0x8000, 300 * MS)
        .sample(OTHER, CODE + 0x8000, 301 * MS);
    let jit = jit()
        .load(20 * MS, CODE, 0x40, "before")
        .load(20 * MS, CODE + 0x1000, 0x40, "not seen in the parent")
        .load(60 * MS, CODE, 0x40, "after")
        .load(290 * MS, CODE + 0x8000, 0x40, "long after");
    scene.write("jit-5000007.dump", &jit.bytes());
    scene.inject(&recording, &[]).clean();
    assert_eq!(
        by_pid(&scene),
        [
            "one 25 before+0x1 jit-5000007-0.elf",
            "other 55 before+0x2 jit-5000007-0.elf",
            "one 65 after+0x3 jit-5000007-0-1.elf",
            "other 66 before+0x4 jit-5000007-0.elf",
            "other 67 not seen in the parent+0x0 jit-5000007-0.elf",
            "one 300 long after+0x0 jit-5000007-0.elf",
            "other 301 [unknown] perf-5000008.map",
        ]
    );
}

#[test]
fn a_child_with_a_dump_of_its_own_shows_both() {
    let (scene, mut recording) = begun();
    recording
        .sample(PID, CODE + 1, 25 * MS)
        .fork(OTHER, PID, 50 * MS)
        .map(OTHER, MARKER, &scene.name("jit-5000008.dump"), 52 * MS)
        .sample(OTHER, CODE + 2, 55 * MS)
        .sample(OTHER, CODE + 3, 65 * MS)
        .sample(PID, CODE + 4, 66 * MS)
        .sample(OTHER, CODE + 0x101, 67 * MS);
    let parents =
        jit().load(20 * MS, CODE, 0x40, "parent's").load(20 * MS, CODE + 0x100, 0x40, "old");
    let childs = Jit::new(OTHER, 52 * MS).load(60 * MS, CODE, 0x40, "child's");
    scene.write("jit-5000007.dump", &parents.bytes());
    scene.write("jit-5000008.dump", &childs.bytes());
    scene.inject(&recording, &[]).clean();
    assert_eq!(
        by_pid(&scene),
        [
            "one 25 parent's+0x1 jit-5000007-0.elf",
            "other 55 parent's+0x2 jit-5000008-0.elf",
            "other 65 child's+0x3 jit-5000008-0-1.elf",
            "one 66 parent's+0x4 jit-5000007-0.elf",
            "other 67 old+0x1 jit-5000008-0.elf",
        ]
    );
}

#[test]
fn a_forked_child_may_go_on_in_its_parents_dump() {
    let (scene, mut recording) = begun();
    recording
        .fork(OTHER, PID, 50 * MS)
        .sample(PID, CODE + 1, 65 * MS)
        .sample(OTHER, CODE + 2, 66 * MS)
        .sample(PID, CODE + 0x101, 75 * MS)
        .sample(OTHER, CODE + 0x102, 76 * MS)
        .sample(PID, CODE + 0x201, 85 * MS)
        .sample(OTHER, CODE + 0x301, 86 * MS);
    // Both count on from where the parent was.
    let mut jit = jit().load(20 * MS, CODE, 0x40, "before").by(PID);
    jit = jit.load(60 * MS, CODE + 0x100, 0x40, "parent's").by(OTHER).index(1);
    jit = jit.load(60 * MS, CODE + 0x100, 0x40, "child's").by(PID);
    jit = jit.moved(80 * MS, 1, CODE + 0x100, CODE + 0x200, 0x40).by(OTHER);
    let jit = jit.moved(80 * MS, 1, CODE + 0x100, CODE + 0x300, 0x40);
    scene.write("jit-5000007.dump", &jit.bytes());
    scene.inject(&recording, &[]).clean();
    assert_eq!(
        by_pid(&scene),
        [
            "one 65 before+0x1 jit-5000007-0.elf",
            "other 66 before+0x2 jit-5000008-0.elf",
            "one 75 parent's+0x1 jit-5000007-0.elf",
            "other 76 child's+0x2 jit-5000008-0.elf",
            "one 85 parent's+0x1 jit-5000007-0.elf",
            "other 86 child's+0x1 jit-5000008-0.elf",
        ]
    );
}

#[test]
fn exec_ends_all_code() {
    let (scene, mut recording) = begun();
    recording
        .sample(PID, CODE + 1, 25 * MS)
        .exec(PID, "next", 50 * MS)
        .map(PID, ARENA, "[anon:heap]", 56 * MS)
        .sample(PID, CODE + 3, 57 * MS);
    scene.write("jit-5000007.dump", &jit().load(20 * MS, CODE, 0x40, "code").bytes());
    let counts = scene.inject(&recording, &[]).counts();
    assert_eq!(counts, (1, 1));
    assert_eq!(scene.shown(), ["25 code+0x1 jit-5000007-0.elf", "57 [unknown] [anon:heap]"]);
}

#[test]
fn a_program_that_replaced_another_has_its_own_dump() {
    let scene = Scene::new();
    let mut recording = Recording::new();
    recording
        .comm(PID, PID, "app", MS)
        .map(PID, ARENA, "//anon", 2 * MS)
        .map(PID, MARKER, &scene.name("first/jit-5000007.dump"), 10 * MS)
        .sample(PID, CODE + 1, 25 * MS)
        .exec(PID, "next", 50 * MS)
        .map(PID, ARENA, "//anon", 51 * MS)
        .map(PID, MARKER, &scene.name("second/jit-5000007.dump"), 52 * MS)
        .sample(PID, CODE + 2, 65 * MS);
    let first = jit().load(20 * MS, CODE, 0x40, "first");
    scene.write("first/jit-5000007.dump", &first.bytes());
    let second = Jit::new(PID, 52 * MS).load(60 * MS, CODE, 0x40, "second");
    scene.write("second/jit-5000007.dump", &second.bytes());
    scene.inject(&recording, &[]).clean();
    let shown: Vec<String> =
        scene.shown().iter().map(|line| line.split('+').next().unwrap().into()).collect();
    assert_eq!(shown, ["25 first", "65 second"]);
}

#[test]
fn a_pid_that_is_used_again_is_another_process() {
    let (scene, mut recording) = begun();
    recording
        .sample(PID, CODE + 1, 25 * MS)
        .exit(PID, 30 * MS)
        .comm(OTHER, OTHER, "shell", 35 * MS)
        .fork(PID, OTHER, 50 * MS)
        .map(PID, ARENA, "[anon:heap]", 51 * MS)
        .sample(PID, CODE + 2, 55 * MS);
    scene.write("jit-5000007.dump", &jit().load(20 * MS, CODE, 0x40, "code").bytes());
    let counts = scene.inject(&recording, &[]).counts();
    assert_eq!(counts, (1, 1));
    assert_eq!(scene.shown(), ["25 code+0x1 jit-5000007-0.elf", "55 [unknown] [anon:heap]"]);
}

#[test]
fn threads_share_their_process_code() {
    let (scene, mut recording) = begun();
    let thread = PID + 100;
    recording
        .thread(PID, thread, 12 * MS)
        .comm(PID, thread, "compiler", 13 * MS)
        .sample_of(0, (PID, thread), CODE + 1, &[], 25 * MS)
        .sample_of(0, (PID, thread), CODE + 2, &[], 35 * MS);
    let jit = jit().load(20 * MS, CODE, 0x40, "one").load(30 * MS, CODE, 0x40, "two");
    scene.write("jit-5000007.dump", &jit.bytes());
    scene.inject(&recording, &[]).clean();
    assert_eq!(scene.shown(), ["25 one+0x1 jit-5000007-0.elf", "35 two+0x2 jit-5000007-0-1.elf"]);
    let samples = scene.script("out.data");
    assert_eq!((&samples[0].comm[..], samples[0].tid), ("compiler", thread));
}

#[test]
fn in_a_pid_namespace_the_marker_says_whose_dump_it_is() {
    let scene = Scene::new();
    let mut recording = Recording::new();
    recording
        .comm(PID, PID, "app", MS)
        .map(PID, ARENA, "//anon", 2 * MS)
        .map(PID, MARKER, &scene.name("jit-1.dump"), 10 * MS)
        .comm(1, 1, "init", MS)
        .map(1, ARENA, "//anon", 2 * MS)
        .sample(PID, CODE + 1, 25 * MS)
        .sample(1, CODE + 1, 26 * MS);
    let jit = Jit::new(1, 10 * MS).load(20 * MS, CODE, 0x40, "inside");
    scene.write("jit-1.dump", &jit.bytes());
    let injected = scene.inject(&recording, &[]);
    assert_eq!(injected.clean().json()["sources"][0]["pid"], PID);
    let shown = scene.shown();
    assert_eq!(shown[0], "25 inside+0x1 jit-5000007-0.elf");
    assert!(shown[1].starts_with("26 [unknown] perf-"), "{shown:?}");
}

#[test]
fn two_processes_with_code_at_the_same_addresses() {
    let (scene, mut recording) = begun();
    process(&scene, &mut recording, OTHER);
    let (mut one, mut other) = (jit(), Jit::new(OTHER, 10 * MS));
    let mut expected = Vec::new();
    for step in 0..6 {
        let time = 20 + 10 * step;
        one = one.load(time * MS, CODE, 0x40, &format!("one {step}"));
        other = other.load((time + 5) * MS, CODE, 0x40, &format!("other {step}"));
        recording.sample(PID, CODE, (time + 7) * MS).sample(OTHER, CODE + 1, (time + 8) * MS);
        let layer = if step == 0 { String::new() } else { format!("-{step}") };
        expected.push(format!("one {} one {step}+0x0 jit-5000007-0{layer}.elf", time + 7));
        expected.push(format!("other {} other {step}+0x1 jit-5000008-0{layer}.elf", time + 8));
    }
    scene.write("jit-5000007.dump", &one.bytes()).write("jit-5000008.dump", &other.bytes());
    assert_eq!(scene.inject(&recording, &[]).clean().counts(), (12, 0));
    assert_eq!(by_pid(&scene), expected);
}
