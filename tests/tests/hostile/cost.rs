//! What hostile recordings, dumps, maps and profiles may cost: no more than n·log n of their size.
//!
//! Each kind is made at three sizes, and the instructions that reading it takes are counted (by cachegrind, as not
//! every machine counts them): they do not depend on how busy the machine is.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use end_to_end::jitscribe::{inject, jitscribe};
use end_to_end::perf::Perf;
use end_to_end::synthetic::{Dump, Map, Recording, inlined_within_each_other};
use end_to_end::tool::{Ended, ended, run, tool};
use tempfile::TempDir;

/// The process that everything is of.
/// Above the kernel's `PID_MAX_LIMIT`, so that a perf map of a real process in `/tmp` is not one of these.
const PID: u32 = 5_000_000;
/// When it begins.
const BEGIN: u64 = 1_000_000_000;
/// Sixteen bytes of code.
const CODE: &[u8] = b"\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\xc3";

/// What is made.
struct Made {
    recording: Recording,
    dump: Dump,
}

impl Made {
    fn new(mut recording: Recording) -> Self {
        recording.comm(PID, "evil", BEGIN, true);
        recording.map(PID, 0x10000, 1 << 46, "//anon", BEGIN + 1);
        recording.map(PID, 0x7fff_0000_0000, 4096, format!("/tmp/jit-{PID}.dump"), BEGIN + 2);
        Self { recording, dump: Dump::new(PID, BEGIN) }
    }

    fn write(&self, folder: &Path) {
        self.recording.write(&folder.join("p.data"));
        self.dump.write(&folder.join(format!("jit-{PID}.dump")));
    }
}

/// Writes one kind of input of a size into a folder.
type Make = fn(u64, &Path);

/// Each code is an arena of its own, and one place was used twice.
fn arenas(n: u64, folder: &Path) {
    let mut made = Made::new(Recording::new());
    for i in 0..n {
        made.dump.load(0x100000 + (i << 31) % (1 << 62), CODE, format!("f{i}"), BEGIN + 10 + i);
    }
    made.dump.load(0x100000, CODE, "again", BEGIN + 10 + n);
    made.recording.sample(PID, 0x100004, BEGIN + 100 * n);
    made.write(folder);
}

/// A perf map of codes of 256 MiB, one behind the other.
fn cuts(n: u64, folder: &Path) {
    let mut made = Made::new(Recording::new());
    let mut map = Map::new();
    for i in 0..n {
        map.line(0x10000 + (i << 28), 1 << 28, &format!("f{i}"));
    }
    made.recording.sample(PID, 0x10004, BEGIN + 100);
    made.recording.write(&folder.join("p.data"));
    map.write(&folder.join(format!("perf-{PID}.map")));
}

/// Codes that had one place die there, after others have taken parts of it.
fn dying(n: u64, folder: &Path) {
    let mut made = Made::new(Recording::new());
    for i in 0..n {
        // Each of the first keeps a little at its end.
        let (size, died) = ((1 << 27) - 64 * i, BEGIN + 10 + 2 * n + i);
        made.dump.without_bytes(0x10000000, size, format!("b{i}"), BEGIN + 10 + i, died, &[]);
    }
    for i in 0..n {
        let (address, time) = (0x10000000 + i * 64, BEGIN + 10 + n + i);
        made.dump.without_bytes(address, 32, format!("s{i}"), time, 0, &[]);
    }
    made.recording.sample(PID, 0x10000004, BEGIN + 100 * n);
    made.write(folder);
}

/// Children with one code each, of a process with as many codes.
fn forks(n: u64, folder: &Path) {
    let mut made = Made::new(Recording::new());
    for i in 0..n {
        made.dump.load(0x10000000 + i * 64, CODE, format!("f{i}"), BEGIN + 10 + i);
    }
    for i in 0..n {
        made.recording.fork(PID + 1 + i as u32, PID, BEGIN + 20 + n + i);
    }
    for i in 0..n {
        let (pid, time) = (PID + 1 + i as u32, BEGIN + 20 + 3 * n + i);
        made.dump.load_of(pid, 0x10000000, CODE, "c", time);
    }
    made.recording.sample(PID, 0x10000004, BEGIN + 100 * n);
    // The last child: code of its own over its parent's, and its parent's.
    made.recording.sample(PID + n as u32, 0x10000004, BEGIN + 100 * n + 1);
    made.recording.sample(PID + n as u32, 0x10000000 + 7 * 64 + 4, BEGIN + 100 * n + 2);
    made.write(folder);
}

/// Mappings of files over the code of functions that run on.
fn hidden(n: u64, folder: &Path) {
    let mut made = Made::new(Recording::new());
    let address = |i: u64| 0x10000000 + i * 64;
    for i in 0..n {
        made.dump.load(address(i), CODE, format!("f{i}"), BEGIN + 10 + i);
    }
    for i in 0..n {
        made.recording.sample(PID, address(i) + 4, BEGIN + 20 + 2 * n + i);
    }
    for i in 0..n {
        let time = BEGIN + 20 + 3 * n + 2 * i;
        made.recording.map(PID, address(i) & !4095, 4096, format!("/lib/x{}.so", i % 2), time);
    }
    for i in 0..n {
        made.recording.sample(PID, address(i) + 4, BEGIN + 20 + 6 * n + i);
    }
    made.write(folder);
}

/// A chain of forks, each with a mapping of its own, and samples in the last.
fn chain(n: u64, folder: &Path) {
    let mut made = Made::new(Recording::new());
    made.dump.load(0x10000000, CODE, "f", BEGIN + 10);
    for i in 0..n {
        let pid = PID + 1 + i as u32;
        made.recording.fork(pid, pid - 1, BEGIN + 20 + 2 * i);
        made.recording.map(pid, 0x7000_0000_0000 + i * 8192, 4096, "/lib/x.so", BEGIN + 21 + 2 * i);
    }
    for i in 0..n {
        let address = 0x20000000 + (i * 4096 * 7919) % (1 << 40);
        made.recording.sample(PID + n as u32, address, BEGIN + 30 + 2 * n + i);
    }
    made.write(folder);
}

/// Stack copies: long-lived codes, and as many that replace one another.
fn cut_epochs(n: u64, folder: &Path) {
    let mut made = Made::new(Recording::with_stack_copies());
    let address = |i: u64| 0x10000000 + i * 64;
    for i in 0..n {
        made.dump.load(address(i), CODE, format!("l{i}"), BEGIN + 10 + i);
        made.recording.sample(PID, address(i) + 4, BEGIN + 20 + n + i);
    }
    for i in 0..n {
        let time = BEGIN + 30 + 2 * n + 4 * i;
        made.dump.load(0xf000000, CODE, format!("r{i}"), time);
        made.recording.sample(PID, 0xf000004, time + 1);
    }
    for i in 0..n {
        made.recording.sample(PID, address(i) + 4, BEGIN + 40 + 8 * n + i);
    }
    made.write(folder);
}

/// Codes that ran before they were announced, each in a separate arena.
fn veils(n: u64, folder: &Path) {
    let mut made = Made::new(Recording::new());
    let address = |i: u64| 0x100000 + (i << 31) % (1 << 46);
    for i in 0..n {
        made.recording.sample(PID, address(i) + 4, BEGIN + 3 + i);
        made.dump.load(address(i), CODE, format!("f{i}"), BEGIN + 100_000_000_000 + i);
    }
    for i in 0..n {
        made.recording.sample(PID, address(i) + 4, BEGIN + 200_000_000_000 + i);
    }
    made.write(folder);
}

/// Processes, each with a perf map of one line and some mappings: what `record -a` records.
fn processes(n: u64, folder: &Path) {
    let mut recording = Recording::new();
    for i in 0..n {
        let (pid, time) = (PID + 1 + i as u32, BEGIN + i * 30);
        recording.comm(pid, "p", time + 3, true);
        recording.map(pid, 0x10000, 1 << 40, "//anon", time + 4);
        for k in 0..5 {
            let address = 0x7f00_0000_0000 + k * 65536;
            recording.map(pid, address, 65536, format!("/lib/l{k}.so"), time + 5 + k);
        }
        recording.sample(pid, 0x20004, time + 28);
        let mut map = Map::new();
        map.line(0x20000, 0x100, &format!("f{i}"));
        map.write(&folder.join(format!("perf-{pid}.map")));
    }
    recording.write(&folder.join("p.data"));
}

/// Anonymous memory that is mapped over many runs of code, again and again.
fn parts(n: u64, folder: &Path) {
    let mut made = Made::new(Recording::new());
    for i in 0..n {
        made.dump.load(0x10000000 + i * 8192, CODE, format!("f{i}"), BEGIN + 10 + i);
    }
    for i in 0..n {
        let (name, time) = (format!("[anon:{i}]"), BEGIN + 20 + n + i);
        made.recording.map(PID, 0x10000000, n * 8192, name, time);
    }
    made.recording.sample(PID, 0x10000004, BEGIN + 100 * n);
    made.write(folder);
}

/// A code with calls that are inlined, each within the one before.
fn deep_inlines(n: u64, folder: &Path) {
    let mut made = Made::new(Recording::new());
    let items = inlined_within_each_other(n as u32);
    made.dump.without_bytes(0x100000, 16, "outer", BEGIN + 10, 0, &items);
    made.recording.sample(PID, 0x100004, BEGIN + 100);
    made.write(folder);
}

fn made(make: Make, n: u64) -> TempDir {
    let folder = TempDir::with_prefix("jitscribe-cost-").expect("a folder");
    make(n, folder.path());
    folder
}

/// `jitscribe inject` of what is in `folder`.
fn inject_in(folder: &Path) -> Command {
    let mut command = jitscribe();
    command.args(["inject", "--allow-empty", "-f", "-i"]).arg(folder.join("p.data"));
    command.arg("-o").arg(folder.join("q.data")).arg("--aux-dir").arg(folder);
    command
}

/// The same without the list of functions, for which the recording is read again.
fn quiet_inject_in(folder: &Path) -> Command {
    let mut command = inject_in(folder);
    command.arg("-q");
    command
}

/// How many instructions a command executes.
fn instructions(command: &Command) -> u64 {
    let mut counted = tool("valgrind");
    counted.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
    counted.arg(command.get_program()).args(command.get_args());
    let told = run(&mut counted).stderr;
    let count = told.lines().find_map(|line| line.split_once("refs:"));
    let count = count.and_then(|(_, count)| count.trim().replace(',', "").parse().ok());
    count.unwrap_or_else(|| panic!("cachegrind says no count: {told}"))
}

/// Asserts that twice the size costs twice as much, and not four times. What no size costs does not count.
///
/// Threads that wait for each other execute more on a busy machine: what grows too much is counted again, and the least counts.
fn grows_like_its_size(make: Make, n: u64, command: impl Fn(&Path) -> Command) {
    let count = |n| instructions(&command(made(make, n).path()));
    let sizes = [n, 2 * n, 4 * n];
    let mut costs = sizes.map(count);
    for _ in 0..2 {
        if growth(costs) > 3.0 {
            let again = sizes.map(count);
            costs = std::array::from_fn(|i| costs[i].min(again[i]));
        }
    }
    let growth = growth(costs);
    assert!(growth <= 3.0, "growth by {growth:.2} where 2 is linear and 4 the square: {costs:?}");
}

/// What the last doubling of the size adds, in terms of what the one before adds.
fn growth([small, middle, large]: [u64; 3]) -> f64 {
    assert!(small < middle, "{small}, {middle}, {large}");
    large.saturating_sub(middle) as f64 / (middle - small) as f64
}

macro_rules! costs {
    ($($name:ident: $make:expr, $n:literal;)*) => {
        $(#[test]
        fn $name() {
            grows_like_its_size($make, $n, quiet_inject_in);
        })*
    };
}

costs! {
    inject_of_many_arenas: arenas, 30;
    inject_of_code_that_is_cut: cuts, 200;
    inject_of_code_that_dies_under_other: dying, 100;
    // More than the limit on children that have copies of what they inherited.
    inject_of_many_forks: forks, 800;
    inject_of_code_under_files: hidden, 200;
    inject_of_a_chain_of_forks: chain, 100;
    // More epochs than the limit.
    inject_of_many_epochs: cut_epochs, 300;
    inject_of_code_that_ran_ahead: veils, 30;
    inject_of_many_processes: processes, 30;
    // Beyond the limit, which takes as much as some thousand more.
    inject_of_memory_mapped_over_code: parts, 3200;
    inject_of_deep_inlines: deep_inlines, 1000;
}

/// Says which command is run on the dump in a folder.
fn on_dump(verb: &'static [&'static str]) -> impl Fn(&Path) -> Command {
    move |folder| {
        let mut command = jitscribe();
        command.args(verb);
        if verb.contains(&"--elf") {
            command.arg(folder.join("objects")).arg("--force");
        }
        command.arg(folder.join(format!("jit-{PID}.dump")));
        command
    }
}

#[test]
fn dump_of_deep_inlines() {
    grows_like_its_size(deep_inlines, 400, on_dump(&["dump", "--json"]));
    grows_like_its_size(deep_inlines, 400, on_dump(&["dump", "--elf"]));
}

#[test]
fn dump_of_code_that_dies_under_other_code() {
    grows_like_its_size(dying, 1000, on_dump(&["dump", "--perf-map"]));
}

#[test]
fn check_of_a_dump() {
    grows_like_its_size(deep_inlines, 400, on_dump(&["check"]));
    grows_like_its_size(dying, 100, on_dump(&["check"]));
}

/// Beyond a limit, children share what they inherited instead of having copies.
#[test]
fn children_of_one_process_are_shown_its_code() {
    let folder = made(forks, 800);
    let output = folder.path().join("q.data");
    let aux = folder.path().as_os_str();
    inject(&folder.path().join("p.data"), &output, ["--aux-dir".as_ref(), aux]);
    let samples = Perf::installed().samples(&output);
    let names: Vec<_> = samples
        .iter()
        .map(|sample| sample.symbol.as_ref().map_or("", |symbol| symbol.name.as_str()))
        .collect();
    assert_eq!(names, ["f0", "c", "f7"]);
}

/// Runs a command that may have so many KiB of addresses.
fn in_kib(kib: u64, command: &Command) -> Ended {
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -v {kib} && exec \"$@\""), "sh"]);
    limited.arg(command.get_program()).args(command.get_args());
    ended(&mut limited)
}

/// Succeeds within 1 GiB of address space, and returns its output.
fn fits(command: &Command) -> String {
    let done = in_kib(1 << 20, command);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    done.stderr
}

/// Files that claim 32 GiB and have a page.
#[test]
fn sparse_files_take_what_they_have() {
    let folder = made(deep_inlines, 3);
    let dump = folder.path().join(format!("jit-{PID}.dump"));
    let map = folder.path().join(format!("perf-{PID}.map"));
    let mut lines = Map::new();
    lines.line(0x200000, 0x100, "mapped");
    lines.write(&map);
    for file in [&dump, &map] {
        let file = File::options().write(true).open(file).expect("a file");
        file.set_len(32 << 30).expect("a file system with holes");
    }
    let told = fits(&inject_in(folder.path()));
    assert!(told.contains("1 named") && told.contains("2 codes from 2 files"), "{told}");
    assert!(told.contains("holes, which contain no text"), "{told}");
    for verb in ["dump", "check"] {
        for file in [&dump, &map] {
            let mut command = jitscribe();
            command.arg(verb).arg(file);
            let done = in_kib(1 << 20, &command);
            // `check` finds what is wrong; neither is ended by the system.
            assert!(done.code.is_some_and(|code| code < 2), "{done:?}");
        }
    }
}

/// A dump with damage and 32 GiB of nothing behind it.
#[test]
fn damage_before_a_hole_is_searched_in_bounded_memory() {
    let folder = made(deep_inlines, 3);
    let mut made = Made::new(Recording::new());
    made.dump.load(0x10000000, CODE, "f", BEGIN + 10);
    // A record of no known type that is smaller than its head, and no record behind it.
    made.dump.raw(&[7, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    made.dump.raw(&[0xff; 100]);
    made.recording.sample(PID, 0x10000004, BEGIN + 100);
    made.write(folder.path());
    let dump = folder.path().join(format!("jit-{PID}.dump"));
    let file = File::options().write(true).open(dump).expect("a file");
    file.set_len(32 << 30).expect("a file system with holes");
    let told = fits(&inject_in(folder.path()));
    assert!(told.contains("1 named"), "{told}");
    assert!(told.contains("jitscribe check"), "{told}");
}

/// Lines of callgrind's whose names double: 1 KiB that asks for 2^30 bytes.
#[test]
fn callgrind_names_that_double() {
    let folder = TempDir::with_prefix("jitscribe-cost-").expect("a folder");
    let profile = folder.path().join("callgrind.out.1");
    let mut text = String::from(
        "# callgrind format\nversion: 1\ncreator: callgrind-3.19\npid: 1\ncmd: x\npart: 1\n\
         positions: instr line\nevents: Ir\n\nob=(1) /bin/x\nfl=(1) x.c\nfn=(1) a\n0x1 1 1\n",
    );
    for number in 2..=30 {
        text.push_str(&format!("fn=({number}) ({0})'({0})\n0x1 1 1\n", number - 1));
    }
    std::fs::write(&profile, text).expect("a profile");
    let mut command = jitscribe();
    command.arg("callgrind").arg(&profile).arg("-o").arg(folder.path().join("out"));
    let done = in_kib(1 << 20, &command);
    let said = done.stderr;
    assert_eq!(done.code, Some(1), "{said}");
    assert!(said.contains("line 48") && said.contains("256 KiB"), "{said}");
}
