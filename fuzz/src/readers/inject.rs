//! A recording and the code of its processes: everything that `inject` does, and lookups of every sample.
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use jitscribe_inject::files::{Named, PlainFiles};
use jitscribe_inject::{CodeIndex, Destination, Injector, Recording, SearchPaths, Sources};
use perf_data::{End, Input, Record};

/// The folder of the files, one for each fuzzing process. The recording's processes 1 and 2 have code.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("jitscribe-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    folder
});

/// The places of the samples.
fn samples(input: &mut Input) -> Vec<(u32, u64, u64)> {
    input.restart();
    let mut places = Vec::new();
    while let Some(event) = input.next_event().expect("reading from memory") {
        if let (Ok(Record::Sample(sample)), Some(time)) = (event.record(), event.timestamp())
            && let (Some(address), Some(pid)) = (sample.ip, sample.id.pid)
        {
            places.push((pid, time, address));
        }
    }
    places
}

/// Runs all steps, and checks what must hold.
pub fn run(recording: Vec<u8>, dump: &[u8], map: &[u8]) {
    let Ok(mut input) = Input::from_bytes(recording.clone()) else { return };
    let samples = samples(&mut input);
    let [dump_path, map_path] =
        [(&dump, "jit-1.dump"), (&map, "perf-2.map")].map(|(bytes, name)| {
            let path = FOLDER.join(name);
            fs::write(&path, bytes).expect("a file");
            path
        });
    let paths = SearchPaths {
        // Its codes are used as memory that was read, too.
        memory: vec![dump_path.clone()],
        jitdumps: vec![Named { pid: Some(1), path: dump_path }],
        perf_maps: vec![Named { pid: Some(2), path: map_path }],
        ..SearchPaths::default()
    };
    let open = || {
        let input = Input::from_bytes(recording.clone()).expect("it was read before");
        Recording::read(Path::new("recording"), input, &|_| {})
    };
    let Ok(mut read) = open() else { return };
    {
        let mut warnings = Vec::new();
        let sources = Sources::find(&read, &paths, &PlainFiles, &mut warnings);
        let codes = sources.read(&read, &PlainFiles, &mut warnings);
        let mut index = CodeIndex::new(&read, &codes);
        for (pid, time, address) in samples {
            if let Ok(Some(found)) = index.lookup(pid, time, address) {
                let _ = found.name().len();
                let _ = found.inlined_chain().count();
            }
        }
        let _ = format!("{warnings:?}");
    }
    let mut output = Vec::new();
    let injector = Injector::new(paths).image_folder(Some(FOLDER.join("images"))).replace(true);
    let destination = Destination::Stream(Box::new(&mut output));
    let Ok(report) = injector.inject(&mut read, destination) else { return };
    assert!(report.samples.named <= report.samples.samples);
    let mut copy = Input::from_bytes(output).expect("a recording that inject wrote");
    while copy.next_event().expect("reading from memory").is_some() {}
    assert_eq!(copy.end(), End::Complete);
}
