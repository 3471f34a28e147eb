//! Recorded runtimes that wrote a perf map: every sample gets the last line that covers it.

use end_to_end::corpus::Corpus;
use end_to_end::jitscribe::inject;
use end_to_end::map_oracle::{MapOracle, MapTally, expect_map_applied};
use end_to_end::perf::Perf;

/// Compares one recording. `perf_wrong` is how often stock perf takes another line than the last one.
fn check(producer: &str, recording: &str, map: &str, [named, unknown, perf_wrong]: [usize; 3]) {
    let corpus = Corpus::unpack(producer);
    let output = corpus.scratch().join("out.data");
    let input = corpus.file(&format!("{recording}.data"));
    inject(&input, &output, ["--aux-dir".as_ref(), corpus.dir().as_os_str()]);
    let tally = expect_map_applied(
        &corpus.oracle(recording, 0),
        &Perf::installed().samples(&output),
        &MapOracle::read(&corpus.file(map)),
    );
    assert_eq!(tally, MapTally { named, unknown, perf_wrong });
}

#[test]
fn erlang_25() {
    check("erl25-map", "g", "perf-6789.map", [231, 0, 0]);
    check("erl25-map", "n", "perf-7367.map", [327, 0, 0]);
}

/// The map was written at exit, when part of the code was gone.
#[test]
fn java_17_with_0x_before_both_numbers() {
    check("java17-perfmap", "g", "perf-32039.map", [1029, 167, 0]);
    check("java17-perfmap", "n", "perf-32234.map", [1039, 178, 0]);
}

/// Mono writes two lines for each of its delegate trampolines.
#[test]
fn mono_68_with_spaces_in_its_names() {
    check("mono68-b12", "g", "perf-908.map", [1011, 0, 13]);
    check("mono68-b12", "n", "perf-1010.map", [897, 0, 6]);
}

#[test]
fn qemu_10_with_lines_of_size_zero() {
    check("qemu10-aarch64-perfmap", "g", "perf-9903.map", [302, 0, 0]);
    check("qemu10-aarch64-perfmap", "n", "perf-10031.map", [267, 0, 0]);
}

#[test]
fn rakudo_2022_with_names_of_a_place_alone() {
    check("rakudo2022", "g", "perf-10707.map", [318, 0, 0]);
    check("rakudo2022", "n", "perf-10901.map", [517, 0, 0]);
}
