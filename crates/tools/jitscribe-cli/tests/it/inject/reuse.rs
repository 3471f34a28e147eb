//! One address, many codes: each sample gets the one that ran then.

use crate::inject::recording::{Attr, CALLCHAIN, USUAL};
use crate::inject::scene::{CODE, Expected, Jit, MS, PID, Scene, begun, begun_with};

/// One process with one dump.
fn expect(jit: Jit, samples: &[Expected<'_>]) -> Scene {
    let (scene, mut recording) = begun(jit);
    scene.expect(&mut recording, samples);
    scene
}

#[test]
fn each_sample_gets_the_version_that_ran_then() {
    expect(
        Jit::begun().code(20, 0, "first").code(30, 0, "second").code(40, 0, "third"),
        &[
            (PID, 20, 1, "first+0x1 jit-5000007-0.elf"),
            (PID, 29, 2, "first+0x2 jit-5000007-0.elf"),
            (PID, 30, 3, "second+0x3 jit-5000007-0-1.elf"),
            (PID, 39, 4, "second+0x4 jit-5000007-0-1.elf"),
            (PID, 40, 5, "third+0x5 jit-5000007-0-2.elf"),
            (PID, 1000, 0x3f, "third+0x3f jit-5000007-0-2.elf"),
        ],
    );
}

#[test]
fn a_move_leaves_the_old_address_and_takes_its_lines_along() {
    let jit = Jit::begun()
        .lines(20 * MS, CODE, &[(CODE, 10), (CODE + 0x20, 11)])
        .code(20, 0, "mover")
        .code(25, 0x40, "stays")
        .moved(30 * MS, 0, CODE, CODE + 0x8000, 0x40)
        .code(40, 0, "heir");
    let scene = expect(
        jit,
        &[
            (PID, 25, 0x21, "mover+0x21 jit-5000007-0.elf"),
            (PID, 27, 0x41, "stays+0x1 jit-5000007-0.elf"),
            (PID, 35, 0x8021, "mover+0x21 jit-5000007-0.elf"),
            (PID, 45, 1, "heir+0x1 jit-5000007-0-1.elf"),
            (PID, 46, 0x8001, "mover+0x1 jit-5000007-0.elf"),
        ],
    );
    assert_eq!(
        scene.source_lines(),
        ["25 app.js:11", "27 ??", "35 app.js:11", "45 ??", "46 app.js:10"]
    );
}

#[test]
fn what_new_code_leaves_of_the_old_keeps_its_name_and_offset() {
    let jit = Jit::begun().load(20 * MS, CODE, 0x200, "old");
    expect(
        jit.code(30, 0, "at the head").code(40, 0x100, "in the middle"),
        &[
            (PID, 25, 0x10, "old+0x10 jit-5000007-0.elf"),
            (PID, 26, 0x110, "old+0x110 jit-5000007-0.elf"),
            (PID, 35, 0x10, "at the head+0x10 jit-5000007-0-1.elf"),
            (PID, 36, 0x80, "old+0x80 jit-5000007-0.elf"),
            (PID, 37, 0x110, "old+0x110 jit-5000007-0.elf"),
            (PID, 45, 0x110, "in the middle+0x10 jit-5000007-0-1.elf"),
            (PID, 46, 0x3f, "at the head+0x3f jit-5000007-0-1.elf"),
            (PID, 47, 0x40, "old+0x40 jit-5000007-0.elf"),
            (PID, 48, 0xff, "old+0xff jit-5000007-0.elf"),
            (PID, 49, 0x140, "old+0x140 jit-5000007-0.elf"),
            (PID, 50, 0x1ff, "old+0x1ff jit-5000007-0.elf"),
        ],
    );
}

/// The first image has the end of the larger code, behind the smaller one.
#[test]
fn profiles_tell_codes_that_begin_at_one_address_apart() {
    let jit = Jit::begun().code(20, 0, "small").load(30 * MS, CODE, 0x200, "large");
    let scene = expect(
        jit,
        &[
            (PID, 25, 0x10, "small+0x10 jit-5000007-0.elf"),
            (PID, 35, 0x110, "large+0x110 jit-5000007-0-1.elf"),
            (PID, 45, 0x10, "large+0x10 jit-5000007-0-1.elf"),
        ],
    );
    let folded = scene.ask("export --folded -i out.data -o -").ok().stdout;
    let mut lines: Vec<_> = folded.lines().filter_map(|line| line.rsplit(';').next()).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["large_[j] 2", "small_[j] 1"]);
}

#[test]
fn of_codes_with_equal_times_the_later_record_wins() {
    expect(
        Jit::begun().code(20, 0, "first").code(20, 0, "second").code(20, 0x40, "third"),
        &[
            (PID, 20, 0, "second+0x0 jit-5000007-0.elf"),
            (PID, 21, 0x41, "third+0x1 jit-5000007-0.elf"),
            (PID, 22, 3, "second+0x3 jit-5000007-0.elf"),
        ],
    );
}

#[test]
fn records_go_by_their_times_and_not_by_their_order() {
    expect(
        Jit::begun().code(40, 0, "third").code(20, 0, "first").code(30, 0, "second"),
        &[
            (PID, 25, 0, "first+0x0 jit-5000007-0.elf"),
            (PID, 35, 1, "second+0x1 jit-5000007-0-1.elf"),
            (PID, 45, 2, "third+0x2 jit-5000007-0-2.elf"),
        ],
    );
}

#[test]
fn code_that_ran_shortly_before_its_load_is_named() {
    expect(
        Jit::begun().code(520, 0, "told late"),
        &[
            (PID, 500, 1, "told late+0x1 jit-5000007-0.elf"),
            (PID, 530, 2, "told late+0x2 jit-5000007-0.elf"),
        ],
    );
}

#[test]
fn code_that_ran_before_its_load_where_other_code_has_left_is_named() {
    let jit = Jit::begun().code(20, 0, "old").moved(50 * MS, 0, CODE, CODE + 0x8000, 0x40);
    expect(
        jit.code(100, 0, "new"),
        &[
            (PID, 40, 1, "old+0x1 jit-5000007-0.elf"),
            (PID, 80, 2, "new+0x2 jit-5000007-0-1.elf"),
            (PID, 110, 3, "new+0x3 jit-5000007-0-1.elf"),
        ],
    );
}

#[test]
fn code_that_was_there_before_a_load_keeps_its_samples() {
    expect(
        Jit::begun().code(20, 0, "old").code(520, 0, "new"),
        &[(PID, 519, 1, "old+0x1 jit-5000007-0.elf"), (PID, 520, 2, "new+0x2 jit-5000007-0-1.elf")],
    );
}

#[test]
fn a_second_before_its_load_no_code_was_there() {
    expect(
        Jit::begun().code(20, 0x40, "other").code(2000, 0, "new"),
        &[
            (PID, 900, 1, "[unknown] perf-5000007.map"),
            (PID, 901, 0x41, "other+0x1 jit-5000007-0.elf"),
            (PID, 2001, 2, "new+0x2 jit-5000007-0.elf"),
        ],
    );
}

#[test]
fn of_three_codes_of_one_time_each_is_above_the_one_before() {
    let jit = Jit::begun()
        .load(20 * MS, CODE + 0x10, 24, "head")
        .load(20 * MS, CODE + 0x20, 32, "middle")
        .load(20 * MS, CODE + 0x30, 8, "tail");
    // The middle one is first seen after the first, and last after the third.
    expect(
        jit,
        &[
            (PID, 100, 0x10, "head+0x0 jit-5000007-0.elf"),
            (PID, 101, 0x18, "head+0x8 jit-5000007-0.elf"),
            (PID, 102, 0x20, "middle+0x0 jit-5000007-0-1.elf"),
            (PID, 104, 0x30, "tail+0x0 jit-5000007-0-2.elf"),
            (PID, 105, 0x38, "middle+0x18 jit-5000007-0-1.elf"),
        ],
    );
}

#[test]
fn samples_elsewhere_with_code_on_their_stacks_are_counted() {
    let (scene, mut recording) =
        begun_with(Attr::new(USUAL | CALLCHAIN), Jit::begun().code(20, 0, "leaf"));
    let elsewhere = 0x40_1000;
    recording
        .map(PID, elsewhere..elsewhere + 0x1000, "/usr/bin/true", 2 * MS)
        .chain(PID, CODE + 1, &[CODE + 0x11], 25 * MS)
        .chain(PID, elsewhere, &[CODE + 0x11, CODE + 0x21], 26 * MS)
        .chain(PID, elsewhere, &[elsewhere], 27 * MS);
    let report = scene.inject(&recording, &[]).json();
    let samples = &report["samples"];
    assert_eq!((&samples["samples"], &samples["named"]), (&3.into(), &1.into()));
    assert_eq!(samples["through"], 1);
    assert_eq!(report["top"][0]["has_code"], true);
}

#[test]
fn callers_mark_code_as_seen_running() {
    let jit = Jit::begun()
        .code(20, 0, "leaf")
        .code(20, 0x100, "caller, then")
        .code(20, 0x200, "outer, then")
        .code(30, 0x100, "caller, now")
        .code(30, 0x200, "outer, now");
    let (scene, mut recording) = begun_with(Attr::new(USUAL | CALLCHAIN), jit);
    for (time, offset) in [(25, 1), (35, 2)] {
        let callers = [CODE + 0x100 + offset, CODE + 0x210];
        recording.chain(PID, CODE + offset, &callers, time * MS);
    }
    scene.inject(&recording, &[]).clean();
    let name = |(symbol, _): &(String, String)| symbol.split('+').next().unwrap().to_owned();
    let samples = scene.script("out.data").into_iter();
    let names: Vec<Vec<String>> =
        samples.map(|sample| sample.frames.iter().map(name).collect()).collect();
    assert_eq!(
        names,
        [["leaf", "caller, then", "outer, then"], ["leaf", "caller, now", "outer, now"]]
    );
}

/// New code may have run shortly before its load, but not where old code still runs: before the first instruction of the old code is
/// nothing that called it.
#[test]
fn the_first_instruction_of_a_code_does_not_return_to_what_is_before_it() {
    let jit = Jit::begun().code(20, 0x40, "old").load(120 * MS, CODE, 0x80, "new");
    let (scene, mut recording) = begun_with(Attr::new(USUAL | CALLCHAIN), jit);
    for (time, offset) in [(30, 0x41), (60, 0x40), (80, 0x41), (130, 0x41)] {
        recording.chain(PID, CODE + offset, &[], time * MS);
    }
    scene.inject(&recording, &[]).clean();
    let samples = scene.script("out.data").into_iter();
    let symbols: Vec<String> = samples.map(|sample| sample.frames[0].0.clone()).collect();
    assert_eq!(symbols, ["old+0x1", "old+0x0", "old+0x1", "new+0x41"]);
}

#[test]
fn late_events_of_many_rounds_are_not_lost() {
    // A new version each millisecond and a round every third, with what comes at a round's end
    // written only in the next one, as perf record leaves the buffers of several CPUs.
    let (mut jit, mut expected) = (Jit::begun(), Vec::new());
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
    let (scene, mut recording) = begun(jit);
    recording.round();
    for round in 0..20u64 {
        let mut in_round: Vec<u64> = (3 * round..3 * round + 3).collect();
        in_round.rotate_left(1);
        for step in in_round {
            let address = CODE + 0x100 * (step % 2) + step % 8;
            recording.sample(PID, address, (20 + step) * MS + MS / 2);
        }
        recording.round();
    }
    scene.inject(&recording, &[]).clean();
    assert_eq!(scene.shown(), expected);
}
