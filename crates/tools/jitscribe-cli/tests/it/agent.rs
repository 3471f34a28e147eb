//! `jitscribe agent`: finds processes with a code log, and answers which code was at an address.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

use crate::common::agent::Agent;
use crate::common::announcer::{program, started, started_by};
use crate::common::{Bench, Done, contained, expect_tool, finish, only_child};
use serde_json::{Value, json};
use test_privilege::{Privilege, have};

#[test]
fn what_a_running_process_announces_is_answered_at_once() {
    let bench = Bench::new();
    let agent = Agent::start(&bench, &[]);
    let mut process = started();
    process.tell("load 4096 16 first");
    let answer = agent.code_at(process.pid(), 4106);
    let code = &answer["code"];
    assert_eq!(code["frames"], json!([{"function": "first", "file": "/src/a.lang", "line": 8}]));
    assert_eq!((&code["tier"], &code["generation"]), (&json!("baseline"), &json!(1)), "{answer}");
    // From now on it is known, and an answer contains what was announced before the question.
    for n in 2..30_u64 {
        process.tell(&format!("load {} 16 code {n}", n << 12));
        let answer = agent.code_at(process.pid(), n << 12);
        assert_eq!(answer["code"]["frames"][0]["function"], format!("code {n}"), "{answer}");
    }
    // What was there before is known by the time.
    let loaded = agent.code_at(process.pid(), 4096)["code"]["loaded"].as_u64().expect("a time");
    process.tell("free 0");
    process.tell("load 4096 16 second");
    let at = |time: u64| json!({"pid": process.pid(), "address": 4096, "time": time});
    let [then, now] = agent.resolve(&[at(loaded), at(u64::MAX)]).try_into().expect("two answers");
    assert_eq!(then["code"]["frames"][0]["function"], "first");
    assert!(then["code"]["unloaded"].as_u64() > Some(loaded));
    assert_eq!(now["code"]["frames"][0]["function"], "second");
    // By the command.
    let pid = process.pid().to_string();
    let words = ["agent", "ask", &pid, "0x1008", "0x999000", "--socket", "agent.sock"];
    let Done { code, stdout, stderr } = bench.ask(&words);
    assert_eq!(code, 0, "{stderr}");
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[0], "0x1008  second  /src/a.lang:8");
    assert!(lines[1].starts_with("    function of 16 bytes at 0x1000, tier baseline"), "{stdout}");
    assert_eq!(lines[2], "0x999000  no known code");
    // What it announced last is known when it has ended.
    drop(process);
    let pid: u32 = pid.parse().expect("a number");
    assert_eq!(agent.function_at(pid, 4096), "second");
}

#[test]
fn an_agent_that_is_killed_is_replaced_by_another() {
    let bench = Bench::new();
    let mut process = started();
    process.tell("load 4096 16 code");
    for _ in 0..3 {
        let agent = Agent::start(&bench, &[]);
        assert_eq!(agent.code_at(process.pid(), 4096)["code"]["generation"], 1);
        // A second one does not take its place.
        let socket = agent.socket.to_str().expect("UTF-8");
        let refused = bench.ask(&["agent", "--socket", socket]);
        assert_eq!(refused.code, 1);
        assert!(refused.stderr.contains("another agent serves"), "{}", refused.stderr);
        // Dropping it is kill -9: the socket stays behind.
        drop(agent);
        assert!(bench.path("agent.sock").exists());
    }
    let done = bench.ask(&["agent", "ask", "1", "1", "--socket", "agent.sock"]);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("jitscribe agent --socket"), "{}", done.stderr);
    // One that is asked to end removes it, if it may: one that was started as root may not.
    let mut agent = Agent::start(&bench, &[]);
    crate::common::interrupt(agent.running.pid());
    assert_eq!(agent.running.code(), 0);
    assert_eq!(bench.path("agent.sock").exists(), rustix::process::geteuid().is_root());
}

#[test]
fn once_lists_what_there_is() {
    let bench = Bench::new();
    let mut process = started();
    process.tell("load 4096 16 code");
    let done = bench.ask(&["agent", "--once"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let lines = done.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let found = lines.into_iter().find(|info| info["pid"] == process.pid()).expect("it is there");
    assert_eq!(found["sources"], json!([{"kind": "code-log", "codes": 1}]));
    assert!(done.stderr.contains("have JIT-compiled code"), "{}", done.stderr);
}

#[test]
fn requests_that_are_none_are_refused_and_others_answered() {
    let bench = Bench::new();
    let agent = Agent::start(&bench, &[]);
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
    (&stream)
        .write_all(b"\"ask\":\"processes\"}\n{\"version\":1,\"id\":9,\"ask\":{\"resolve\":[]}}\n")
        .expect("sent");
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
    if !have(&[Privilege::OtherUsers]) {
        return;
    }
    expect_tool("setpriv");
    let bench = Bench::new();
    let agent = Agent::start(&bench, &[]);
    let mut process = started();
    process.tell("load 4096 16 secret");
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
    let mut other = Command::new("setpriv");
    other.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    other.args(["/usr/bin/python3", "-c", &script]);
    let done = finish(other);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(
        done.stdout,
        "{\"version\":1,\"id\":0,\"processes\":[]}\n\
         {\"version\":1,\"id\":0,\"resolved\":[{\"unknown\":\"process\"}]}\n"
    );
}

#[test]
fn a_process_in_a_container_is_known_by_both_its_ids() {
    if !have(&[Privilege::Processes]) {
        return;
    }
    expect_tool("unshare");
    let bench = Bench::new();
    let agent = Agent::start(&bench, &[]);
    let mut container = contained();
    container.arg(program().get_program());
    let mut process = started_by(container);
    process.tell("load 4096 16 inside");
    let pid = only_child(process.pid());
    assert_eq!(agent.wait_for(pid)["inner_pid"], 1);
    assert_eq!(agent.function_at(pid, 4096), "inside");
}

#[test]
fn metrics_are_for_this_machine() {
    let bench = Bench::new();
    let words = ["agent", "--metrics", "0.0.0.0:9464", "--socket", "agent.sock"];
    let refused = bench.ask(&words);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("127.0.0.1:9464"), "{}", refused.stderr);
    assert!(!bench.path("agent.sock").exists());
}

/// What the agent may still do: nothing that it does not need. The helper keeps what opening processes' files takes.
#[test]
fn privileges_are_given_away_after_the_start() {
    if !have(&[Privilege::OtherUsers]) {
        return;
    }
    let bench = Bench::new();
    let agent = Agent::start(&bench, &[]);
    // It listens before it gives them away, and answers after that.
    agent.processes();
    let status =
        fs::read_to_string(format!("/proc/{}/status", agent.running.pid())).expect("it runs");
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
    for task in fs::read_dir(format!("/proc/{}/task", agent.running.pid())).expect("threads") {
        let status = fs::read_to_string(task.expect("a thread").path().join("status"));
        assert!(status.expect("it runs").contains("\nCapEff:\t0000000000000000\n"));
    }
    // It still finds processes of any user.
    let mut process = started();
    process.tell("load 4096 16 code");
    assert_eq!(agent.function_at(process.pid(), 4096), "code");
}
