//! `dump --core` of processes without a code log: which jitdump or perf map is taken for theirs.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use crate::common::{Bench, Done, Removed, removed_map};
use jitdump::{Endian, Load, Writer, WriterConfig};
use test_privilege::needs;

const PAGE: u64 = 4096;

/// Executable memory of the process, of which the core file has no content.
const CODE: u64 = 0x7fff_1000_0000;

/// The user of the process.
const USER: u32 = 4711;

/// No process has this id, as it is larger than any, and it is this test program's alone.
fn pid(test: u32) -> u32 {
    (1 << 23) + 64 * std::process::id() + test
}

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn note(kind: u32, content: Vec<u8>) -> Vec<u8> {
    let mut note: Vec<u8> =
        [5, content.len() as u32, kind].iter().flat_map(|word| word.to_le_bytes()).collect();
    note.extend(b"CORE\0\0\0\0");
    note.extend(padded(content));
    note
}

/// A core file of a process that had mapped these files: its notes, and the head of a segment of code.
fn core(pid: u32, mapped: &[String]) -> Vec<u8> {
    let mut process = vec![0; 136];
    process[16..20].copy_from_slice(&USER.to_le_bytes());
    process[24..28].copy_from_slice(&pid.to_le_bytes());
    let mut files: Vec<u8> = [mapped.len() as u64, PAGE].map(u64::to_le_bytes).concat();
    for start in (0x1000..).step_by(0x1000).take(mapped.len()) {
        files.extend([start, start + 0x1000, 0_u64].map(u64::to_le_bytes).concat());
    }
    files.extend(mapped.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()));
    let notes = [note(3, process), note(0x4649_4c45, files)].concat();

    // ET_CORE of x86-64, with two program headers right behind this one.
    let mut core = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0\x3e\0\x01\0\0\0".to_vec();
    core.extend([0, 64, 0_u64].map(u64::to_le_bytes).concat());
    core.extend(0_u32.to_le_bytes());
    core.extend([64, 56, 2, 64, 0, 0_u16].map(u16::to_le_bytes).concat());
    let size = notes.len() as u64;
    // PT_NOTE, and PT_LOAD that may be read and executed.
    for (kind, words) in
        [([4, 4_u32], [176, 0, 0, size, 0, 4]), ([1, 5], [PAGE, CODE, 0, 0, 4 * PAGE, PAGE])]
    {
        core.extend(kind.map(u32::to_le_bytes).concat());
        core.extend(words.map(u64::to_le_bytes).concat());
    }
    core.extend(notes);
    core
}

/// A jitdump with a function, or with none.
fn jitdump(pid: u32, name: Option<&str>) -> Vec<u8> {
    let config = WriterConfig { endian: Endian::Little, machine: 62, pid, timestamp: 1, flags: 0 };
    let mut writer = Writer::new(Vec::new(), &config).expect("a header");
    if let Some(name) = name {
        let load = Load {
            pid,
            tid: pid,
            vma: CODE,
            code_addr: CODE,
            code_index: 0,
            name: name.as_bytes(),
            code: &[0xc3; 16],
            padding: &[],
            missing: 0,
        };
        writer.load(2, &load).expect("a record");
    }
    writer.into_sink()
}

fn map(address: u64, name: &str) -> String {
    format!("{address:x} 10 {name}\n")
}

/// A core file in a folder, and the perf map that its process may have left.
struct Crashed {
    bench: Bench,
    pid: u32,
    map: Removed,
}

impl Crashed {
    /// Its process had mapped the jitdump with this name in the folder.
    fn new(test: u32) -> Self {
        let (bench, pid) = (Bench::new(), pid(test));
        let mapped = ["/usr/bin/runtime".to_owned(), bench.name(&format!("jit-{pid}.dump"))];
        bench.write("core", core(pid, &mapped));
        Self { bench, pid, map: removed_map(pid) }
    }

    fn with_map(self, content: &str) -> Self {
        fs::write(&self.map.0, content).expect("a perf map");
        self
    }

    fn with_dump(self, content: &[u8]) -> Self {
        self.bench.write(&format!("jit-{}.dump", self.pid), content);
        self
    }

    fn ask(&self) -> Done {
        self.bench.ask("dump --core core --perf-map")
    }

    #[track_caller]
    fn shows(&self, name: &str) {
        let done = self.ask().ok();
        assert_eq!(done.stdout, map(CODE, name), "{}", done.stderr);
    }

    /// It ends with an error that names the file and the cause.
    #[track_caller]
    fn refuses(&self, file: &str, cause: &str) {
        self.ask().ends(1).says(&format!("{file} ({cause})"));
    }

    fn map_name(&self) -> String {
        self.map.0.to_str().expect("UTF-8").to_owned()
    }
}

#[test]
fn what_the_process_had_mapped_is_read_before_its_perf_map() {
    let crashed = Crashed::new(0);
    let pid = crashed.pid;
    crashed.refuses(&crashed.bench.name(&format!("jit-{pid}.dump")), "not there");
    crashed.refuses(&crashed.map_name(), "not there");
    let crashed = crashed.with_map(&map(CODE, "mapped"));
    crashed.shows("mapped");
    let crashed = crashed.with_dump(&jitdump(pid, Some("dumped")));
    crashed.shows("dumped");
    // V8 loses what is in its buffer.
    crashed.with_dump(&jitdump(pid, None)).shows("mapped");
}

#[test]
fn copies_beside_the_core_file_are_read() {
    let pid = pid(1);
    let name = format!("jit-{pid}.dump");
    let bench = Bench::with("core", core(pid, &[format!("/missing/{name} (deleted)")]));
    bench.write(&format!("perf-{pid}.map"), map(CODE, "mapped"));
    let dump = || bench.ask("dump --core core --perf-map").ok().stdout;
    assert_eq!(dump(), map(CODE, "mapped"));
    bench.write(&name, jitdump(pid, Some("dumped")));
    assert_eq!(dump(), map(CODE, "dumped"));
    // To copy a file gives it another time.
    let core = File::options().write(true).open(bench.path("core")).expect("a file");
    core.set_modified(SystemTime::now() - Duration::from_secs(3600)).expect("a time");
    assert_eq!(dump(), map(CODE, "dumped"));
}

#[test]
fn files_of_other_processes_are_left_out() {
    let crashed = Crashed::new(2).with_map(&map(0x1234_0000, "elsewhere"));
    let pid = crashed.pid;
    let crashed = crashed.with_dump(&jitdump(pid + 1, Some("other")));
    let dump = crashed.bench.name(&format!("jit-{pid}.dump"));
    crashed.refuses(&dump, "of another process");
    crashed.refuses(&crashed.map_name(), "its code is not in executable memory of the core file");
    let crashed = crashed.with_map("not a map\n");
    crashed.refuses(&crashed.map_name(), "has no code");

    // A later process with the same id wrote both.
    let crashed = crashed.with_map(&map(CODE, "later")).with_dump(&jitdump(pid, Some("later")));
    crashed.shows("later");
    let core = File::options().write(true).open(crashed.bench.path("core")).expect("a file");
    core.set_modified(SystemTime::now() - Duration::from_secs(60)).expect("a time");
    crashed.refuses(&dump, "changed after the core file was written");
    crashed.refuses(&crashed.map_name(), "changed after the core file was written");
}

/// Files that were moved have other names, other times and other owners.
#[test]
fn files_that_are_named_are_read() {
    let crashed = Crashed::new(5).with_map(&map(CODE, "found"));
    let (bench, pid) = (&crashed.bench, crashed.pid);
    bench.write("moved.map", map(CODE, "mapped"));
    bench.write("moved.dump", jitdump(pid, Some("dumped")));
    bench.write("empty.dump", jitdump(pid, None));
    let dump = |named: &str| bench.ask(&format!("dump --core core --perf-map {named}"));
    for (named, name) in [
        ("--from-perf-map moved.map", "mapped"),
        ("--from-jitdump moved.dump", "dumped"),
        ("--from-perf-map moved.map --from-jitdump moved.dump", "dumped"),
        ("--from-perf-map moved.map --from-jitdump empty.dump", "mapped"),
    ] {
        let done = dump(named).ok();
        assert_eq!((done.stdout, done.stderr), (map(CODE, name), String::new()), "{named}");
    }
    dump("--from-jitdump empty.dump").ends(1).says("empty.dump (has no code)");
    dump("--from-jitdump missing.dump").ends(1).says("missing.dump");
    // They need not be of the process, but that is said.
    bench.write("other.dump", jitdump(pid + 1, Some("other")));
    bench.write("other.map", map(0x1234_0000, "other"));
    let done = dump("--from-jitdump other.dump").ok();
    assert_eq!(done.stdout, map(CODE, "other"));
    assert!(done.stderr.contains("other.dump: of another process"), "{}", done.stderr);
    let done = dump("--from-perf-map other.map").ok();
    assert_eq!(done.stdout, map(0x1234_0000, "other"));
    assert!(done.stderr.contains("not in executable memory"), "{}", done.stderr);
    bench.ask("dump --from-perf-map moved.map moved.dump").ends(2).says("--from-perf-map");
}

#[test]
fn maps_of_other_users_are_left_out() {
    needs!(OtherUsers);
    let crashed = Crashed::new(3).with_map(&map(CODE, "forged"));
    std::os::unix::fs::chown(&crashed.map.0, Some(65534), None).expect("another owner");
    crashed.refuses(&crashed.map_name(), "belongs to uid 65534");
    std::os::unix::fs::chown(&crashed.map.0, Some(USER), None).expect("another owner");
    crashed.shows("forged");
}

/// As far as its notes are readable, a damaged core file is read.
#[test]
fn damaged_notes_are_no_failure() {
    let crashed = Crashed::new(4).with_map(&map(CODE, "mapped"));
    let sound = crashed.bench.read("core");
    for at in (176..sound.len()).step_by(12) {
        let mut damaged = sound.clone();
        damaged[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        crashed.bench.write("core", &damaged);
        let done = crashed.ask();
        let is_read = done.code == 0 && done.stdout == map(CODE, "mapped");
        assert!(is_read || done.code == 1 && done.stdout.is_empty(), "{at}: {done:?}");
    }
    for length in (176..sound.len()).step_by(28) {
        crashed.bench.write("core", &sound[..length]);
        assert!([0, 1].contains(&crashed.ask().code), "{length}");
    }
}
