//! Recorded runtimes that wrote a jitdump: every sample as stock `perf inject --jit` resolved it, or better.

use std::fs;

use end_to_end::compare::{Comparison, Natives};
use end_to_end::corpus::Corpus;
use end_to_end::jitscribe::jitscribe;
use end_to_end::line_oracle::LineOracle;
use end_to_end::perf::Perf;
use end_to_end::tool::run;
use test_privilege::needs;

/// Compares with the oracle. `same` and `unknown` are what stock perf resolved in jitted code and what lies in
/// anonymous memory that no dump knows. The recording `n` has no call chains.
fn compare(producer: &str, recording: &str, same: usize, unknown: usize) {
    let corpus = Corpus::unpack(producer);
    let oracle = corpus.oracle(recording, 1);
    let ours = corpus.samples(recording);
    let verdict = Comparison::of(&oracle, &ours).expect_nothing_lost(Natives::ByObject);
    assert_eq!(
        (verdict.same, verdict.gained.len(), verdict.unknown.len()),
        (same, 0, unknown),
        "{producer} {recording}: the same, gained, unknown; gained {:?}",
        verdict.gained
    );
}

#[test]
fn each_sample_is_named_as_by_stock_perf() {
    for (producer, recording, same, unknown) in [
        // It has builtins inside its own library.
        ("node18-b12", "g", 676, 0),
        // It reuses addresses much.
        ("jsc-b12", "g", 303, 0),
        ("jsc-b12", "n", 225, 0),
        // Its blocks of stubs have no bytes.
        ("dotnet10-u2404", "g", 121, 0),
        // Its loads have no vma.
        ("lli14-b12", "g", 1801, 0),
        ("lli14-b12", "n", 1943, 0),
        // Its dump lay in `/tmp`. What stays unknown is code of PCRE's own JIT, which announces nothing.
        ("php82-jitdebug32", "g", 161, 4),
        ("php82-jitdebug32", "n", 268, 1),
        // It loads code over old addresses.
        ("wasmtime-jitdump", "g", 459, 0),
        ("wasmtime-jitdump", "n", 655, 0),
    ] {
        compare(producer, recording, same, unknown);
    }
}

/// Stock perf is 64 bytes off, as V8's debug addresses are. (Read by perf 6.12, since 6.1 ends when a library is
/// missing whose lines it wants.)
#[test]
fn node_18_has_the_source_lines_of_its_dump() {
    needs!(NewerPerf);
    let corpus = Corpus::unpack("node18-b12");
    let output = corpus.inject("g");
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

/// No warning is given for the records without bytes.
#[test]
fn blocks_of_stubs_of_dotnet_have_no_bytes() {
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

    let ours = corpus.samples("g");
    let verdict = Comparison::of(&oracle, &ours).expect_nothing_lost(Natives::ByObject);
    assert_eq!((verdict.same, verdict.unknown.len()), (303, 0));
}
