//! `jitscribe agent`: finds processes with a code log, and answers which code was at an address.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use crate::common::agent::{Agent, function};
use crate::common::announcer::{program, started_by, started_with};
use crate::common::{Bench, contained, expect_tool, interrupt, only_child};
use serde_json::{Value, json};
use test_privilege::needs;

#[test]
fn what_a_running_process_announces_is_answered_at_once() {
    let bench = Bench::new();
    let agent = Agent::start(&bench, "");
    let mut process = started_with("first");
    let pid = process.pid();
    let answer = agent.code_at(pid, 4106);
    let code = &answer["code"];
    assert_eq!(code["frames"], json!([{"function": "first", "file": "/src/a.lang", "line": 8}]));
    assert_eq!(code["symbol"], "first");
    assert_eq!((&code["tier"], &code["generation"]), (&json!("baseline"), &json!(1)), "{answer}");
    // From now on it is known, and an answer contains what was announced before the question.
    for n in 2..30_u64 {
        process.load(n << 12, 16, &format!("code {n}"));
        assert_eq!(agent.function_at(pid, n << 12), format!("code {n}"));
    }
    // What was there before is known by the time.
    let loaded = agent.code_at(pid, 4096)["code"]["loaded"].as_u64().expect("a time");
    process.tell("free 0");
    process.load(4096, 16, "second");
    let at = |time: u64| json!({"pid": pid, "address": 4096, "time": time});
    let [then, now] = agent.resolve(&[at(loaded), at(u64::MAX)]).try_into().expect("two answers");
    assert_eq!((function(&then), function(&now)), (&json!("first"), &json!("second")));
    assert!(then["code"]["unloaded"].as_u64() > Some(loaded));
    // By the command.
    let words = format!("agent ask {pid} 0x1008 0x999000 --socket agent.sock");
    let answers = bench.ask(&words).ok().stdout;
    let lines: Vec<&str> = answers.lines().collect();
    assert_eq!(lines[0], "0x1008  second  /src/a.lang:8");
    assert!(lines[1].starts_with("    function of 16 bytes at 0x1000, tier baseline"), "{answers}");
    assert_eq!(lines[2], "0x999000  no known code");
    // What it announced last is known when it has ended.
    drop(process);
    assert_eq!(agent.function_at(pid, 4096), "second");
}

#[test]
fn an_agent_that_is_killed_is_replaced_by_another() {
    let bench = Bench::new();
    let process = started_with("code");
    for _ in 0..3 {
        let agent = Agent::start(&bench, "");
        assert_eq!(agent.code_at(process.pid(), 4096)["code"]["generation"], 1);
        // A second one does not take its place.
        bench.ask("agent --socket agent.sock").ends(1).says("another agent serves");
        // Dropping it is kill -9: the socket stays behind.
        drop(agent);
        assert!(bench.path("agent.sock").exists());
    }
    bench.ask("agent ask 1 1 --socket agent.sock").ends(1).says("jitscribe agent --socket");
    // One that is asked to end removes it, if it may: one that was started as root may not.
    let mut agent = Agent::start(&bench, "");
    interrupt(agent.pid());
    assert_eq!(agent.running.code(), 0);
    assert_eq!(bench.path("agent.sock").exists(), rustix::process::geteuid().is_root());
}

#[test]
fn once_lists_what_there_is() {
    let bench = Bench::new();
    let process = started_with("code");
    let done = bench.ask("agent --once").ok();
    let lines = done.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let found = lines.into_iter().find(|info| info["pid"] == process.pid()).expect("it is there");
    assert_eq!(found["sources"], json!([{"kind": "code-log", "codes": 1}]));
    done.says("have JIT-compiled code");
}

#[test]
fn requests_that_are_none_are_refused_and_others_answered() {
    let bench = Bench::new();
    let agent = Agent::start(&bench, "");
    let stream = UnixStream::connect(&agent.socket).expect("connected");
    let mut reader = BufReader::new(&stream);
    let mut answer = || {
        let mut line = String::new();
        reader.read_line(&mut line).expect("an answer");
        serde_json::from_str::<Value>(&line).expect("JSON")
    };
    (&stream).write_all(b"nonsense\n\n{\"version\":2,\"id\":3}\n").expect("sent");
    assert!(answer()["error"].as_str().expect("a reason").starts_with("not a request"));
    assert_eq!(answer()["error"], "version 2 is not supported; this is 1");
    // In pieces, and several at once.
    (&stream).write_all(b"{\"version\":1,\"id\":8,").expect("sent");
    let rest = b"\"ask\":\"processes\"}\n{\"version\":1,\"id\":9,\"ask\":{\"resolve\":[]}}\n";
    (&stream).write_all(rest).expect("sent");
    assert_eq!(answer()["id"], 8);
    assert_eq!(answer(), json!({"version": 1, "id": 9, "resolved": []}));
    // A line without an end is not held.
    let endless = UnixStream::connect(&agent.socket).expect("connected");
    let piece = vec![b'x'; 1 << 16];
    while (&endless).write_all(&piece).is_ok() {}
    // Others are answered all the same.
    assert_eq!(agent.resolve(&[]), Vec::<Value>::new());
}

#[test]
fn other_users_learn_nothing() {
    needs!(OtherUsers);
    expect_tool("setpriv");
    let bench = Bench::new();
    let agent = Agent::start(&bench, "");
    let process = started_with("secret");
    assert_eq!(agent.function_at(process.pid(), 4096), "secret");
    // The folder, too, must let the other user in.
    bench.open();
    let script = format!(
        "import json, socket, sys
s = socket.socket(socket.AF_UNIX); s.connect({:?})
for ask in ('processes', {{'resolve': [{{'pid': {}, 'address': 4096}}]}}):
    s.sendall(json.dumps({{'version': 1, 'ask': ask}}).encode() + b'\\n')
f = s.makefile(); print(f.readline() + f.readline(), end='')",
        agent.socket.to_str().expect("UTF-8"),
        process.pid()
    );
    let setpriv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    assert_eq!(
        bench.run(&[&setpriv[..], &["/usr/bin/python3", "-c", &script]].concat()),
        "{\"version\":1,\"id\":0,\"processes\":[]}\n\
         {\"version\":1,\"id\":0,\"resolved\":[{\"unknown\":\"process\"}]}\n"
    );
}

#[test]
fn a_process_in_a_container_is_known_by_both_its_ids() {
    needs!(Processes);
    expect_tool("unshare");
    let bench = Bench::new();
    let agent = Agent::start(&bench, "");
    let mut container = contained();
    container.arg(program().get_program());
    let mut process = started_by(container);
    process.load(4096, 16, "inside");
    let pid = only_child(process.pid());
    assert_eq!(agent.wait_for(pid)["inner_pid"], 1);
    assert_eq!(agent.function_at(pid, 4096), "inside");
}

#[test]
fn metrics_are_for_this_machine() {
    let bench = Bench::new();
    let refused = bench.ask("agent --metrics 0.0.0.0:9464 --socket agent.sock").ends(2);
    refused.says("127.0.0.1:9464");
    assert!(!bench.path("agent.sock").exists());
}

/// What the agent may still do: nothing that it does not need. The helper keeps what opening processes' files takes.
#[test]
fn privileges_are_given_away_after_the_start() {
    needs!(OtherUsers);
    let bench = Bench::new();
    let agent = Agent::start(&bench, "");
    // It listens before it gives them away, and answers after that.
    agent.processes();
    let status = fs::read_to_string(format!("/proc/{}/status", agent.pid())).expect("it runs");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{status}")).split_ascii_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(field("Uid:"), ["65534"; 4]);
    assert_eq!(field("Gid:"), ["65534"; 4]);
    assert_eq!(field("Groups:"), [""; 0]);
    for set in ["CapPrm:", "CapEff:", "CapInh:"] {
        assert_eq!(field(set), ["0000000000000000"], "{set}");
    }
    assert_eq!(field("NoNewPrivs:"), ["1"]);
    // All threads of it.
    for task in fs::read_dir(format!("/proc/{}/task", agent.pid())).expect("threads") {
        let status = fs::read_to_string(task.expect("a thread").path().join("status"));
        assert!(status.expect("it runs").contains("\nCapEff:\t0000000000000000\n"));
    }
    // It still finds processes of any user.
    let process = started_with("code");
    assert_eq!(agent.function_at(process.pid(), 4096), "code");
}
