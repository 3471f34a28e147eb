//! Dumps whose times are not the recording's.

use crate::inject::recording::{Attr, Recording, TIME, USUAL};
use crate::inject::scene::{ARENA, CODE, DUMP, Injected, Jit, MARKER, MS, PID, Scene};

/// `old` at `CODE` from tick or time `old`, `new` from `new`.
fn versions(jit: Jit, old: u64, new: u64) -> Vec<u8> {
    jit.load(old, CODE, 0x40, "old").load(new, CODE, 0x40, "new").bytes()
}

/// A process whose marker perf saw at `marker` ms, and samples of which perf then shows these: milliseconds and names.
fn expect(mut recording: Recording, dump: &[u8], marker: u64, samples: &[(u64, &str)]) -> Injected {
    let scene = Scene::new();
    scene.write(DUMP, dump);
    recording.comm(PID, PID, "app", MS).map(PID, ARENA, "//anon", 2 * MS);
    recording.map(PID, MARKER, &scene.name(DUMP), marker * MS);
    for (time, _) in samples {
        recording.sample(PID, CODE, time * MS);
    }
    let injected = scene.inject(&recording, &[]);
    injected.json();
    let expected: Vec<_> = samples.iter().map(|(time, name)| format!("{time} {name}")).collect();
    assert_eq!(scene.names(), expected);
    injected
}

fn scheduler_clock() -> Recording {
    Recording::of(&[Attr::new(USUAL).scheduler_clock()])
}

/// With the processor's counter: half a nanosecond a tick, and tick 0 was at 1 ms.
fn with_counter(mut recording: Recording) -> Recording {
    recording.time_conv(1, 1, MS);
    recording
}

fn offset(injected: &Injected) -> i64 {
    injected.json()["sources"][0]["clock_offset_ns"].as_i64().unwrap()
}

#[test]
fn the_marker_tells_how_the_clocks_differ() {
    // The recording's clock runs 5 s ahead, or 5 ms behind.
    let dump = versions(Jit::begun(), 20 * MS, 30 * MS);
    let samples = [(5025, "old"), (5029, "old"), (5030, "new")];
    let ahead = expect(scheduler_clock(), &dump, 5010, &samples);
    assert_eq!(offset(&ahead), 5_000_000_000);
    let [warning] = &ahead.warnings()[..] else { panic!("{:?}", ahead.warnings()) };
    let end = "jit-5000007.dump: the recording was not made with -k mono; the dump's timestamps are \
               shifted by 5000.000 ms to match it";
    assert!(warning.ends_with(end), "{warning}");
    let samples = [(20, "old"), (24, "old"), (25, "new")];
    assert_eq!(offset(&expect(scheduler_clock(), &dump, 5, &samples)), -5_000_000);
}

#[test]
fn with_k_mono_times_stay_as_they_are() {
    let dump = versions(Jit::begun(), 20 * MS, 30 * MS);
    let samples = [(20, "old"), (29, "old"), (30, "new")];
    assert_eq!(offset(expect(Recording::new(), &dump, 15, &samples).clean()), 0);
}

#[test]
fn a_wall_clock_header_does_not_mislead() {
    const NOW: u64 = 1_760_000_000_000_000_000;
    let dump = versions(Jit::new(PID, NOW), 20 * MS, 1000 * MS);
    let samples = [(20, "old"), (999, "old"), (1000, "new")];
    assert_eq!(offset(expect(Recording::new(), &dump, 15, &samples).clean()), 0);
    // Without -k mono all that is known is that code comes after the marker.
    let samples = [(5025, "old"), (5900, "old"), (6000, "new")];
    assert_eq!(offset(&expect(scheduler_clock(), &dump, 5015, &samples)), 4_995_000_000);
    let samples = [(25, "old"), (990, "old"), (1005, "new")];
    let unknown = expect(scheduler_clock(), &dump, 15, &samples);
    assert_eq!(offset(&unknown), 0);
    unknown.says("the offset between its clock and the dump's is unknown");
}

#[test]
fn the_processors_counter_becomes_perfs_time() {
    let dump = versions(Jit::by_counter(PID, 18 * MS), 38 * MS, 58 * MS);
    let samples = [(20, "old"), (29, "old"), (30, "new")];
    assert_eq!(offset(&expect(with_counter(scheduler_clock()), &dump, 11, &samples)), 0);
    // perf's own time is another clock than -k mono's: the marker tells by how much.
    let samples = [(2020, "old"), (2029, "old"), (2030, "new")];
    let mono = expect(with_counter(Recording::new()), &dump, 2010, &samples);
    assert_eq!(offset(&mono), 2_000_000_000);
}

#[test]
fn a_counter_that_nothing_converts_is_said_and_the_code_applied() {
    let dump = versions(Jit::by_counter(PID, 1 << 50), (1 << 50) + 5, (1 << 50) + 9);
    let injected = expect(scheduler_clock(), &dump, 10, &[(20, "new"), (1000, "new")]);
    let [warning] = &injected.warnings()[..] else { panic!("{:?}", injected.warnings()) };
    assert!(warning.contains("the recording does not contain the conversion"), "{warning}");
}

/// `perf record --per-thread`, for example.
#[test]
fn without_times_code_has_the_name_of_the_last_one_at_its_address() {
    let recording = || {
        let mut recording = Recording::of(&[Attr::new(USUAL & !TIME)]);
        recording.comm(PID, PID, "app", 0).map(PID, ARENA, "//anon", 0);
        recording.sample(PID, CODE, 0).sample(PID, CODE + 0x100, 0);
        recording
    };
    let scene = Scene::new();
    scene.write("perf-5000007.map", "7f0000000000 40 first\n7f0000000100 40 second\n");
    let injected = scene.inject(&recording(), &[]);
    injected.clean();
    assert_eq!(injected.counts(), (2, 0));
    assert_eq!(scene.names_alone(), ["first", "second"]);

    let scene = Scene::new();
    scene.write(DUMP, versions(Jit::begun(), 20 * MS, 30 * MS));
    let injected = scene.inject(&recording(), &[]);
    let [warning] = &injected.warnings()[..] else { panic!("{:?}", injected.warnings()) };
    assert!(warning.contains("the recording has no times, which perf record -T adds"), "{warning}");
    assert_eq!(scene.names_alone()[0], "new");
}
