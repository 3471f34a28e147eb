//! One counter: the summary of `inject`, the report as text and as a page, annotations, and exports say the same of a function.

use end_to_end::corpus::Corpus;
use end_to_end::counted::Counted;
use end_to_end::jitscribe::{inject, report};

/// Compares all views of recordings of one producer. Those called `n` have no call chains.
fn compare(producer: &str, recordings: &[&str]) {
    let corpus = Corpus::unpack(producer);
    for recording in recordings {
        let output = corpus.scratch().join(format!("{recording}.out.data"));
        let input = corpus.file(&format!("{recording}.data"));
        let folder = corpus.dir();
        let options = ["--json".as_ref(), "--aux-dir".as_ref(), folder.as_os_str()];
        let summary = report(&inject(&input, &output, options));
        let has_stacks = *recording != "n";
        Counted::read(&output, &format!("{producer} {recording}"))
            .expect_equal(&summary, has_stacks);
    }
}

#[test]
fn all_views_of_cpython_count_the_same() {
    compare("py313-perf_jit-dwarf", &["d"]);
}

#[test]
fn all_views_of_dotnet_count_the_same() {
    compare("dotnet10-u2404", &["g"]);
}

#[test]
fn all_views_of_erlang_count_the_same() {
    compare("erl25-map", &["g", "n"]);
}

#[test]
fn all_views_of_java_count_the_same() {
    compare("java17-perfmap", &["g", "n"]);
}

#[test]
fn all_views_of_javascriptcore_count_the_same() {
    compare("jsc-b12", &["g", "n"]);
}

#[test]
fn all_views_of_llvm_count_the_same() {
    compare("lli14-b12", &["g", "n"]);
}

#[test]
fn all_views_of_mono_count_the_same() {
    compare("mono68-b12", &["g", "n"]);
}

#[test]
fn all_views_of_node_count_the_same() {
    compare("node18-b12", &["g"]);
}

#[test]
fn all_views_of_php_count_the_same() {
    compare("php82-jitdebug32", &["g", "n"]);
}

#[test]
fn all_views_of_qemu_count_the_same() {
    compare("qemu10-aarch64-perfmap", &["g", "n"]);
}

#[test]
fn all_views_of_rakudo_count_the_same() {
    compare("rakudo2022", &["g", "n"]);
}

#[test]
fn all_views_of_wasmtime_count_the_same() {
    compare("wasmtime-jitdump", &["g", "n"]);
}
