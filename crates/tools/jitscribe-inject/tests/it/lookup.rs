//! A lookup agrees with the attribution of samples, and with the jitdumps.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use jitdump::{Endian, ExtendedCode, Inlined, LineEntry, Writer, WriterConfig};
use jitscribe_inject::files::PlainFiles;
use jitscribe_inject::{
    CodeIndex, Counts, Destination, Injector, Output, Progress, SampleAttribution, SearchPaths,
    Sources, Stage, Warning,
};
use perf_data::{Input, Record, kind, misc};
use tempfile::TempDir;

#[path = "../../../jitscribe-cli/tests/it/inject/recording.rs"]
#[allow(dead_code, reason = "each test program uses a part")]
mod recording;

use recording::Recording;

/// Process ids that no process of this machine can have.
const PID: u32 = 5_000_007;
const CHILD: u32 = 5_000_009;
const OTHER: u32 = 5_000_008;
const CODE: u64 = 0x7f00_0000_0000;
const MS: u64 = 1_000_000;

fn code<'a>(time: u64, address: u64, index: u64, name: &'a str) -> ExtendedCode<'a> {
    ExtendedCode {
        timestamp: time * MS,
        pid: PID,
        tid: PID,
        address,
        size: 0x40,
        index,
        name: name.as_bytes(),
        ..ExtendedCode::default()
    }
}

fn dump(codes: &[ExtendedCode<'_>]) -> Vec<u8> {
    let config =
        WriterConfig { endian: Endian::Little, machine: 62, pid: PID, timestamp: MS, flags: 0 };
    let mut writer = Writer::new(Vec::new(), &config).unwrap();
    for code in codes {
        writer.extended(code).unwrap();
    }
    writer.into_sink()
}

/// A folder with a recording of three processes: one whose code is replaced, its child, and one with a perf map.
fn folder() -> TempDir {
    let folder = TempDir::with_prefix("jitscribe-lookup-").unwrap();
    let line = |address, line| LineEntry { address, file: b"a.c".as_slice(), line, column: 0 };
    let with_lines = ExtendedCode {
        lines: &[line(CODE + 0x100, 1), line(CODE + 0x110, 20)],
        inlined: &[Inlined {
            name: b"inner".as_slice(),
            file: b"a.c",
            line: 2,
            ranges: vec![CODE + 0x110..CODE + 0x118, CODE + 0x118..CODE + 0x120],
            ..Inlined::default()
        }],
        ..code(20, CODE + 0x100, 3, "outer")
    };
    let codes = [
        code(20, CODE, 1, "first"),
        with_lines,
        code(400, CODE + 0x20, 2, "second"),
        code(600, CODE + 0x200, 4, "late"),
    ];
    fs::write(folder.path().join(format!("jit-{PID}.dump")), dump(&codes)).unwrap();
    let map = format!("{CODE:x} 40 of the map\n");
    fs::write(folder.path().join(format!("perf-{OTHER}.map")), map).unwrap();
    let mut recording = Recording::new();
    for pid in [PID, OTHER] {
        recording.comm(pid, pid, "app", MS).map(pid, CODE..CODE + 0x1000, "//anon", 2 * MS);
    }
    recording.fork(CHILD, PID, 300 * MS);
    for time in (10..900).step_by(5) {
        let pid = [PID, CHILD, OTHER][time as usize % 3];
        recording.sample(pid, CODE + time * 8 % 0x240, time * MS);
    }
    fs::write(folder.path().join("perf.data"), recording.file()).unwrap();
    folder
}

/// A recording, and the code that was found for it.
fn read<T>(
    path: &Path,
    folder: &Path,
    work: impl FnOnce(&mut jitscribe_inject::Recording, &jitscribe_inject::Codes<'_>) -> T,
) -> T {
    let mut recording = jitscribe_inject::Recording::open(path, &|_| {}).unwrap();
    let paths = SearchPaths { folders: vec![folder.to_owned()], ..SearchPaths::default() };
    let mut warnings = Vec::new();
    let sources = Sources::find(&recording, &paths, &PlainFiles, &mut warnings);
    let codes = sources.read(&recording, &PlainFiles, &mut warnings);
    work(&mut recording, &codes)
}

/// Each sample has the code that a lookup finds. Returns where they were.
fn compare(path: &Path, folder: &Path) -> Counts {
    read(path, folder, |recording, codes| {
        let attribution = SampleAttribution::read(recording, codes, &|_| {}).unwrap();
        let mut attributed = BTreeMap::new();
        for (code, samples) in attribution.hits() {
            *attributed.entry(code).or_insert(0) += samples;
        }
        let mut index = CodeIndex::new(recording, codes);
        let mut found = BTreeMap::new();
        let mut input = Input::open(path).unwrap();
        while let Some(event) = input.next_event().unwrap() {
            if event.kind() != kind::SAMPLE || event.misc() & misc::CPU_MODE_MASK != misc::USER {
                continue;
            }
            let Ok(Record::Sample(sample)) = event.record() else { continue };
            let (Some(pid), Some(ip)) = (sample.id.pid, sample.ip) else { continue };
            let time = sample.id.time.unwrap_or(u64::MAX);
            if let Some(code) = index.lookup(pid, time, ip).unwrap() {
                assert!(code.offset < code.size, "{code:?}");
                assert_eq!(code.start + code.offset, ip);
                let name = code_index::FunctionName::of(code.name());
                assert_eq!(code.inlined_chain().last().unwrap().function, &*name.function);
                *found.entry(code.code).or_insert(0) += 1;
            }
        }
        assert_eq!(found, attributed, "{}", path.to_string_lossy());
        assert_eq!(found.values().sum::<u64>(), attribution.counts.named);
        attribution.counts
    })
}

#[test]
fn samples_have_the_code_that_a_lookup_finds() {
    let folder = folder();
    let counts = compare(&folder.path().join("perf.data"), folder.path());
    assert!(counts.named > 20 && counts.unnamed > 20, "{counts:?}");
}

#[test]
fn samples_of_real_recordings_have_the_code_that_a_lookup_finds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/corpus");
    let (mut recordings, mut named) = (0, 0);
    for archive in fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()) {
        if archive.extension().is_none_or(|extension| extension != "xz") {
            continue;
        }
        let folder = TempDir::with_prefix("jitscribe-corpus-").unwrap();
        let mut tar = Command::new("tar");
        let status = tar.arg("-xJf").arg(&archive).arg("-C").arg(folder.path()).status();
        assert!(status.expect("tar, which scripts/setup.sh installs").success(), "{archive:?}");
        let within = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let files = within.flat_map(|folder| fs::read_dir(folder).unwrap());
        let paths: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "data")) {
            named += compare(path, folder.path()).named;
            recordings += 1;
        }
    }
    assert!(recordings > 10 && named > 1000, "{named} samples in {recordings} recordings");
}

#[test]
fn codes_differ_by_time_and_process() {
    let folder = folder();
    read(&folder.path().join("perf.data"), folder.path(), |recording, codes| {
        let mut index = CodeIndex::new(recording, codes);
        let mut name = |pid, time: u64, offset| {
            let found = index.lookup(pid, time * MS, CODE + offset).unwrap()?;
            Some((String::from_utf8(found.name().to_vec()).unwrap(), found.offset))
        };
        let is = |name: &str, offset| Some((name.to_owned(), offset));
        assert_eq!(name(PID, 100, 0x30), is("first", 0x30));
        assert_eq!(name(PID, 500, 0x30), is("second", 0x10));
        assert_eq!(name(PID, 500, 0x10), is("first", 0x10));
        // The child keeps what there was at the fork.
        assert_eq!(name(CHILD, 500, 0x30), is("first", 0x30));
        assert_eq!(name(CHILD, 200, 0x30), None);
        assert_eq!(name(OTHER, 100, 0x30), is("of the map", 0x30));
        // Shortly before its announcement code may run.
        assert_eq!(name(PID, 599, 0x210), is("late", 0x10));
        assert_eq!(name(PID, 450, 0x210), None);
        assert_eq!(name(1, 100, 0x30), None);
    });
}

#[test]
fn a_lookup_has_the_line_and_the_inlined_chain() {
    let folder = folder();
    read(&folder.path().join("perf.data"), folder.path(), |recording, codes| {
        let mut index = CodeIndex::new(recording, codes);
        let mut frames = |offset: u64| {
            let found = index.lookup(PID, 100 * MS, CODE + offset).unwrap().unwrap();
            let frame = |frame: jitscribe_inject::Frame<'_>| {
                let text = |bytes| str::from_utf8(bytes).unwrap();
                format!("{} {}:{}", text(frame.function), text(frame.file), frame.line)
            };
            assert_eq!(found.line(), found.inlined_chain().next());
            found.inlined_chain().map(frame).collect::<Vec<_>>()
        };
        assert_eq!(frames(0x104), ["outer a.c:1"]);
        assert_eq!(frames(0x114), ["inner a.c:20", "outer a.c:2"]);
        assert_eq!(frames(0x130), ["outer a.c:20"]);
        assert_eq!(frames(0x0), ["first :0"]);
    });
}

#[test]
fn an_injection_reports_its_progress_and_results() {
    let folder = folder();
    let stages = RefCell::new(Vec::new());
    let progress = |progress| {
        if let Progress::Begins(stage) = progress {
            stages.borrow_mut().push(stage);
        }
    };
    let path = folder.path().join("perf.data");
    let mut recording = jitscribe_inject::Recording::open(&path, &progress).unwrap();
    let lost = folder.path().join("lost.dump");
    let paths = SearchPaths {
        folders: vec![folder.path().to_owned()],
        jitdumps: vec![lost.to_str().unwrap().parse().unwrap()],
        ..SearchPaths::default()
    };
    let injector = Injector::new(paths).progress(&progress);
    let output = folder.path().join("out.data");
    let destination = Destination::File(Output::create(&output, false).unwrap());
    let report = injector.inject(&mut recording, destination).unwrap();
    assert_eq!(report.warnings, [Warning::NoJitdump { path: lost }]);
    assert_eq!(report.output.as_deref(), Some(output.as_path()));
    assert_eq!(report.images.len(), 3);
    assert!(report.images.iter().all(|image| image.path.is_file()));
    assert_eq!(report.samples.samples, 178);
    use Stage::{Attributing, Reading, WritingImages, WritingRecording};
    assert_eq!(*stages.borrow(), [Reading, Attributing, WritingImages, WritingRecording]);
    let again = Output::create(&output, false).unwrap_err();
    assert!(matches!(again, jitscribe_inject::Error::Exists { .. }), "{again}");
    let stream = Destination::Stream(Box::new(std::io::sink()));
    let refused = injector.inject(&mut recording, stream).unwrap_err();
    assert!(matches!(refused, jitscribe_inject::Error::NoImageFolder), "{refused}");
}
