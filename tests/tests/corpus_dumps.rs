//! Recorded runtimes that wrote a jitdump: every sample as stock `perf inject --jit` resolved it, or better.

use end_to_end::compare::{Comparison, Natives};
use end_to_end::corpus::Corpus;
use end_to_end::jitscribe::inject;
use end_to_end::perf::Perf;
use end_to_end::sample::Sample;

/// Injects a recording of the corpus and gives each sample of the result.
fn ours(corpus: &Corpus, recording: &str) -> Vec<Sample> {
    let input = corpus.file(&format!("{recording}.data"));
    let output = corpus.scratch().join(format!("{recording}.out.data"));
    inject(&input, &output, ["--aux-dir".as_ref(), corpus.dir().as_os_str()]);
    Perf::installed().samples(&output)
}

/// Compares with the oracle. `same` and `unknown` are what stock perf resolved in jitted code and what lies in
/// anonymous memory that no dump knows.
fn compare(producer: &str, recording: &str, same: usize, unknown: usize) {
    let corpus = Corpus::unpack(producer);
    let oracle = corpus.oracle(recording, 1);
    let ours = ours(&corpus, recording);
    let verdict = Comparison::of(&oracle, &ours).expect_nothing_lost(Natives::ByObject);
    assert_eq!(
        (verdict.same, verdict.gained.len(), verdict.unknown.len()),
        (same, 0, unknown),
        "the same, gained, unknown; gained {:?}",
        verdict.gained
    );
}

#[test]
fn node_18_with_builtins_inside_its_own_library() {
    compare("node18-b12", "g", 676, 0);
}

#[test]
fn javascriptcore_with_much_reused_addresses() {
    compare("jsc-b12", "g", 303, 0);
}

#[test]
fn javascriptcore_without_call_chains() {
    compare("jsc-b12", "n", 225, 0);
}

#[test]
fn lli_14_whose_loads_have_no_vma() {
    compare("lli14-b12", "g", 1801, 0);
}

#[test]
fn lli_14_without_call_chains() {
    compare("lli14-b12", "n", 1943, 0);
}

/// What stays unknown is code of PCRE's own JIT, which announces nothing.
#[test]
fn php_82_with_a_dump_that_lay_in_tmp() {
    compare("php82-jitdebug32", "g", 161, 4);
}

#[test]
fn php_82_without_call_chains() {
    compare("php82-jitdebug32", "n", 268, 1);
}

#[test]
fn wasmtime_which_loads_over_old_addresses() {
    compare("wasmtime-jitdump", "g", 459, 0);
}

#[test]
fn wasmtime_without_call_chains() {
    compare("wasmtime-jitdump", "n", 655, 0);
}
