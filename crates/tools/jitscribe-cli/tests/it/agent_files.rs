//! `jitscribe agent` of processes that write perf maps and jitdumps: node, processes in containers, and processes that lie.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::common::agent::{Agent, function};
use crate::common::{
    Bench, Removed, Running, contained, expect_tool, only_child, removed_map, wait_until,
};
use code_index::FunctionName;
use jitdump::{CodeEvent, Dump};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use test_privilege::needs;

/// How long something may take that takes a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Compiles functions for ever, and says "running" when it has begun.
const SPIN: &str = "
    function spin(n) { return n < 2 ? n : spin(n - 1) + spin(n - 2) }
    console.log('running');
    let n = 0;
    setInterval(() => {
        const made = new Function('n', `let sum = 0; for (let i = 0; i < n; i++) sum += i % ${++n}; return sum`);
        for (let i = 0; i < 300; i++) made(100);
        spin(16);
    }, 10);";

fn node(bench: &Bench, option: &str) -> Running {
    expect_tool("node");
    bench.write("spin.js", SPIN);
    let mut node = Running::start(&mut bench.command(&["node", option, "spin.js"]));
    node.wait_for_line("running");
    node
}

/// Waits until a process is known to have a source of this kind with code.
fn wait_for_source(agent: &Agent, pid: u32, kind: &str) -> Value {
    let has_code = |source: &Value| source["kind"] == kind && source["codes"].as_u64() > Some(0);
    let has_source =
        |process: &Value| process["sources"].as_array().expect("sources").iter().any(has_code);
    let mut found = None;
    wait_until(&format!("a {kind} of {pid}"), || {
        // A process that is not known is examined because it is asked for.
        agent.look(pid, 1);
        let mut known = agent.processes().into_iter();
        found = known.find(|process| process["pid"] == pid && has_source(process));
        found.is_some()
    });
    found.expect("a process")
}

/// Compares the answers with a map: all lines that were in it before the question. The map grows on.
fn expect_answers_of_map(agent: &Agent, pid: u32, map: &Path) {
    let begun = Instant::now();
    loop {
        let text = fs::read(map).expect("the map");
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let pieces = perf_map::resolve(perf_map::entries(&text[..whole]).flatten());
        assert!(pieces.len() > 300, "{} pieces", pieces.len());
        let chosen: Vec<_> = pieces.iter().rev().step_by(1 + pieces.len() / 2000).collect();
        let asked: Vec<Value> =
            chosen.iter().map(|piece| json!({"pid": pid, "address": piece.address})).collect();
        let answers = agent.resolve(&asked);
        let later = fs::read(map).expect("the map");
        let later = perf_map::resolve(perf_map::entries(&later).flatten());
        let mut compared = 0;
        let mut differing = Vec::new();
        for (piece, answer) in chosen.iter().zip(&answers) {
            let entry = piece.entry;
            // What was replaced in the meantime may be answered either way.
            let now = perf_map::find(&later, piece.address);
            if now.is_none_or(|now| now.entry.offset != entry.offset) {
                continue;
            }
            compared += 1;
            let code = &answer["code"];
            let expected = json!([function_in(entry.name), entry.address, entry.size]);
            let found = json!([function(answer), code["address"], code["size"]]);
            if found != expected {
                differing.push((found, expected));
            }
            assert!(code["loaded"].is_null());
        }
        if differing.is_empty() && compared > 300 {
            return;
        }
        // On a busy machine it is answered before the file was read.
        assert!(
            begun.elapsed() < PATIENCE,
            "{} of {compared} differ: {:?}",
            differing.len(),
            differing.first()
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The function in a name: answers have neither marks of the tier nor the place in it.
fn function_in(name: &[u8]) -> String {
    String::from_utf8_lossy(&FunctionName::of(name).function).into_owned()
}

#[test]
fn the_map_of_node() {
    let bench = Bench::new();
    let agent = Agent::start(&bench, "");
    let node = node(&bench, "--perf-basic-prof");
    let map = removed_map(node.pid());
    wait_for_source(&agent, node.pid(), "perf-map");
    expect_answers_of_map(&agent, node.pid(), &map.0);
    // By the command, and once.
    let listed = bench.ask("agent --once").ok().stdout;
    let pid = format!("\"pid\":{},", node.pid());
    let line = listed.lines().find(|line| line.contains(&pid)).expect("the process");
    assert!(line.contains("\"kind\":\"perf-map\""), "{line}");
    // What was known is known when it has ended.
    let text = fs::read(&map.0).expect("the map");
    let first = perf_map::entries(&text).flatten().next().expect("a line");
    let pid = node.pid();
    drop(node);
    let answer = agent.look(pid, first.address);
    assert!(function(&answer).is_string(), "{answer}");
}

#[test]
fn the_dump_of_node() {
    let bench = Bench::new();
    let agent = Agent::start(&bench, "");
    let node = node(&bench, "--perf-prof");
    let pid = node.pid();
    wait_for_source(&agent, pid, "jitdump");
    let dump = bench.path(&format!("jit-{pid}.dump"));
    let begun = Instant::now();
    loop {
        let bytes = fs::read(&dump).expect("the dump");
        let parsed = Dump::parse(&bytes).expect("a dump");
        let loads: Vec<_> = parsed
            .codes()
            .filter_map(|event| match event {
                Ok(CodeEvent::Load(load)) if load.size > 0 => Some(load),
                _ => None,
            })
            .collect();
        // Each is asked for where one of its lines begins, at the time at which it was loaded.
        let asked = loads.iter().rev().take(4000).map(|load| {
            // Of several lines at one address, the last one counts.
            let line = load.lines().last().filter(|line| line.line > 0);
            (load, line, line.map_or(load.address, |line| line.address))
        });
        let asked: Vec<_> = asked.collect();
        let addresses = asked.iter().map(
            |(load, _, address)| json!({"pid": pid, "address": address, "time": load.timestamp}),
        );
        let answers = agent.resolve(&addresses.collect::<Vec<_>>());
        let (mut with_lines, mut differing) = (0, Vec::new());
        for ((load, line, address), answer) in asked.iter().zip(&answers) {
            let same_time = loads.iter().filter(|other| {
                other.timestamp == load.timestamp && (other.address..other.end()).contains(address)
            });
            if same_time.count() > 1 {
                continue;
            }
            let generation = loads
                .iter()
                .filter(|other| other.name == load.name && other.offset <= load.offset)
                .count();
            let name = function_in(load.name);
            let number = line.map(|line| line.line);
            let expected =
                json!([name, load.address, load.size, load.timestamp, generation, number]);
            let code = &answer["code"];
            let frame = &code["frames"][0];
            let number = line.map(|_| &frame["line"]);
            let found = ["address", "size", "loaded", "generation"].map(|key| &code[key]);
            let [address, size, loaded, generation] = found;
            let found = json!([frame["function"], address, size, loaded, generation, number]);
            if found != expected {
                differing.push((found, expected));
            } else if line.is_some() {
                with_lines += 1;
            }
        }
        if differing.is_empty() && with_lines > 20 && answers.len() > 300 {
            return;
        }
        // node writes its dump in large pieces, so lines may come late.
        assert!(
            begun.elapsed() < PATIENCE,
            "{with_lines} with lines, {} of {} differ: {:?}",
            differing.len(),
            answers.len(),
            differing.first()
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn the_map_of_a_container_under_its_inner_id() {
    needs!(Processes);
    expect_tool("node");
    let bench = Bench::new();
    let agent = Agent::start(&bench, "");
    bench.write("spin.js", SPIN);
    let script =
        "mount -t tmpfs none /tmp; cp ./spin.js /tmp; cd /tmp; exec node --perf-basic-prof spin.js";
    let mut command = Running::start(&mut bench.by(&contained(), &["sh", "-e", "-c", script]));
    command.wait_for_line("running");
    let pid = only_child(command.pid());
    // Of a process outside that had this id before.
    let outside = removed_map(pid);
    fs::write(&outside.0, "1000 10 stale\n").expect("written");
    assert_eq!(wait_for_source(&agent, pid, "perf-map")["inner_pid"], 1);
    let map = PathBuf::from(format!("/proc/{pid}/root/tmp/perf-1.map"));
    expect_answers_of_map(&agent, pid, &map);
    assert_ne!(function(&agent.look(pid, 0x1000)), "stale");
}

/// A process with executable memory, as a runtime has it. It runs each line that it gets as a statement of Python, and answers it.
struct Liar {
    running: Running,
    folder: PathBuf,
}

impl Liar {
    fn start(bench: &Bench, user: Option<&str>) -> Self {
        let script = "
import mmap, os, sys, time
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
pid = os.getpid(); path = '/tmp/perf-%d.map' % pid
print('running', flush=True)
while True:
    name = sys.argv[1] + '/do-%d' % pid
    if os.path.exists(name):
        text = open(name).read(); os.rename(name, name + '.begun')
        exec(text, globals()); open(name + '.done', 'w').close()
    time.sleep(0.01)
";
        let folder = bench.path("");
        let setpriv =
            user.map(|user| ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"]);
        let python = ["/usr/bin/python3", "-c", script];
        let words = [setpriv.as_ref().map_or(&[][..], |words| words), &python].concat();
        let mut running = Running::start(bench.command(&words).arg(&folder));
        running.wait_for_line("running");
        // Some earlier process with this id may have left one.
        drop(removed_map(running.pid()));
        Self { running, folder }
    }

    fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Writes a line into its map, which stays open as `f`.
    fn write_map(&mut self, line: &str) -> Removed {
        self.tell(&format!("f = open(path, 'w'); f.write('{line}\\n'); f.flush()"));
        removed_map(self.pid())
    }

    fn tell(&mut self, text: &str) {
        let name = self.folder.join(format!("do-{}", self.pid()));
        let done = self.folder.join(format!("do-{}.done", self.pid()));
        fs::write(self.folder.join("new"), text).expect("written");
        fs::rename(self.folder.join("new"), &name).expect("renamed");
        wait_until(text, || {
            assert!(self.running.is_running(), "it ended of {text}");
            done.exists()
        });
        fs::remove_file(&done).expect("removed");
    }
}

/// The map of a process is not read: the process stays unknown for a second after the map of another one was read.
fn expect_unread(bench: &Bench, agent: &Agent, pid: u32) {
    let mut control = Liar::start(bench, None);
    let _map = control.write_map("1000 10 control");
    wait_for_name(agent, control.pid(), 0x1000, "control");
    for _ in 0..10 {
        assert_eq!(agent.look(pid, 0x1000), json!({"unknown": "process"}));
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits until an address of a process has this name.
fn wait_for_name(agent: &Agent, pid: u32, address: u64, name: &str) {
    wait_until(name, || function(&agent.look(pid, address)) == name);
}

#[test]
fn files_that_are_replaced_truncated_and_written_again() {
    let bench = Bench::new();
    let agent = Agent::start(&bench, "");
    let mut process = Liar::start(&bench, None);
    let pid = process.pid();
    let _map = process.write_map("1000 10 first");
    wait_for_name(&agent, pid, 0x1000, "first");
    process.tell("f.write('2000 10 seco'); f.flush()");
    process.tell("f.write('nd\\n'); f.flush()");
    wait_for_name(&agent, pid, 0x2000, "second");
    process.tell("f.truncate(0); f.seek(0); f.write('2000 10 shorter\\n'); f.flush()");
    wait_for_name(&agent, pid, 0x2000, "shorter");
    process.tell("f.seek(0); f.write('3000 10 written over all\\n4000 10 more\\n'); f.flush()");
    wait_for_name(&agent, pid, 0x4000, "more");
    process.tell("g = open(path + '.new', 'w'); g.write('4000 10 replaced\\n'); g.close(); os.rename(path + '.new', path)");
    wait_for_name(&agent, pid, 0x4000, "replaced");
    for address in [0x1000, 0x2000, 0x3000] {
        assert_eq!(agent.look(pid, address), json!({"unknown": "code"}));
    }
    // A file that is gone is not forgotten: what it had is still true.
    process.tell("os.unlink(path)");
    wait_for_name(&agent, pid, 0x4000, "replaced");
}

#[test]
fn processes_that_lie_keep_no_other_from_being_answered() {
    let bench = Bench::new();
    let agent = Agent::start(&bench, "--interval 0.2");
    let mut honest = Liar::start(&bench, None);
    let _map = honest.write_map("1000 10 honest");
    wait_for_name(&agent, honest.pid(), 0x1000, "honest");
    let mut liars: Vec<Liar> = (0..6).map(|_| Liar::start(&bench, None)).collect();
    let maps: Vec<Removed> = liars.iter().map(|liar| removed_map(liar.pid())).collect();
    // Absurd addresses and sizes, and lines without end.
    fs::write(
        &maps[0].0,
        "0 ffffffffffffffff all\nffffffffffffffff ffffffffffffffff end\n123456789abcdef012 1 x\n1 zz\n",
    )
    .expect("written");
    liars[0].tell("f = open(path, 'ab'); f.write(b'a' * (40 << 20)); f.flush()");
    // A FIFO, and links.
    mknodat(CWD, &maps[1].0, FileType::Fifo, Mode::from_raw_mode(0o644), 0).expect("a FIFO");
    bench.write("other.map", "1000 10 through a link\n");
    symlink(bench.path("other.map"), &maps[2].0).expect("a link");
    // Truncated and written again all the time: here, by another process.
    let stop = bench.path("stop");
    let script =
        "while [ ! -e \"$1\" ]; do seq -f '%.0f000 10 x' 1 5000 > \"$2\"; : > \"$2\"; done";
    let mut shell = bench.command(&["sh", "-c", script, "sh"]);
    let shell = Running::start(shell.arg(&stop).arg(&maps[3].0));
    // A dump of garbage, and one whose record never ends; holes of a terabyte.
    liars[4].tell(
        "import struct, random
dump = os.path.join(sys.argv[1], 'jit-%d.dump' % pid)
f = open(dump, 'w+b')
f.write(struct.pack('<IIIIIIQQ', 0x4a695444, 1, 40, 62, 0, pid, 1, 0))
f.write(struct.pack('<IIQ', 0, 0xfffffff0, 1)); f.write(random.randbytes(30 << 20)); f.flush()
marker = mmap.mmap(f.fileno(), 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)",
    );
    File::create(&maps[5].0).and_then(|file| file.set_len(1 << 40)).expect("a hole");
    liars[5].tell(
        "import random
dump = os.path.join(sys.argv[1], 'jit-%d.dump' % pid)
f = open(dump, 'w+b'); f.write(random.randbytes(8 << 20)); f.flush()
marker = mmap.mmap(f.fileno(), 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)",
    );
    wait_for_name(&agent, liars[0].pid(), 0x9999, "all");
    wait_for_source(&agent, liars[3].pid(), "perf-map");
    // They are asked for together with the honest one, which goes on.
    let all: Vec<u32> = liars.iter().map(Liar::pid).collect();
    for n in 1..40_u64 {
        let address = 0x1000 + n * 0x1000;
        honest.tell(&format!("f.write('{address:x} 10 honest {n}\\n'); f.flush()"));
        let asked = all.iter().map(|pid| json!({"pid": pid, "address": 0x1000}));
        let asked: Vec<Value> =
            asked.chain([json!({"pid": honest.pid(), "address": 0x1000})]).collect();
        let answers = agent.resolve(&asked);
        assert_eq!(function(&answers[6]), "honest");
        for (at, name) in [(1, "FIFO"), (2, "link")] {
            assert!(answers[at]["code"].is_null(), "{name}: {}", answers[at]);
        }
        wait_for_name(&agent, honest.pid(), address, &format!("honest {n}"));
    }
    fs::write(&stop, "").expect("written");
    drop(shell);
    // What they claim takes no memory.
    let status = fs::read_to_string(format!("/proc/{}/status", agent.pid())).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(peak < 200 << 10, "{peak} kB");
}

#[test]
fn a_map_is_read_with_the_rights_of_the_process_and_believed_of_its_user() {
    needs!(OtherUsers);
    let bench = Bench::new();
    fs::set_permissions(bench.path(""), PermissionsExt::from_mode(0o777)).expect("set");
    let agent = Agent::start(&bench, "");
    let mut theirs = Liar::start(&bench, Some("65534"));
    theirs.tell("os.umask(0o077)");
    let _map = theirs.write_map("1000 10 own");
    wait_for_name(&agent, theirs.pid(), 0x1000, "own");
    // One of another user than root and the process's own.
    let mut process = Liar::start(&bench, None);
    let _map = removed_map(process.pid());
    process.tell("f = open(path, 'w'); f.write('1000 10 forged\\n'); f.flush(); os.chown(path, 65534, 65534)");
    expect_unread(&bench, &agent, process.pid());
    // It is the owner that counts.
    process.tell("os.chown(path, 0, 0)");
    wait_for_name(&agent, process.pid(), 0x1000, "forged");
}

#[test]
fn a_map_of_an_earlier_process_is_not_read() {
    let bench = Bench::new();
    let agent = Agent::start(&bench, "");
    let mut process = Liar::start(&bench, None);
    let _map = removed_map(process.pid());
    process.tell(
        "f = open(path, 'w'); f.write('1000 10 stale\\n'); f.flush(); os.utime(path, (1000, 1000))",
    );
    expect_unread(&bench, &agent, process.pid());
    // Appended to by this process, it is its own.
    process.tell("f.write('2000 10 new\\n'); f.flush()");
    wait_for_name(&agent, process.pid(), 0x2000, "new");
}
