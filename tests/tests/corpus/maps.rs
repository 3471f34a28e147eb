//! Recorded runtimes that wrote a perf map: every sample gets the last line that covers it.

use end_to_end::corpus::Corpus;
use end_to_end::map_oracle::{MapOracle, MapTally, expect_map_applied};

/// Compares one recording. `perf_wrong` is how often stock perf takes another line than the last one.
fn check(producer: &str, recording: &str, map: &str, [named, unknown, perf_wrong]: [usize; 3]) {
    let corpus = Corpus::unpack(producer);
    let map = MapOracle::read(&corpus.file(map));
    let (before, after) = (corpus.oracle(recording, 0), corpus.samples(recording));
    let tally = expect_map_applied(&before, &after, &map);
    assert_eq!(tally, MapTally { named, unknown, perf_wrong }, "{producer} {recording}");
}

#[test]
fn each_sample_is_named_by_the_last_line_that_covers_it() {
    for (producer, recording, map, tally) in [
        ("erl25-map", "g", "perf-6789.map", [231, 0, 0]),
        ("erl25-map", "n", "perf-7367.map", [327, 0, 0]),
        // There is 0x before both numbers. The map was written at exit, when part of the code was gone.
        ("java17-perfmap", "g", "perf-32039.map", [1029, 167, 0]),
        ("java17-perfmap", "n", "perf-32234.map", [1039, 178, 0]),
        // Names have spaces. Mono writes two lines for each of its delegate trampolines.
        ("mono68-b12", "g", "perf-908.map", [1011, 0, 13]),
        ("mono68-b12", "n", "perf-1010.map", [897, 0, 6]),
        // There are lines of size zero.
        ("qemu10-aarch64-perfmap", "g", "perf-9903.map", [302, 0, 0]),
        ("qemu10-aarch64-perfmap", "n", "perf-10031.map", [267, 0, 0]),
        // Names are those of a place alone.
        ("rakudo2022", "g", "perf-10707.map", [318, 0, 0]),
        ("rakudo2022", "n", "perf-10901.map", [517, 0, 0]),
    ] {
        check(producer, recording, map, tally);
    }
}
