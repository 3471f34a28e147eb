//! Logs of runtimes in formats of their own, by every reader: what PyPy wrote for a loop in `outer` and a bridge, into which `leaf`
//! is inlined. `tests/tests/live/pypy.rs` asks the same of PyPy itself.

use serde_json::json;

use crate::common::agent::{Agent, function};
use crate::common::{Bench, Running, expect_tool, wait_until};
use crate::inject::recording::Recording;
use crate::inject::scene::{MS, PID, Scene};

const LOG: &[u8] = include_bytes!("../../../../formats/pypy-log/tests/data/pypy-7.3.11.log");
/// The name of the log, which has the process.
const NAME: &str = "pypy-5000007.log";
/// Where the table in front of the loop is, from which offsets in the log count.
const LOOP: u64 = 0x7ff3_f40e_2950;
/// The same of the bridge.
const BRIDGE: u64 = 0x7ff3_f40e_2e80;

#[test]
fn dump_lists_it() {
    let done = Bench::with(NAME, LOG).ask(&["dump", NAME]).ok();
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert!(lines[0].contains("pid 5000007, times in ticks"), "{}", lines[0]);
    let row = |line: &str| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
    assert_eq!(
        lines[2..].iter().map(|line| row(line)).collect::<Vec<_>>(),
        [
            "7ff3f40e29d0 3f7 5000007 8 no outer [function, loop]",
            "7ff3f40e2ed0 1ef 5000007 5 no outer [function, bridge, 1 calls inlined]",
        ]
    );
}

#[test]
fn inject_finds_it_by_its_name() {
    let scene = Scene::new();
    scene.write(NAME, LOG);
    let mut recording = Recording::new();
    recording.comm(PID, PID, "pypy3", MS);
    recording.map(PID, LOOP & !0xffff..(LOOP & !0xffff) + 0x10000, "//anon", 2 * MS);
    for (time, address) in [(21, LOOP + 128), (22, LOOP + 520), (23, BRIDGE + 170)] {
        recording.sample(PID, address, time * MS);
    }
    let injected = scene.inject(&recording, &[]);
    assert_eq!(injected.counts().0, 3);
    assert_eq!(scene.names(), ["21 outer", "22 outer", "23 outer"]);
    let shown = scene.run("perf script -i out.data -F ip,srcline --full-source-path");
    let lines: Vec<&str> = shown.lines().filter(|line| line.contains("/src.py:")).collect();
    let line = |line: &str| line.rsplit(':').next().map(|line| line.trim().to_owned());
    let lines: Vec<String> = lines.into_iter().filter_map(line).collect();
    assert_eq!(lines, ["6", "10", "2"], "{shown}");
}

#[test]
fn the_valgrind_verbs_take_it_as_a_jitdump() {
    let profile = format!(
        "version: 1\npid: 5000007\npositions: instr line\nevents: Ir\n\n\
         ob=???\nfn={0:#x}\n{0:#x} 0 7\nfn={1:#x}\n{1:#x} 0 5\n",
        LOOP + 384,
        BRIDGE + 170,
    );
    let bench = Bench::with(NAME, LOG).and("callgrind.out.5000007", profile);
    let words = ["callgrind", "--jitdump", NAME, "callgrind.out.5000007", "-o", "named"];
    bench.ask(&words).ok();
    let named = String::from_utf8(bench.read("named")).expect("text");
    assert!(named.contains("outer") && named.contains("/src.py"), "{named}");
}

/// The path of the log is the user's choice: the process has it open.
#[test]
fn the_agent_finds_what_a_process_writes() {
    expect_tool("python3");
    let bench = Bench::with("made.log", LOG).and(
        "write.py",
        "import mmap, os, time\n\
         code = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)\n\
         log = open('any name', 'wb', 0)\n\
         other = open('access.log', 'w'); other.write('[12] text\\n'); other.flush()\n\
         both = open('both', 'w+'); both.write('[12] {jit\\n'); both.flush()\n\
         content = open('made.log', 'rb').read()\n\
         log.write(content[:3000])\n\
         print('begun', flush=True)\n\
         while not os.path.exists('go'): time.sleep(0.01)\n\
         log.write(content[3000:])\n\
         print('written', flush=True)\n\
         time.sleep(10000)\n",
    );
    let agent = Agent::start(&bench, "");
    let mut process = Running::start(&mut bench.command(&["python3", "write.py"]));
    process.wait_for_line("begun");
    let pid = process.pid();
    let at = |address| agent.look(pid, address);
    let is = |address, name: &str| function(&at(address)) == &json!(name);
    wait_until("the loop", || is(LOOP + 384, "outer"));
    assert!(at(BRIDGE + 170)["code"].is_null(), "{}", at(BRIDGE + 170));
    bench.write("go", "");
    process.wait_for_line("written");
    wait_until("the bridge", || is(BRIDGE + 170, "leaf"));
    let bridge = at(BRIDGE + 170);
    assert_eq!(bridge["code"]["tier"], "bridge", "{bridge}");
    let known = agent.processes().into_iter().find(|known| known["pid"] == pid).expect("known");
    let sources = known["sources"].as_array().expect("sources");
    assert_eq!(sources.len(), 1, "{known}");
    assert_eq!((&sources[0]["kind"], &sources[0]["codes"]), (&json!("jitdump"), &json!(2)));
}
