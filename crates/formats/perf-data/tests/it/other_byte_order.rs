//! perf on a little-endian machine reads a big-endian recording: the reference for this crate.

use std::path::Path;
use std::process::Command;

use crate::common::{Maker, copy_to_file, copy_to_pipe, mapping};
use perf_data::{Endian, FileIdentity, Input, Writer, kind};

fn script(path: &Path) -> String {
    let output = Command::new("perf")
        .args(["script", "--show-mmap-events", "--show-task-events"])
        .args(["-F", "comm,pid,tid,cpu,time,ip", "-i"])
        .arg(path)
        .env("HOME", path.parent().unwrap())
        .output()
        .expect("perf is missing: run scripts/setup.sh");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Samples of a process, and a mapping added by the writer.
fn recording(make: Maker) -> Vec<u8> {
    let data = [
        make.comm(500, "worker", &make.trailer(500, 1000)),
        make.mmap(500, 0x40_0000, "/nowhere/worker", &make.trailer(500, 2000)),
        make.sample(500, 0x40_0010, 3_000_000),
        make.event(kind::FINISHED_ROUND, 0, &[]),
        make.sample(500, 0x7000_0010, 5_000_000),
    ];
    let mut input = make.input(&data.concat(), &[]);
    let file = FileIdentity::Inode { major: 1, minor: 2, inode: 3, generation: 4 };
    let map = mapping(500, [0x7000_0000, 0x2000, 0x1000], file, b"/nowhere/image.so");
    let map = map.encode(make.0, &input.attrs().trailer(500, 500, 4_000_000)).unwrap();
    let mut out = std::io::Cursor::new(Vec::new());
    let mut writer = Writer::file(&mut out, &input).unwrap();
    while let Some(event) = input.next_event().unwrap() {
        writer.write_event(&event).unwrap();
        if event.kind() == kind::FINISHED_ROUND {
            writer.insert(&map).unwrap();
        }
    }
    writer.finish().unwrap();
    out.into_inner()
}

#[test]
fn perf_reads_our_big_endian_files_as_it_reads_little_endian_ones() {
    let directory = tempfile::tempdir().unwrap();
    let shown = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        // perf 6.1 forgets to swap a mapping's protection.
        script(&path).replace("r-xp", "---p")
    };
    let expected = shown("little", &recording(Maker(Endian::Little)));
    for part in [
        "worker",
        "400010",
        "70000010",
        "/nowhere/image.so",
        "[0x70000000(0x2000) @ 0x1000 01:02 3 4]",
    ] {
        assert!(expected.contains(part), "{part} in {expected}");
    }
    let big = recording(Maker(Endian::Big));
    assert_eq!(shown("big", &big), expected);
    let mut input = Input::from_bytes(big).unwrap();
    assert_eq!(shown("copy", &copy_to_file(&mut input, |_| {}).unwrap()), expected);
    input.restart();
    assert_eq!(shown("pipe", &copy_to_pipe(&mut input).unwrap()), expected);
}
