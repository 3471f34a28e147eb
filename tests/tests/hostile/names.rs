//! Names that command terminals, in every place that comes from outside: nothing but printable characters and newlines reaches
//! standard output and standard error, by no verb.
//!
//! The list of dangerous characters is repeated here, and not taken from the code under test.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use end_to_end::jitscribe::jitscribe;
use end_to_end::synthetic::{Dump, Recording, item};
use end_to_end::tool::{crate_dir, output, run, tool};
use jitscribe::{Code, Inlined, Line, Scribe};
use serde_json::Value;
use tempfile::TempDir;
use test_privilege::needs;

const PID: u32 = 999_999_321;
const SECOND: u64 = 1_000_000_000;
/// Where the made code is.
const BASE: u64 = 0x10_0000;
const CODE: [u8; 32] = {
    let mut code = [0x90; 32];
    code[31] = 0xc3;
    code
};

/// A character that a terminal must not get; a newline ends lines.
fn is_dangerous(c: char) -> bool {
    // Nearly all characters, and there are millions: decided first.
    if (' '..='~').contains(&c) {
        return false;
    }
    let code = u32::from(c);
    let is_control = code < 0x20 && c != '\n' || (0x7f..0xa0).contains(&code);
    let bidi = [0x61c, 0x200e, 0x200f].contains(&code)
        || (0x202a..=0x202e).contains(&code)
        || (0x2066..=0x2069).contains(&code);
    is_control || bidi || [0x2028, 0x2029, 0x200b, 0xfeff].contains(&code)
}

/// Panics unless this is text that is harmless on every terminal.
#[track_caller]
fn assert_printable(what: &str, text: &[u8]) {
    let show = |at: usize| {
        let around = at.saturating_sub(60)..text.len().min(at + 60);
        format!("{what}, at byte {at}: {}", text[around].escape_ascii())
    };
    match std::str::from_utf8(text) {
        Ok(text) => {
            if let Some((at, _)) = text.char_indices().find(|&(_, c)| is_dangerous(c)) {
                panic!("{}", show(at));
            }
        }
        Err(error) => panic!("not UTF-8: {}", show(error.valid_up_to())),
    }
}

/// The same of a file for other tools, where a byte that is not UTF-8 may stay if it is no control character.
#[track_caller]
fn assert_harmless(what: &str, text: &[u8]) {
    for chunk in text.utf8_chunks() {
        let is_tab_or_harmless = |c: char| c == '\t' || !is_dangerous(c);
        assert!(chunk.valid().chars().all(is_tab_or_harmless), "{what}: {:?}", chunk.valid());
        assert!(
            !chunk.invalid().iter().any(|byte| (0x80..0xa0).contains(byte)),
            "{what}: {chunk:?}"
        );
    }
}

/// Runs the command; whether it succeeds is another question.
#[track_caller]
fn shown(command: &mut Command) -> Output {
    let done = output(command);
    let what = format!("{command:?}");
    assert_printable(&format!("stdout of {what}"), &done.stdout);
    assert_printable(&format!("stderr of {what}"), &done.stderr);
    // By a signal, or a panic.
    assert!(done.status.code().is_some_and(|code| code < 100), "{what}: {done:?}");
    done
}

#[track_caller]
fn assert_done(done: &Output) {
    assert!(done.status.success(), "{}", done.stderr.escape_ascii());
}

/// What a command with `--json` reports.
#[track_caller]
fn json(done: &Output) -> Value {
    assert_done(done);
    serde_json::from_slice(&done.stdout).expect("JSON")
}

/// `jitscribe inject --allow-empty` of a recording.
fn inject(data: &Path) -> Command {
    let mut command = jitscribe();
    command.args(["inject", "--allow-empty", "-i"]).arg(data);
    command
}

/// Random numbers, the same in every run (splitmix64).
struct Seeded(u64);

impl Seeded {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

/// Hostile names without NUL.
fn names() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [
        &b"a\x1b]0;owned\x07b"[..],
        b"line\nfeed\r\x0b\x0c",
        b"'; touch /tmp/owned; '",
        b"\xff\xfe \x9b31m \x90q\x9c",
        b"../../etc/passwd",
        b"a\tb",
        "\u{202e}gnp\u{2066} \u{200b}\u{feff}\u{2028}\u{2029}\u{61c}".as_bytes(),
        b"<script>alert(1)</script>",
        b"\x7f\x9b31m",
        "\u{9b}31m\u{85}\u{9d}0;owned\u{9c}".as_bytes(),
        b"jitscribe: error: not so\njitscribe: error: not so",
        b"--objdump=/tmp/owned",
        b"\xe2\x80",
        b"%s%n{}$(touch /tmp/owned)`touch /tmp/owned`!!",
        // Not hostile at all, and to stay as they are.
        "größe 数 दिल्ली 👩\u{200d}🚀".as_bytes(),
    ]
    .map(<[u8]>::to_vec)
    .to_vec();
    names.push((1..=0xff).collect());
    let pieces: [&[u8]; 12] = [
        b"\x1b[2J",
        b"\x1b]8;;http://x\x1b\\",
        b"\x9b",
        "\u{202e}".as_bytes(),
        "\u{2069}".as_bytes(),
        b"\n",
        b"\r",
        b"\xc2",
        b"fib",
        b" ",
        "ü".as_bytes(),
        b"'",
    ];
    let mut random = Seeded(14);
    for _ in 0..12 {
        let length = 1 + random.next(8);
        let name = (0..length).flat_map(|_| match random.next(3) {
            0 => vec![u8::try_from(1 + random.next(255)).expect("a byte")],
            _ => pieces[random.next(12) as usize].to_vec(),
        });
        names.push(name.collect());
    }
    names
}

/// As names of folders.
fn file_names() -> Vec<Vec<u8>> {
    let file = |name: Vec<u8>| -> Vec<u8> {
        name.into_iter().filter(|byte| *byte != b'/').take(200).collect()
    };
    names().into_iter().map(file).filter(|name| *name != b"..").collect()
}

fn folder() -> TempDir {
    TempDir::with_prefix("jitscribe-names-").expect("a temporary folder")
}

/// A dump with a code of each name, whose source files and inlined calls are called so as well.
fn dump(names: &[Vec<u8>]) -> Dump {
    let mut dump = Dump::new(PID, SECOND);
    for (number, name) in names.iter().enumerate() {
        let number = number as u64;
        let at = BASE + number * 64;
        // Of source files the made dumps have text alone.
        let file = String::from_utf8_lossy(name);
        dump.lines(at, &[(at, 7, 1, &file), (at + 16, 8, 1, "b.js")], SECOND + 10 + number);
        dump.load(at, &CODE, name, SECOND + 10 + number);
        let calls: Vec<u8> = [1, 1, u32::MAX, 1, 1, 1, 0, 16]
            .iter()
            .flat_map(|word: &u32| word.to_le_bytes())
            .collect();
        let calls = [&calls[..], name, b"\0", name, b"\0"].concat();
        // A tier, and an inlined call.
        let items = [item(3, name), item(5, &calls)].concat();
        dump.without_bytes(at + 0x10_0000, 32, name, SECOND + 10 + number, 0, &items);
    }
    dump
}

/// A recording in which a process of this name ran in all codes of the dump at this path.
fn recording(process: &[u8], marker: &[u8], codes: usize) -> Recording {
    let mut recording = Recording::new();
    recording.comm(PID, process, SECOND, true);
    recording.map(PID, 0x10000, 1 << 40, "//anon", SECOND + 1);
    recording.map(PID, 0x7fff_0000_0000, 4096, marker, SECOND + 2);
    for code in 0..codes as u64 {
        for sample in 0..=code {
            let time = SECOND + 1000 + code * 1000 + sample;
            recording.sample(PID, BASE + code * 64 + 4, time);
            recording.sample(PID, BASE + 0x10_0000 + code * 64 + 4, time);
        }
    }
    recording
}

/// What `perf script` prints, process names left out: those perf has from the recording.
fn script(recording: &Path) -> Vec<u8> {
    let mut perf = tool("perf");
    output(perf.args(["script", "-F", "ip,sym", "-i"]).arg(recording)).stdout
}

#[test]
fn process_names_and_markers_07() {
    let dir = folder();
    for (number, name) in names().iter().enumerate() {
        // The dump is missing, and the message has the process and the path.
        let marker = [b"/nonesuch/", &name[..], b"/jit-1.dump"].concat();
        let data = dir.path().join("p.data");
        recording(name, &marker, 1).write(&data);
        let out = dir.path().join(format!("q{number}.data"));
        let done = shown(inject(&data).arg("-o").arg(&out).arg("--json"));
        assert!(json(&done)["warnings"].is_array());
        let said = String::from_utf8(done.stderr).expect("UTF-8");
        assert!(said.contains("is not there; specify where"), "{said}");
        // No name begins a line of its own.
        assert!(said.lines().all(|line| !line.starts_with("jitscribe: error")), "{said}");
        let lines = |text| said.lines().filter(|line| line.contains(text)).count();
        assert_eq!(lines("is not there; specify where"), 1, "{said}");
        assert_eq!(lines("it is not there any more"), 1, "{said}");
        assert_eq!(lines("is not there"), 2, "{said}");
    }
}

#[test]
fn names_of_functions_files_and_inlined_calls_14() {
    let dir = folder();
    let mut names = names();
    names.push(b"\x1bx".repeat(1 << 19));
    let path = dir.path().join(format!("jit-{PID}.dump"));
    dump(&names).write(&path);
    let data = dir.path().join("p.data");
    recording(b"jit", path.as_os_str().as_bytes(), names.len()).write(&data);
    let at = |name: &str| dir.path().join(name);

    let listed = shown(jitscribe().arg("dump").arg(&path));
    assert_done(&listed);
    let listing = String::from_utf8(listed.stdout).expect("UTF-8");
    // A line each, and names that are not hostile stay.
    assert_eq!(listing.lines().count(), 2 + 2 * names.len());
    assert!(listing.contains("größe 数 दिल्ली 👩\u{200d}🚀"));
    let events = shown(jitscribe().args(["dump", "--json"]).arg(&path));
    assert_done(&events);
    let told: Vec<Value> = String::from_utf8(events.stdout)
        .expect("UTF-8")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .filter(|event: &Value| event["event"] == "load")
        .collect();
    for (pair, name) in told.chunks(2).zip(&names) {
        for load in pair {
            assert_eq!(load["name"].as_str(), Some(&*String::from_utf8_lossy(name)));
        }
    }
    assert_eq!(told.len(), 2 * names.len());

    let map = shown(jitscribe().args(["dump", "--perf-map"]).arg(&path));
    assert_done(&map);
    assert_eq!(map.stdout.iter().filter(|byte| **byte == b'\n').count(), 2 * names.len());
    fs::write(at("perf-1.map"), &map.stdout).expect("a file");
    read_in_every_way(&at("perf-1.map"));
    read_in_every_way(&path);
    for option in ["--elf", "--pe", "--macho", "--jitdump"] {
        assert_done(&shown(jitscribe().args(["dump", option]).arg(at(option)).arg(&path)));
    }

    let out = at("out\x1b[2J\n.data");
    let report = json(&shown(inject(&data).arg("-o").arg(&out).arg("--json")));
    assert_eq!(report["top"].as_array().map(Vec::len), Some(10), "{report}");
    let script = script(&out);
    assert_harmless("perf script", &script);
    let text = String::from_utf8_lossy(&script);
    assert!(text.contains("größe 数 दिल्ली 👩\u{200d}🚀"), "{text}");
    assert!(text.contains(r"a\x1b]0;owned\x07b") && text.contains(r"\u202egnp\u2066"), "{text}");
    // What perf shows of lines comes out of the images as well.
    for image in fs::read_dir(at("out\x1b[2J\n.data.jit")).expect("the images") {
        let image = image.expect("an entry").path();
        if image.extension() != Some(OsStr::new("elf")) {
            continue;
        }
        let mut objdump = tool("objdump");
        let lines = output(objdump.args(["--dwarf=rawline,info"]).arg(&image)).stdout;
        // It begins with the path.
        let own = image.as_os_str().as_bytes();
        let lines = lines.strip_prefix(&[b"\n", own].concat()[..]).unwrap_or(&lines);
        assert_harmless("objdump", lines);
    }
}

/// Asserts that nothing which reads a file of code shows what a terminal would act upon.
fn read_in_every_way(file: &Path) {
    for arguments in [
        &["dump"][..],
        &["dump", "--json"],
        &["dump", "--perf-map"],
        &["check"],
        &["check", "--json"],
    ] {
        shown(jitscribe().args(arguments).arg(file));
    }
}

#[test]
fn damaged_files_are_quoted_escaped() {
    let dir = folder();
    let names = names();
    let whole = dump(&names).to_bytes();
    let path = dir.path().join(format!("jit-{PID}.dump"));
    let map = dir.path().join(format!("perf-{PID}.map"));
    let mut random = Seeded(15);
    for _ in 0..12 {
        let mut damaged = whole.clone();
        for _ in 0..1 + random.next(20) {
            let at = 40 + random.next(damaged.len() as u64 - 40) as usize;
            damaged[at] = random.next(256) as u8;
        }
        damaged.truncate(damaged.len() - random.next(2000) as usize);
        fs::write(&path, &damaged).expect("a file");
        read_in_every_way(&path);
    }
    for name in &names {
        let first = [b"100000 40 ", &name[..], b"\nzz", name, b" 10 ", name];
        let then = [b"\n200000 ", &name[..], b" a\n300000 ~ b"];
        fs::write(&map, [first.concat(), then.concat()].concat()).expect("a file");
        read_in_every_way(&map);
        let hostile = dir.path().join("hostile.data");
        fs::write(&hostile, name).expect("a file");
        for verb in
            ["dump", "check", "inject", "callgrind", "memcheck", "massif", "dhat", "cachegrind"]
        {
            let mut command = jitscribe();
            command.arg(verb).arg("--json");
            command.args((verb == "inject").then_some("-i")).arg(&hostile);
            command.args(matches!(verb, "inject" | "callgrind" | "memcheck").then_some("-f"));
            shown(&mut command);
        }
    }
}

#[test]
fn folders_of_dumps() {
    let dir = folder();
    for (number, name) in file_names().iter().enumerate() {
        let at = dir.path().join(OsStr::from_bytes(name)).join(number.to_string());
        fs::create_dir_all(&at).expect("a folder");
        let path = at.join(format!("jit-{PID}.dump"));
        let mut whole = dump(&names()[..3]).to_bytes();
        whole.truncate(whole.len() - 5);
        fs::write(&path, whole).expect("a file");
        // Its last line cannot be read.
        let map = at.join(format!("perf-{PID}.map"));
        fs::write(&map, b"100000 20 fib\nx\n").expect("a file");
        let data = at.join("p.data");
        recording(name, path.as_os_str().as_bytes(), 3).write(&data);

        for arguments in [&["dump"][..], &["check"], &["check", "--json"]] {
            shown(jitscribe().args(arguments).arg(&path));
        }
        let report = json(&shown(inject(&data).arg("--json")));
        assert_eq!(report["sources"].as_array().map(Vec::len), Some(2), "{report}");
        // Once more: it exists already.
        assert!(!shown(jitscribe().args(["inject", "-i"]).arg(&data)).status.success());
        assert_done(&shown(jitscribe().args(["dump", "--elf"]).arg(at.join("elf")).arg(&path)));
        shown(jitscribe().args(["dump", "--core"]).arg(&path));
        shown(jitscribe().args(["inject", "-i"]).arg(at.join("nonesuch")));
        // Of no process in the recording.
        let option = [b"--perf-map=77=", map.as_os_str().as_bytes()].concat();
        let out = at.join("out.data");
        let mut inject = jitscribe();
        inject.args(["inject", "-i"]).arg(&data).arg("-o").arg(out).arg(OsStr::from_bytes(&option));
        shown(&mut inject);
    }
}

/// A profile of callgrind's with the codes of the dump.
fn profile(codes: usize) -> String {
    let mut profile = format!(
        "# callgrind format\nversion: 1\npid: {PID}\npositions: instr line\nevents: Ir\n\nob=(1) ???\nfl=(1) ???\n"
    );
    for code in 0..codes as u64 {
        let at = BASE + code * 64;
        profile.push_str(&format!("fn=({}) {at:#018x}\n{at:#x} 0 5\n\n", code + 1));
    }
    profile.push_str(&format!("totals: {}\n", codes * 5));
    profile
}

#[test]
fn logs_of_valgrind_s() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    let names = names();
    let dump_path = at(&format!("jit-{PID}.dump"));
    dump(&names).write(&dump_path);
    let map_path = at(&format!("perf-{PID}.map"));
    let lines = names.iter().enumerate().map(|(number, name)| {
        // A newline would be the end of the line here.
        let name: Vec<u8> =
            name.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }).collect();
        [format!("{:x} 20 ", BASE + number as u64 * 64).as_bytes(), &name, b"\n"].concat()
    });
    fs::write(&map_path, lines.collect::<Vec<_>>().concat()).expect("a file");

    let addresses = |form: fn(u64) -> String| -> String {
        (0..names.len() as u64).map(|code| form(BASE + code * 64 + 4)).collect()
    };
    let memcheck = format!(
        "=={PID}== Invalid read\n{}",
        addresses(|at| format!("=={PID}==    at 0x{at:X}: ???\n"))
    );
    let xml = format!(
        "<?xml version=\"1.0\"?>\n\n<valgrindoutput>\n<pid>{PID}</pid>\n<error>\n  <stack>\n{}  </stack>\n</error>\n</valgrindoutput>\n",
        addresses(|at| format!("    <frame>\n      <ip>0x{at:X}</ip>\n    </frame>\n"))
    );
    let massif = format!(
        "desc: x\ncmd: x\ntime_unit: i\n#-----------\nsnapshot=0\n#-----------\ntime=0\nmem_heap_B=1\nmem_heap_extra_B=0\n\
         mem_stacks_B=0\nheap_tree=detailed\nn{}: 1 (heap allocation functions) malloc\n{}",
        names.len(),
        addresses(|at| format!(" n0: 1 0x{at:X}: ???\n"))
    );
    let dhat = format!(
        "{{\"dhatFileVersion\":2,\"mode\":\"heap\",\"verb\":\"Allocated\",\"pid\":{PID},\"cmd\":\"x\",\"te\":1,\"tg\":1,\n\
         \"pps\":[{{\"tb\":1,\"tbk\":1,\"fs\":[1]}}],\n\"ftbl\":[\"[root]\"{}]}}\n",
        addresses(|at| format!(",\"0x{at:X}: ???\""))
    );
    for (verb, name, text) in [
        ("callgrind", "callgrind.out", profile(names.len())),
        ("memcheck", "memcheck.log", memcheck),
        ("memcheck", "memcheck.xml", xml),
        ("massif", "massif.out", massif),
        ("dhat", "dhat.out", dhat),
    ] {
        let path = at(&format!("{name}.{PID}"));
        fs::write(&path, text).expect("a file");
        for source in [&dump_path, &map_path] {
            let option = if *source == dump_path { "--jitdump" } else { "--perf-map" };
            let mut command = jitscribe();
            command.arg(verb).arg(&path).arg(option).arg(source).args(["--force", "--json"]);
            let report = json(&shown(&mut command));
            let written = fs::read(report["output"].as_str().expect("a path")).expect("a file");
            let text = String::from_utf8_lossy(&written);
            assert!(text.contains("größe 数 दिल्ली 👩\u{200d}🚀"), "{verb} {option}: {text}");
            assert_harmless(verb, &written);
            // The same on standard output.
            let mut command = jitscribe();
            command.arg(verb).arg(&path).arg(option).arg(source).args(["-o", "-", "--force"]);
            let done = output(&mut command);
            assert_done(&done);
            assert_harmless(verb, &done.stdout);
            assert_printable(verb, &done.stderr);
        }
    }
    // Names that cachegrind read of a program are not shown; its own words for events are.
    for name in &names {
        let name: Vec<u8> = name.iter().copied().filter(|byte| !b" \n".contains(byte)).collect();
        let path = at("cachegrind.out.1");
        let head = [b"desc: x\ncmd: ", &name[..], b"\nevents: ", &name].concat();
        let profile = [&head, &b"\nfl=???\nfn=???\n0 5\nsummary: 5\n"[..]].concat();
        fs::write(&path, profile).expect("a file");
        shown(jitscribe().arg("cachegrind").arg(&path));
        shown(jitscribe().args(["cachegrind", "--json"]).arg(&path));
    }
}

/// Runs the command on a terminal, and gives all that it prints there.
fn on_terminal(command: &Command) -> Vec<u8> {
    // No words of ours need quotes.
    let words: Vec<&str> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_str().expect("UTF-8"))
        .collect();
    let mut terminal = tool("script");
    run(terminal.args(["-qec", &words.join(" "), "/dev/null"]))
        .stdout
        .replace("\r\n", "\n")
        .into_bytes()
}

/// What is a file's content stays as it is in a pipe; on a terminal it is escaped.
#[test]
fn content_on_a_terminal() {
    let dir = folder();
    let path = dir.path().join("memcheck.log");
    let log = "==7== Command: \x1b]0;owned\x07 \u{9b}31m\n==7== größe\ttab\n";
    fs::write(&path, log).expect("a file");
    let mut command = jitscribe();
    command.arg("memcheck").arg(&path).args(["-o", "-"]);
    let piped = output(&mut command);
    assert_done(&piped);
    assert_eq!(piped.stdout, log.as_bytes());
    let shown = String::from_utf8(on_terminal(&command)).expect("UTF-8");
    assert!(shown.contains("Command: \\x1b]0;owned\\x07 \\u{9b}31m\n==7== größe"), "{shown:?}");
    assert_printable("a terminal", shown.replace('\t', " ").as_bytes());
}

/// A process that runs, with hostile names in its code log.
#[test]
fn code_logs_of_running_processes() {
    let scribe = Scribe::builder().build();
    assert!(scribe.is_on());
    let names = names();
    let memory = vec![0x90; 64 * names.len()];
    let mut codes = Vec::new();
    for (name, memory) in names.iter().zip(memory.chunks(64)) {
        let text = String::from_utf8_lossy(name).into_owned();
        let lines = [Line::new(0, &text, 7).column(1)];
        let inlined = [Inlined::new(&text, &[0..4, 6..8]).called_from(&text, 1)];
        let code = Code::new(memory).named_bytes(name).tier(&text).lines(&lines).inlined(&inlined);
        codes.push(scribe.load(&code));
    }
    let dir = folder();
    let pid = std::process::id().to_string();
    for arguments in [&["dump"][..], &["dump", "--json"], &["dump", "--perf-map"]] {
        let done = shown(jitscribe().args(arguments).args(["-p", &pid]));
        assert_done(&done);
        assert!(String::from_utf8_lossy(&done.stdout).contains("größe 数"), "{arguments:?}");
    }
    assert_done(&shown(
        jitscribe().args(["dump", "-p", &pid, "--elf"]).arg(dir.path().join("elf")),
    ));
    for arguments in [&["status"][..], &["status", "--json"]] {
        assert_done(&shown(jitscribe().args(["ctl", "-p", &pid]).args(arguments)));
    }
}

/// The program of `workloads/hostile/names.c`.
fn program(dir: &Path) -> PathBuf {
    let program = dir.join("names");
    let source = crate_dir().join("workloads/hostile/names.c");
    run(tool("cc").args(["-O1", "-o"]).arg(&program).arg(source));
    program
}

#[test]
fn the_summary_of_record_15() {
    needs!(Perf);
    let dir = folder();
    let program = program(dir.path());
    let mut record = jitscribe();
    record.current_dir(dir.path()).args(["record", "-e", "cpu-clock", "-o", "x.data", "--"]);
    let done = shown(record.arg(&program).arg(dir.path()).arg("2"));
    assert_done(&done);
    let said = String::from_utf8(done.stderr).expect("UTF-8");
    let name = r"a\x1b]0;owned\x07\x1b[31mRED\x0ab\u009b1m\u202egnp";
    let top = said.lines().find(|line| line.contains(" %  ")).expect("the first function");
    assert!(said.lines().any(|line| line.ends_with(name)), "{said}");
    assert!(!top.is_empty());
    // What is advised names it as perf does, and works.
    let advised =
        said.lines().find(|line| line.contains("perf annotate")).expect("an advice").trim();
    let mut shell = tool("bash");
    let annotated = run(shell.current_dir(dir.path()).arg("-c").arg(format!("{advised} --stdio")));
    assert!(annotated.stdout.contains("dec"), "{advised}: {annotated:?}");
    // And the command that takes away what the program left takes away that, and no more.
    let remove =
        said.lines().find_map(|line| line.strip_prefix("no longer needed: ")).expect("an advice");
    let before = dumps(dir.path());
    assert_eq!(before.len(), 1, "{before:?}");
    run(tool("bash").current_dir(dir.path()).arg("-c").arg(remove));
    assert_eq!(dumps(dir.path()), Vec::<PathBuf>::new(), "{remove}");
    assert!(dir.path().join("x.data").is_file());
}

/// The dumps in the folders of a folder.
fn dumps(dir: &Path) -> Vec<PathBuf> {
    let entries = |dir: &Path| {
        fs::read_dir(dir).expect("a folder").flatten().map(|entry| entry.path()).collect()
    };
    let mut dumps: Vec<PathBuf> = entries(dir);
    dumps.retain(|path| path.is_dir());
    let mut dumps: Vec<PathBuf> =
        dumps.iter().flat_map(|dir| -> Vec<PathBuf> { entries(dir) }).collect();
    dumps.retain(|path| path.extension() == Some(OsStr::new("dump")));
    dumps
}

/// Another user has put a link or a folder at the path of the images, in a folder that others may write to.
#[test]
fn image_folders_of_strangers_18() {
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    let shared = folder();
    fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o1777)).expect("root or owner");
    let at = |name: &str| shared.path().join(name);
    let elsewhere = at("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    let dump_path = at(&format!("jit-{PID}.dump"));
    dump(&names()).write(&dump_path);
    recording(b"jit", dump_path.as_os_str().as_bytes(), 3).write(&at("p.data"));
    let inject =
        |out: &str, more: &[&str]| shown(inject(&at("p.data")).arg("-o").arg(at(out)).args(more));
    let is_empty = |path: &Path| fs::read_dir(path).expect("a folder").next().is_none();

    // Our own link is followed.
    symlink(&elsewhere, at("own.jit")).expect("a link");
    assert_done(&inject("own", &[]));
    assert!(!is_empty(&elsewhere));
    fs::remove_dir_all(&elsewhere).expect("our folder");
    fs::create_dir(&elsewhere).expect("a folder");

    symlink(&elsewhere, at("out.jit")).expect("a link");
    // Only root makes links of another user's.
    needs!(OtherUsers);
    lchown(at("out.jit"), Some(65534), Some(65534)).expect("root");
    fs::create_dir(at("strange.jit")).expect("a folder");
    std::os::unix::fs::chown(at("strange.jit"), Some(65534), Some(65534)).expect("root");
    for force in [&[][..], &["--force"]] {
        for out in ["out", "strange"] {
            let done = inject(out, force);
            assert_eq!(done.status.code(), Some(1));
            let said = String::from_utf8(done.stderr).expect("UTF-8");
            assert!(said.contains("belongs to another user (uid 65534)"), "{said}");
            assert!(!at(out).exists(), "nothing is written");
        }
        // Named, with a slash behind it too.
        for named in ["out.jit", "out.jit/", "strange.jit"] {
            let done = inject(
                "named",
                &[force, &["--image-dir", at(named).to_str().expect("UTF-8")]].concat(),
            );
            assert_eq!(done.status.code(), Some(1), "{named}");
            let mut dump = jitscribe();
            dump.args(["dump", "--elf"]).arg(at(named)).args(force).arg(&dump_path);
            assert_eq!(shown(&mut dump).status.code(), Some(1), "{named}");
        }
    }
    assert!(is_empty(&elsewhere) && is_empty(&at("strange.jit")));
}
