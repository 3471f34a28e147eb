//! What this project writes beyond the format is passed over by the tools that do not know it.

use std::fs;
use std::path::Path;

use end_to_end::demo::record_demo;
use end_to_end::live::{Recorder, Recording};
use end_to_end::perf::Perf;
use end_to_end::recordings::DEMO;
use end_to_end::sample::Sample;
use end_to_end::tool::run;
use jitdump::extension::{FramePointer, Kind, log, tag};
use jitdump::{
    Body, CodeEvent, CodeLoad, Dump, ExtendedCode, Inlined, LineEntry, UnwindingInfo, Writer,
    WriterConfig, check::check,
};
use linux_perf_data::jitdump::{JitDumpReader, JitDumpRecord};

/// A dump that says of every code all that can be said, with fillers that hold whole records, with codes whose
/// bytes are left out, and the heads of a log and of a chunk.
fn with_tails(dump: &Dump<'_>) -> Vec<u8> {
    let config = WriterConfig::from(dump.header());
    let mut writer = Writer::new(Vec::new(), &config).expect("a header");
    writer.tail(config.timestamp, 0, [(tag::LOG, 0, &[0; log::SIZE][..])]).expect("the log's head");
    writer.tail(config.timestamp, 0, [(tag::CHUNK, 0, &[0; 16][..])]).expect("a chunk's head");
    let mut stale = Vec::new();
    for event in dump.codes() {
        let CodeEvent::Load(load) = event.expect("a sound dump") else { continue };
        let of_room = [&[0; 16], &stale[..]].concat();
        writer.unknown(config.timestamp, 2, &of_room).expect("a filler");
        let before = writer.sink().len();
        extended(&mut writer, &load);
        stale.clear();
        stale.extend_from_slice(&writer.sink()[before..]);
        // Where no code is.
        let without_bytes = ExtendedCode {
            timestamp: load.timestamp,
            pid: load.pid,
            tid: load.tid,
            address: load.address ^ (1 << 40),
            size: load.size,
            index: load.index + (1 << 32),
            name: b"lean",
            died: Some(load.timestamp + 1),
            lines: &[LineEntry {
                address: load.address ^ (1 << 40),
                file: b"/x",
                line: 1,
                column: 1,
            }],
            ..ExtendedCode::default()
        };
        writer.extended(&without_bytes).expect("a code without bytes");
    }
    writer.into_sink()
}

fn extended(writer: &mut Writer<Vec<u8>>, load: &CodeLoad<'_>) {
    let lines: Vec<_> = load.lines().collect();
    let ir_lines: Vec<_> =
        lines.iter().map(|line| LineEntry { file: b"/nowhere.ir", line: 7, ..*line }).collect();
    let unwind = load.unwind().expect("the demo's codes have tables");
    writer
        .extended(&ExtendedCode {
            timestamp: load.timestamp,
            pid: load.pid,
            tid: load.tid,
            address: load.address,
            index: load.index,
            name: load.name,
            bytes: Some(load.bytes),
            died: Some(load.timestamp + 1_000_000_000),
            kind: Kind::Stub,
            tier: Some(b"a tier"),
            lines: &lines,
            ir_lines: &ir_lines,
            inlined: &[Inlined {
                name: b"nothing",
                file: b"/nowhere",
                line: 3,
                ranges: std::iter::once(load.address..load.end()).collect(),
                ..Inlined::default()
            }],
            eh_frame: unwind.eh_frame,
            eh_frame_hdr: unwind.eh_frame_hdr,
            mapped_size: unwind.mapped_size,
            frame_pointer: Some(FramePointer::Prologue),
            ..ExtendedCode::default()
        })
        .expect("a code");
}

/// The same dump with what the format knows alone.
fn without_tails(dump: &Dump<'_>) -> Vec<u8> {
    let config = WriterConfig::from(dump.header());
    let mut writer = Writer::new(Vec::new(), &config).expect("a header");
    for record in dump.records() {
        let record = record.expect("a sound dump");
        match record.body {
            Body::DebugInfo(info) if info.nr_entry == 0 => {}
            // As other writers do.
            Body::UnwindingInfo(info) => {
                let padding = &[0; 8]
                    [..info.eh_frame_hdr.len().next_multiple_of(8) - info.eh_frame_hdr.len()];
                let info = UnwindingInfo { padding, ..info };
                writer.unwinding_info(record.timestamp, &info).expect("tables");
            }
            _ => writer.record(&record).expect("a record"),
        }
    }
    writer.into_sink()
}

/// The result of stock perf for a recording, with all its output.
fn stock(perf: &Perf, recording: &Recording, to: &str) -> (Vec<Sample>, String) {
    let out = recording.dir().join(to);
    let mut inject = perf.command();
    inject.args(["inject", "--jit", "-i"]).arg(recording.data()).arg("-o").arg(&out);
    let said = run(&mut inject).stderr;
    let mut samples = perf.samples_with_lines(&out);
    // Under load, perf gives up waiting for the lines of native code.
    samples
        .iter_mut()
        .filter(|sample| !sample.in_stock_image())
        .for_each(|sample| sample.srcline = None);
    (samples, said)
}

/// The demo's dump with tails.
fn rich() -> Vec<u8> {
    rich_of(&DEMO.get())
}

fn rich_of(recording: &Recording) -> Vec<u8> {
    let dump = fs::read(dump_of(recording)).expect("the demo's dump");
    with_tails(&Dump::parse(&dump).expect("the demo's dump"))
}

fn dump_of(recording: &Recording) -> std::path::PathBuf {
    recording.dir().join(format!("jit-{}.dump", recording.pid()))
}

fn replace(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("a dump in place of the demo's");
}

#[test]
fn stock_perf_passes_over_tails_in_silence() {
    // perf reads the dump in its place, so this one is the test's own.
    let (recording, truth) = record_demo(Recorder::new(), &[]);
    let rich = rich_of(&recording);
    let plain = without_tails(&Dump::parse(&rich).expect("a dump"));
    assert!(rich.len() > 2 * plain.len(), "{} and {} bytes", rich.len(), plain.len());
    for (version, perf) in [("6.1", Perf::installed()), ("6.12", Perf::newer())] {
        replace(&dump_of(&recording), &plain);
        let (before, said_before) = stock(&perf, &recording, "plain.data");
        replace(&dump_of(&recording), &rich);
        let (after, said_after) = stock(&perf, &recording, "rich.data");
        assert_eq!(before.len(), after.len(), "perf {version}");
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before, after, "perf {version}");
        }
        assert_eq!(said_before, said_after, "perf {version}");
        assert_eq!(said_after, "", "perf {version}");
        let jitted = after.iter().filter(|sample| {
            truth.covers(sample.ip, sample.time)
                && sample.srcline.as_deref().is_some_and(|at| at.contains("demo.scribe:"))
        });
        assert!(jitted.count() > 50, "perf {version} shows no lines");
    }
}

#[test]
fn our_own_dumps_are_in_order() {
    let report = check(&rich());
    assert_eq!(report.findings, []);
}

#[test]
fn samplys_reader_passes_over_tails() {
    let rich = rich();
    let mut reader = JitDumpReader::new(&rich[..]).expect("a dump");
    let (mut codes, mut lines, mut waiting) = (Vec::new(), 0, 0);
    while let Some(record) = reader.next_record().expect("a record") {
        match record.parse().expect("a sound record") {
            JitDumpRecord::CodeLoad(load) => {
                codes.push((load.function_name.as_slice().into_owned(), load.code_addr));
                lines += waiting;
                waiting = 0;
            }
            // Keyed by the code's address there: what has no entries is replaced by what has.
            JitDumpRecord::CodeDebugInfo(info) => waiting = info.entries.len(),
            JitDumpRecord::CodeUnwindingInfo(_) => {}
            other => panic!("{other:?}"),
        }
    }
    let rich = Dump::parse(&rich).expect("a dump");
    let full: Vec<_> = rich
        .codes()
        .filter_map(|event| match event.expect("a sound dump") {
            CodeEvent::Load(load) if !load.is_without_bytes() => Some(load),
            _ => None,
        })
        .collect();
    let ours: Vec<_> = full.iter().map(|load| (load.name.to_vec(), load.address)).collect();
    assert_eq!(codes, ours);
    // Each code has one entry more, at its end.
    let entries: usize = full.iter().map(|load| load.lines().count() + 1).sum();
    assert_eq!(lines, entries);
}
