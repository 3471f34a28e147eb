//! One address, many codes: each sample gets the one that ran then.

use crate::inject::recording::{Attr, CALLCHAIN, Recording, USUAL};
use crate::inject::scene::{CODE, Jit, MS, PID, Scene, process};

/// One process with one dump.
fn one(jit: Jit, samples: &[(u64, u64)]) -> (Scene, Vec<String>) {
    let scene = Scene::new();
    let mut recording = Recording::new();
    process(&scene, &mut recording, PID);
    for &(ip, time) in samples {
        recording.sample(PID, ip, time * MS);
    }
    scene.write("jit-5000007.dump", &jit.bytes());
    scene.inject(&recording, &[]).clean();
    let shown = scene.shown();
    (scene, shown)
}

fn jit() -> Jit {
    Jit::new(PID, 10 * MS)
}

#[test]
fn each_sample_gets_the_version_that_ran_then() {
    let jit = jit().load(20 * MS, CODE, 0x40, "first").load(30 * MS, CODE, 0x40, "second").load(
        40 * MS,
        CODE,
        0x40,
        "third",
    );
    let samples = [
        (CODE + 1, 20),
        (CODE + 2, 29),
        (CODE + 3, 30),
        (CODE + 4, 39),
        (CODE + 5, 40),
        (CODE + 0x3f, 1000),
    ];
    let (_scene, shown) = one(jit, &samples);
    assert_eq!(
        shown,
        [
            "20 first+0x1 jit-5000007-0.elf",
            "29 first+0x2 jit-5000007-0.elf",
            "30 second+0x3 jit-5000007-0-1.elf",
            "39 second+0x4 jit-5000007-0-1.elf",
            "40 third+0x5 jit-5000007-0-2.elf",
            "1000 third+0x3f jit-5000007-0-2.elf",
        ]
    );
}

#[test]
fn a_move_leaves_the_old_address_and_takes_its_lines_along() {
    let away = CODE + 0x8000;
    let jit = jit()
        .lines(20 * MS, CODE, &[(CODE, 10), (CODE + 0x20, 11)])
        .load(20 * MS, CODE, 0x40, "mover")
        .load(25 * MS, CODE + 0x40, 0x40, "stays")
        .moved(30 * MS, 0, CODE, away, 0x40)
        .load(40 * MS, CODE, 0x40, "heir");
    let samples =
        [(CODE + 0x21, 25), (CODE + 0x41, 27), (away + 0x21, 35), (CODE + 1, 45), (away + 1, 46)];
    let (scene, shown) = one(jit, &samples);
    assert_eq!(
        shown,
        [
            "25 mover+0x21 jit-5000007-0.elf",
            "27 stays+0x1 jit-5000007-0.elf",
            "35 mover+0x21 jit-5000007-0.elf",
            "45 heir+0x1 jit-5000007-0-1.elf",
            "46 mover+0x1 jit-5000007-0.elf",
        ]
    );
    assert_eq!(
        scene.source_lines(),
        ["25 app.js:11", "27 ??", "35 app.js:11", "45 ??", "46 app.js:10"]
    );
}

#[test]
fn what_new_code_leaves_of_the_old_keeps_its_name_and_offset() {
    let jit = jit()
        .load(20 * MS, CODE, 0x200, "old")
        .load(30 * MS, CODE, 0x40, "at the head")
        .load(40 * MS, CODE + 0x100, 0x40, "in the middle");
    let samples = [
        (CODE + 0x10, 25),
        (CODE + 0x110, 26),
        (CODE + 0x10, 35),
        (CODE + 0x80, 36),
        (CODE + 0x110, 37),
        (CODE + 0x110, 45),
        (CODE + 0x3f, 46),
        (CODE + 0x40, 47),
        (CODE + 0xff, 48),
        (CODE + 0x140, 49),
        (CODE + 0x1ff, 50),
    ];
    let (_scene, shown) = one(jit, &samples);
    assert_eq!(
        shown,
        [
            "25 old+0x10 jit-5000007-0.elf",
            "26 old+0x110 jit-5000007-0.elf",
            "35 at the head+0x10 jit-5000007-0-1.elf",
            "36 old+0x80 jit-5000007-0.elf",
            "37 old+0x110 jit-5000007-0.elf",
            "45 in the middle+0x10 jit-5000007-0-1.elf",
            "46 at the head+0x3f jit-5000007-0-1.elf",
            "47 old+0x40 jit-5000007-0.elf",
            "48 old+0xff jit-5000007-0.elf",
            "49 old+0x140 jit-5000007-0.elf",
            "50 old+0x1ff jit-5000007-0.elf",
        ]
    );
}

#[test]
fn of_codes_with_equal_times_the_later_record_wins() {
    let jit = jit().load(20 * MS, CODE, 0x40, "first").load(20 * MS, CODE, 0x40, "second").load(
        20 * MS,
        CODE + 0x40,
        0x40,
        "third",
    );
    let (_scene, shown) = one(jit, &[(CODE, 20), (CODE + 0x41, 21), (CODE + 3, 22)]);
    assert_eq!(
        shown,
        [
            "20 second+0x0 jit-5000007-0.elf",
            "21 third+0x1 jit-5000007-0.elf",
            "22 second+0x3 jit-5000007-0.elf"
        ]
    );
}

#[test]
fn records_go_by_their_times_and_not_by_their_order() {
    let jit = jit().load(40 * MS, CODE, 0x40, "third").load(20 * MS, CODE, 0x40, "first").load(
        30 * MS,
        CODE,
        0x40,
        "second",
    );
    let (_scene, shown) = one(jit, &[(CODE, 25), (CODE + 1, 35), (CODE + 2, 45)]);
    assert_eq!(
        shown,
        [
            "25 first+0x0 jit-5000007-0.elf",
            "35 second+0x1 jit-5000007-0-1.elf",
            "45 third+0x2 jit-5000007-0-2.elf"
        ]
    );
}

#[test]
fn code_that_ran_shortly_before_its_load_is_named() {
    let jit = jit().load(520 * MS, CODE, 0x40, "told late");
    let (_scene, shown) = one(jit, &[(CODE + 1, 500), (CODE + 2, 530)]);
    assert_eq!(
        shown,
        ["500 told late+0x1 jit-5000007-0.elf", "530 told late+0x2 jit-5000007-0.elf"]
    );
}

#[test]
fn code_that_ran_before_its_load_where_other_code_has_left_is_named() {
    let jit = jit()
        .load(20 * MS, CODE, 0x40, "old")
        .moved(50 * MS, 0, CODE, CODE + 0x8000, 0x40)
        .load(100 * MS, CODE, 0x40, "new");
    let (_scene, shown) = one(jit, &[(CODE + 1, 40), (CODE + 2, 80), (CODE + 3, 110)]);
    assert_eq!(
        shown,
        [
            "40 old+0x1 jit-5000007-0.elf",
            "80 new+0x2 jit-5000007-0-1.elf",
            "110 new+0x3 jit-5000007-0-1.elf"
        ]
    );
}

#[test]
fn code_that_was_there_before_a_load_keeps_its_samples() {
    let jit = jit().load(20 * MS, CODE, 0x40, "old").load(520 * MS, CODE, 0x40, "new");
    let (_scene, shown) = one(jit, &[(CODE + 1, 519), (CODE + 2, 520)]);
    assert_eq!(shown, ["519 old+0x1 jit-5000007-0.elf", "520 new+0x2 jit-5000007-0-1.elf"]);
}

#[test]
fn a_second_before_its_load_no_code_was_there() {
    let jit = jit().load(20 * MS, CODE + 0x40, 0x40, "other").load(2000 * MS, CODE, 0x40, "new");
    let samples = [(CODE + 1, 900), (CODE + 0x41, 901), (CODE + 2, 2001)];
    let (_scene, shown) = one(jit, &samples);
    assert_eq!(
        shown,
        [
            "900 [unknown] perf-5000007.map",
            "901 other+0x1 jit-5000007-0.elf",
            "2001 new+0x2 jit-5000007-0.elf"
        ]
    );
}

#[test]
fn samples_elsewhere_with_code_on_their_stacks_are_counted() {
    let scene = Scene::new();
    let mut recording = Recording::of(&[Attr::new(USUAL | CALLCHAIN)]);
    process(&scene, &mut recording, PID);
    let elsewhere = 0x40_1000;
    recording
        .map(PID, elsewhere..elsewhere + 0x1000, "/usr/bin/true", 2 * MS)
        .chain(PID, CODE + 1, &[CODE + 0x11], 25 * MS)
        .chain(PID, elsewhere, &[CODE + 0x11, CODE + 0x21], 26 * MS)
        .chain(PID, elsewhere, &[elsewhere], 27 * MS);
    scene.write("jit-5000007.dump", &jit().load(20 * MS, CODE, 0x40, "leaf").bytes());
    let report = scene.inject(&recording, &[]).json();
    let samples = &report["samples"];
    assert_eq!((&samples["samples"], &samples["named"]), (&3.into(), &1.into()));
    assert_eq!(samples["through"], 1);
    assert_eq!(report["top"][0]["has_code"], true);
}

#[test]
fn callers_mark_code_as_seen_running() {
    let scene = Scene::new();
    let mut recording = Recording::of(&[Attr::new(USUAL | CALLCHAIN)]);
    process(&scene, &mut recording, PID);
    recording.chain(PID, CODE + 1, &[CODE + 0x101, CODE + 0x210], 25 * MS).chain(
        PID,
        CODE + 2,
        &[CODE + 0x102, CODE + 0x210],
        35 * MS,
    );
    let jit = jit()
        .load(20 * MS, CODE, 0x40, "leaf")
        .load(20 * MS, CODE + 0x100, 0x40, "caller, then")
        .load(20 * MS, CODE + 0x200, 0x40, "outer, then")
        .load(30 * MS, CODE + 0x100, 0x40, "caller, now")
        .load(30 * MS, CODE + 0x200, 0x40, "outer, now");
    scene.write("jit-5000007.dump", &jit.bytes());
    scene.inject(&recording, &[]).clean();
    let frames: Vec<Vec<String>> = scene
        .script("out.data")
        .into_iter()
        .map(|sample| sample.frames.into_iter().map(|(symbol, _)| symbol).collect())
        .collect();
    let name = |symbol: &String| symbol.split('+').next().unwrap().to_owned();
    let names: Vec<Vec<String>> =
        frames.iter().map(|frames| frames.iter().map(name).collect()).collect();
    assert_eq!(
        names,
        [["leaf", "caller, then", "outer, then"], ["leaf", "caller, now", "outer, now"]]
    );
}

#[test]
fn late_events_of_many_rounds_are_not_lost() {
    // A new version each millisecond and a round every third, with what comes at a round's end
    // written only in the next one, as perf record leaves the buffers of several CPUs.
    let scene = Scene::new();
    let mut recording = Recording::new();
    process(&scene, &mut recording, PID);
    recording.round();
    let (mut jit, mut expected) = (jit(), Vec::new());
    for step in 0..60u64 {
        let time = (20 + step) * MS;
        jit = jit.load(time, CODE + 0x100 * (step % 2), 0x80, &format!("v{step}"));
        // Each version is in a layer of its own, as long as there are some.
        let layer = match step / 2 {
            0 => String::new(),
            layer => format!("-{}", layer.min(15)),
        };
        let (time, offset) = (20 + step, step % 8);
        expected.push(format!("{time}.5 v{step}+0x{offset:x} jit-5000007-0{layer}.elf"));
    }
    for round in 0..20u64 {
        let mut in_round: Vec<u64> = (3 * round..3 * round + 3).collect();
        in_round.rotate_left(1);
        for step in in_round {
            let address = CODE + 0x100 * (step % 2) + step % 8;
            recording.sample(PID, address, (20 + step) * MS + MS / 2);
        }
        recording.round();
    }
    scene.write("jit-5000007.dump", &jit.bytes());
    scene.inject(&recording, &[]).clean();
    assert_eq!(scene.shown(), expected);
}

#[test]
fn of_three_codes_of_one_time_each_is_above_the_one_before() {
    let jit = jit()
        .load(20 * MS, CODE + 0x10, 24, "head")
        .load(20 * MS, CODE + 0x20, 32, "middle")
        .load(20 * MS, CODE + 0x30, 8, "tail");
    // The middle one is first seen after the first, and last after the third.
    let samples = [(0x10, 100), (0x18, 101), (0x20, 102), (0x30, 104), (0x38, 105)];
    let (_scene, shown) = one(jit, &samples.map(|(offset, time)| (CODE + offset, time)));
    assert_eq!(
        shown,
        [
            "100 head+0x0 jit-5000007-0.elf",
            "101 head+0x8 jit-5000007-0.elf",
            "102 middle+0x0 jit-5000007-0-1.elf",
            "104 tail+0x0 jit-5000007-0-2.elf",
            "105 middle+0x18 jit-5000007-0-1.elf",
        ]
    );
}
