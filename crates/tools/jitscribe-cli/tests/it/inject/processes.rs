//! Forks, execs, threads, namespaces: whose code it is.

use crate::inject::recording::Recording;
use crate::inject::scene::{ARENA, CODE, Jit, MARKER, MS, OTHER, PID, Scene, begun, process};

#[test]
fn a_child_shows_its_parents_code_as_of_the_fork() {
    let jit = Jit::begun()
        .code(20, 0, "before")
        .code(20, 0x1000, "not seen in the parent")
        .code(60, 0, "after")
        .code(290, 0x8000, "long after");
    let (scene, mut recording) = begun(jit);
    scene.expect(
        recording.fork(OTHER, PID, 50 * MS),
        &[
            (PID, 25, 1, "before+0x1 jit-5000007-0.elf"),
            (OTHER, 55, 2, "before+0x2 jit-5000007-0.elf"),
            (PID, 65, 3, "after+0x3 jit-5000007-0-1.elf"),
            (OTHER, 66, 4, "before+0x4 jit-5000007-0.elf"),
            (OTHER, 67, 0x1000, "not seen in the parent+0x0 jit-5000007-0.elf"),
            (PID, 300, 0x8000, "long after+0x0 jit-5000007-0.elf"),
            (OTHER, 301, 0x8000, "[unknown] perf-5000008.map"),
        ],
    );
}

#[test]
fn a_child_with_a_dump_of_its_own_shows_both() {
    let (scene, mut recording) = begun(Jit::begun().code(20, 0, "parent's").code(20, 0x100, "old"));
    recording.fork(OTHER, PID, 50 * MS);
    recording.map(OTHER, MARKER, &scene.name("jit-5000008.dump"), 52 * MS);
    let childs = Jit::new(OTHER, 52 * MS).code(60, 0, "child's");
    scene.write("jit-5000008.dump", childs.bytes());
    scene.expect(
        &mut recording,
        &[
            (PID, 25, 1, "parent's+0x1 jit-5000007-0.elf"),
            (OTHER, 55, 2, "parent's+0x2 jit-5000008-0.elf"),
            (OTHER, 65, 3, "child's+0x3 jit-5000008-0-1.elf"),
            (PID, 66, 4, "parent's+0x4 jit-5000007-0.elf"),
            (OTHER, 67, 0x101, "old+0x1 jit-5000008-0.elf"),
        ],
    );
}

#[test]
fn a_file_that_a_child_has_inherited_stays_between_its_codes() {
    let (scene, mut recording) = begun(Jit::begun().code(20, 0x8000, "parent's"));
    let file = CODE + 0x2000..CODE + 0x3000;
    recording.map(PID, file, "/lib/inherited.so", 22 * MS).fork(OTHER, PID, 50 * MS);
    recording.map(OTHER, MARKER, &scene.name("jit-5000008.dump"), 52 * MS);
    let childs = Jit::new(OTHER, 52 * MS).code(60, 0, "below").code(60, 0x4000, "above");
    scene.write("jit-5000008.dump", childs.bytes());
    scene.expect(
        &mut recording,
        &[
            (OTHER, 65, 1, "below+0x1 jit-5000008-0.elf"),
            (OTHER, 66, 0x2001, "[unknown] inherited.so"),
            (OTHER, 67, 0x4001, "above+0x1 jit-5000008-0.elf"),
        ],
    );
}

#[test]
fn a_forked_child_may_go_on_in_its_parents_dump() {
    // Both count on from where the parent was.
    let mut jit = Jit::begun().code(20, 0, "before").by(PID);
    jit = jit.code(60, 0x100, "parent's").by(OTHER).index(1);
    jit = jit.code(60, 0x100, "child's").by(PID);
    jit = jit.moved(80 * MS, 1, CODE + 0x100, CODE + 0x200, 0x40).by(OTHER);
    jit = jit.moved(80 * MS, 1, CODE + 0x100, CODE + 0x300, 0x40);
    let (scene, mut recording) = begun(jit);
    scene.expect(
        recording.fork(OTHER, PID, 50 * MS),
        &[
            (PID, 65, 1, "before+0x1 jit-5000007-0.elf"),
            (OTHER, 66, 2, "before+0x2 jit-5000008-0.elf"),
            (PID, 75, 0x101, "parent's+0x1 jit-5000007-0.elf"),
            (OTHER, 76, 0x102, "child's+0x2 jit-5000008-0.elf"),
            (PID, 85, 0x201, "parent's+0x1 jit-5000007-0.elf"),
            (OTHER, 86, 0x301, "child's+0x1 jit-5000008-0.elf"),
        ],
    );
}

#[test]
fn exec_and_a_new_process_with_the_same_pid_end_all_code() {
    let exec = |recording: &mut Recording| {
        recording.exec(PID, "next", 50 * MS);
    };
    let new_process = |recording: &mut Recording| {
        recording.exit(PID, 30 * MS).comm(OTHER, OTHER, "shell", 35 * MS).fork(PID, OTHER, 50 * MS);
    };
    for (what, end) in [("exec", &exec as &dyn Fn(&mut _)), ("a new process", &new_process)] {
        let (scene, mut recording) = begun(Jit::begun().code(20, 0, "code"));
        recording.sample(PID, CODE + 1, 25 * MS);
        end(&mut recording);
        recording.map(PID, ARENA, "[anon:heap]", 51 * MS).sample(PID, CODE + 2, 57 * MS);
        assert_eq!(scene.inject(&recording, &[]).counts(), (1, 1), "{what}");
        let shown = ["25 code+0x1 jit-5000007-0.elf", "57 [unknown] [anon:heap]"];
        assert_eq!(scene.shown(), shown, "{what}");
    }
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
    let first = Jit::begun().code(20, 0, "first").bytes();
    let second = Jit::new(PID, 52 * MS).code(60, 0, "second").bytes();
    scene.write("first/jit-5000007.dump", &first).write("second/jit-5000007.dump", &second);
    scene.inject(&recording, &[]).clean();
    assert_eq!(scene.names(), ["25 first", "65 second"]);
}

#[test]
fn threads_share_their_process_code() {
    let (scene, mut recording) = begun(Jit::begun().code(20, 0, "one").code(30, 0, "two"));
    let thread = PID + 100;
    recording
        .thread(PID, thread, 12 * MS)
        .comm(PID, thread, "compiler", 13 * MS)
        .sample_of(0, (PID, thread), CODE + 1, &[], 25 * MS)
        .sample_of(0, (PID, thread), CODE + 2, &[], 35 * MS);
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
    scene.write("jit-1.dump", Jit::new(1, 10 * MS).code(20, 0, "inside").bytes());
    let injected = scene.inject(&recording, &[]);
    assert_eq!(injected.clean().json()["sources"][0]["pid"], PID);
    let shown = scene.shown();
    assert_eq!(shown[0], "25 inside+0x1 jit-5000007-0.elf");
    assert!(shown[1].starts_with("26 [unknown] perf-"), "{shown:?}");
}

#[test]
fn two_processes_with_code_at_the_same_addresses() {
    let (mut one, mut other) = (Jit::begun(), Jit::new(OTHER, 10 * MS));
    let mut shown = Vec::new();
    for step in 0..6 {
        let time = 20 + 10 * step;
        one = one.code(time, 0, &format!("one {step}"));
        other = other.code(time + 5, 0, &format!("other {step}"));
        let layer = if step == 0 { String::new() } else { format!("-{step}") };
        let of_one = format!("one {step}+0x0 jit-5000007-0{layer}.elf");
        let of_other = format!("other {step}+0x1 jit-5000008-0{layer}.elf");
        shown.extend([(PID, time + 7, 0, of_one), (OTHER, time + 8, 1, of_other)]);
    }
    let (scene, mut recording) = begun(one);
    process(&scene, &mut recording, OTHER);
    scene.write("jit-5000008.dump", other.bytes());
    let expected: Vec<_> =
        shown.iter().map(|(pid, time, at, shown)| (*pid, *time, *at, &**shown)).collect();
    assert_eq!(scene.expect(&mut recording, &expected).counts(), (12, 0));
}
