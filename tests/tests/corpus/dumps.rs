//! Recorded runtimes that wrote a jitdump: every sample as stock `perf inject --jit` resolved it, or better.

use std::fs;

use end_to_end::compare::{Comparison, Natives};
use end_to_end::corpus::Corpus;
use end_to_end::jitscribe::{inject, jitscribe};
use end_to_end::line_oracle::LineOracle;
use end_to_end::perf::Perf;
use end_to_end::sample::Sample;
use end_to_end::tool::run;
use test_privilege::{Privilege, have};

/// Injects a recording of the corpus and gives each sample of the result.
fn ours(corpus: &Corpus, recording: &str) -> Vec<Sample> {
    let input = corpus.file(&format!("{recording}.data"));
    let output = corpus.scratch().join(format!("{recording}.out.data"));
    inject(&input, &output, ["--aux-dir".as_ref(), corpus.dir().as_os_str()]);
    Perf::installed().samples(&output)
}

/// Compares with the oracle. `same` and `unknown` are what stock perf resolved in jitted code and what lies in
/// anonymous memory that no dump knows. The recording `n` has no call chains.
fn compare(producer: &str, recording: &str, same: usize, unknown: usize) {
    let corpus = Corpus::unpack(producer);
    let oracle = corpus.oracle(recording, 1);
    let ours = ours(&corpus, recording);
    let verdict = Comparison::of(&oracle, &ours).expect_nothing_lost(Natives::ByObject);
    assert_eq!(
        (verdict.same, verdict.gained.len(), verdict.unknown.len()),
        (same, 0, unknown),
        "{producer} {recording}: the same, gained, unknown; gained {:?}",
        verdict.gained
    );
}

#[test]
fn node_18_with_builtins_inside_its_own_library() {
    compare("node18-b12", "g", 676, 0);
}

/// Stock perf is 64 bytes off, as V8's debug addresses are. (Read by perf 6.12, since 6.1 ends when a library is
/// missing whose lines it wants.)
#[test]
fn node_18_has_the_source_lines_of_its_dump() {
    if !have(&[Privilege::NewerPerf]) {
        return;
    }
    let corpus = Corpus::unpack("node18-b12");
    let output = corpus.scratch().join("out.data");
    inject(&corpus.file("g.data"), &output, ["--aux-dir".as_ref(), corpus.dir().as_os_str()]);
    let oracle = LineOracle::read(&corpus.file("jit-27483.dump"));
    let mut checked = 0;
    for sample in Perf::newer().samples_with_lines(&output) {
        let Some(Some((file, line))) = oracle.at(sample.ip) else { continue };
        // Where V8 wrote freed memory for a name, the plain reading of the oracle is lost.
        if sample.dso.contains("/jit-27483-") && file.ends_with(".js") {
            let expected = format!("{}:{line}", file.rsplit('/').next().unwrap_or(file));
            assert_eq!(sample.srcline.as_deref(), Some(expected.as_str()), "{sample}");
            checked += 1;
        }
    }
    assert_eq!(checked, 291);
}

#[test]
fn javascriptcore_with_much_reused_addresses() {
    compare("jsc-b12", "g", 303, 0);
    compare("jsc-b12", "n", 225, 0);
}

/// And no warning is given for the records without bytes.
#[test]
fn dotnet_10_whose_blocks_of_stubs_have_no_bytes() {
    compare("dotnet10-u2404", "g", 121, 0);

    let corpus = Corpus::unpack("dotnet10-u2404");
    let shown = run(jitscribe().arg("dump").arg(corpus.file("jit-5764.dump")));
    assert_eq!(shown.stdout.matches("stub ReportStubBlock<").count(), 11, "{}", shown.stdout);
    let counted = "485 loads (0 with lines, 0 with unwind tables, 11 without bytes), 0 moves";
    assert!(
        shown.stderr.lines().count() == 1 && shown.stderr.contains(counted),
        "{}",
        shown.stderr
    );
}

/// The first versions of .NET 10 wrote such a record only in part, as the memory of the block is not all there.
#[test]
fn a_dump_is_read_on_behind_a_block_that_is_longer_than_its_bytes() {
    let corpus = Corpus::unpack("dotnet10-u2404");
    let dump = fs::read(corpus.file("jit-5764.dump")).expect("the dump");
    let records: Vec<_> = jitdump::Dump::parse(&dump)
        .expect("a dump")
        .records()
        .map(|record| record.expect("a record"))
        .collect();
    let before = &records[9];
    let behind = usize::try_from(before.offset).expect("an offset") + before.total_size as usize;
    let name = b"stub ReportStubBlock<FixupPrecodeStub>\0";
    for present in [0, 4096] {
        let size = 0x1_0000_u32;
        let mut block = Vec::new();
        block.extend(0_u32.to_le_bytes());
        block.extend((56 + name.len() as u32 + size).to_le_bytes());
        block.extend(before.timestamp.to_le_bytes());
        block.extend([5764_u32, 5764].map(u32::to_le_bytes).as_flattened());
        let fields = [0x7f00_0000_0000, 0x7f00_0000_0000, size.into(), 7777_u64];
        block.extend(fields.map(u64::to_le_bytes).as_flattened());
        block.extend(name);
        block.extend(vec![0xcc; present]);
        let torn = corpus.scratch().join("torn.dump");
        fs::write(&torn, [&dump[..behind], &block, &dump[behind..]].concat()).expect("written");
        let shown = run(jitscribe().arg("dump").arg(&torn));
        assert!(shown.stderr.contains("485 loads ("), "{present}: {}", shown.stderr);
        assert!(shown.stderr.contains("no record here"), "{present}: {}", shown.stderr);
    }
}

#[test]
fn lli_14_whose_loads_have_no_vma() {
    compare("lli14-b12", "g", 1801, 0);
    compare("lli14-b12", "n", 1943, 0);
}

/// What stays unknown is code of PCRE's own JIT, which announces nothing.
#[test]
fn php_82_with_a_dump_that_lay_in_tmp() {
    compare("php82-jitdebug32", "g", 161, 4);
    compare("php82-jitdebug32", "n", 268, 1);
}

#[test]
fn wasmtime_which_loads_over_old_addresses() {
    compare("wasmtime-jitdump", "g", 459, 0);
    compare("wasmtime-jitdump", "n", 655, 0);
}

/// Later versions and bun name their dump `jit-TID-PID.dump`, in which stock perf finds nothing: 22 % of such a
/// recording stays unresolved. The names in this recording are changed to that, at equal length.
#[test]
fn javascriptcore_whose_dump_is_named_by_thread_and_process() {
    let corpus = Corpus::unpack("jsc-b12");
    let oracle = corpus.oracle("g", 1);
    let (old, new) = (b"/jsc-b12/jit-31293.dump", b"/x/jit-31293-31293.dump");
    let mut data = std::fs::read(corpus.file("g.data")).expect("the recording");
    let places: Vec<usize> =
        (0..data.len() - old.len()).filter(|&at| data[at..].starts_with(old)).collect();
    assert!(!places.is_empty(), "the recording names its dump");
    for at in places {
        data[at..at + new.len()].copy_from_slice(new);
    }
    std::fs::write(corpus.file("g.data"), data).expect("the changed recording");
    std::fs::rename(corpus.file("jit-31293.dump"), corpus.dir().join("jit-31293-31293.dump"))
        .expect("the dump under its other name");

    let ours = ours(&corpus, "g");
    let verdict = Comparison::of(&oracle, &ours).expect_nothing_lost(Natives::ByObject);
    assert_eq!((verdict.same, verdict.unknown.len()), (303, 0));
}
