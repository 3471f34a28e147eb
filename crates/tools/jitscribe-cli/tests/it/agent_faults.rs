//! `jitscribe agent` when things go wrong: it is killed, processes lie in their logs, and hundreds of them come and go.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use crate::common::agent::{Agent, free_address, function, metric};
use crate::common::announcer::{Announcer, program, started, started_with};
use crate::common::{Bench, children, contained, finish, only_child, signal, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use test_privilege::{Privilege, have};

/// Whether there are no processes but those of this test, so that what an agent counts is known. If not, the test `name` is run once more, where there are none.
fn is_alone(name: &str) -> bool {
    if std::env::var_os("ALONE").is_some() {
        return true;
    }
    // The agent becomes another user, for which a user's own namespace has no number.
    if have(&[Privilege::Processes, Privilege::OtherUsers]) {
        let mut alone = contained();
        alone.arg(program().get_program());
        alone.args(["--exact", name, "--nocapture"]).env("ALONE", "1");
        let passed = finish(&mut alone).ok().stdout;
        assert!(passed.contains("1 passed"), "{passed}");
    }
    false
}

/// The processes of sessions, which run.
fn processes_in(sessions: &BTreeSet<u32>) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("processes").flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_in = |pid: &u32| {
        let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat).into_owned();
        let fields: Vec<&str> = match stat.rsplit_once(')') {
            Some((_, behind)) => behind.split_whitespace().collect(),
            None => return false,
        };
        fields[0] != "Z" && fields[3].parse().is_ok_and(|session| sessions.contains(&session))
    };
    pids.filter(is_in).collect()
}

/// A client that asks again and again, and connects again when the agent is gone. Each answer must say what is expected, or that the process is not known yet.
struct Client {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<u32>,
}

impl Client {
    fn start(socket: &Path, request: &Value, expected: &Value) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (socket, request) = (socket.to_owned(), request.to_string());
        let (over, expected) = (Arc::clone(&is_over), expected.clone());
        let thread = spawn(move || {
            let mut answered = 0;
            while !over.load(Ordering::Relaxed) {
                let Ok(stream) = UnixStream::connect(&socket) else {
                    sleep(Duration::from_millis(1));
                    continue;
                };
                let mut lines = BufReader::new(&stream);
                let mut line = String::new();
                // An agent that is killed answers with a whole line, or with none.
                while writeln!(&stream, "{request}").is_ok()
                    && lines.read_line(&mut line).is_ok_and(|count| count > 0)
                    && line.ends_with('\n')
                    && !over.load(Ordering::Relaxed)
                {
                    let answer: Value = serde_json::from_str(&line).expect("JSON");
                    let resolved = answer["resolved"].as_array().expect("answers");
                    let is_known = resolved.iter().any(|it| it["unknown"] != "process");
                    assert!(!is_known || answer == expected, "{answer}, not {expected}");
                    answered += u32::from(is_known);
                    line.clear();
                }
            }
            answered
        });
        Self { is_over, thread }
    }

    /// Returns how often it was answered.
    fn finish(self) -> u32 {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("the answers are as expected")
    }
}

#[test]
fn an_agent_may_be_killed_at_any_moment() {
    let bench = Bench::new();
    let mut process = started();
    for number in 1..=20_u64 {
        process.load(number << 12, 16, &format!("code-{number}"));
    }
    process.tell("free 3");
    process.load(16384, 16, "other");
    let pid = process.pid();
    let now_and_before = |number: u64| {
        let address = (number << 12) + 9;
        [
            json!({"pid": pid, "address": address}),
            json!({"pid": pid, "address": address, "time": 1}),
        ]
    };
    let addresses: Vec<Value> = (1..=21).flat_map(now_and_before).collect();
    let request = json!({"version": 1, "id": 5, "ask": {"resolve": addresses}});
    let agent = Agent::start(&bench, "");
    agent.wait_for(pid);
    let expected = agent.ask(&request);
    let name = |at: usize| function(&expected["resolved"][at]);
    assert_eq!([name(0), name(6), name(7)], ["code-1", "other", "code-4"], "{expected}");
    assert_eq!(expected["resolved"][40], json!({"unknown": "code"}), "{expected}");
    let socket = agent.socket.clone();
    let client = Client::start(&socket, &request, &expected);
    let mut helpers = BTreeSet::new();
    let mut kill = |mut agent: Agent| {
        // So that it starts no helper between this look and its end.
        signal(agent.pid(), Signal::STOP);
        helpers.extend(children(agent.pid()));
        signal(agent.pid(), Signal::KILL);
        assert_eq!(agent.running.code(), 128 + 9, "{}", agent.said());
    };
    kill(agent);
    for life in 0..24_u64 {
        let agent = Agent::spawn(&bench, "");
        // Before it listens, before it has a helper, while it examines, while it answers.
        sleep(Duration::from_millis(life * life));
        kill(agent);
    }
    let mut agent = Agent::start(&bench, "");
    wait_until("the same answer again", || agent.ask(&request) == expected);
    assert!(client.finish() > 0);
    assert!(helpers.len() > 1, "{helpers:?}");
    wait_until("no helper is left", || processes_in(&helpers).is_empty());
    assert_eq!(bench.files(), ["agent.said", "agent.sock"]);
    assert!(agent.running.is_running());
}

#[test]
fn a_process_that_lies_misleads_nobody_about_others() {
    if !is_alone("agent_faults::a_process_that_lies_misleads_nobody_about_others") {
        return;
    }
    let bench = Bench::new();
    let address = free_address();
    let options = format!("--keep-ended 0 --interval 0.05 --metrics {address}");
    let mut agent = Agent::start(&bench, &options);
    let (mut honest, mut liar) = (started_with("honest"), started());
    for number in 1..=200_u64 {
        liar.load(number << 12, 16, &format!("lie-{number}"));
    }
    let expected = agent.code_at(honest.pid(), 4096);
    assert_eq!(function(&expected), "honest");
    assert_eq!(agent.function_at(liar.pid(), 4096), "lie-1");
    let (honest_pid, liar_pid) = (honest.pid(), liar.pid());
    let ask = || {
        let of_liar = (0..=256_u64).map(|number| json!({"pid": liar_pid, "address": number << 12}));
        let mut addresses: Vec<Value> = of_liar.collect();
        addresses.insert(77, json!({"pid": honest_pid, "address": 4096}));
        assert_eq!(agent.resolve(&addresses)[77], expected);
        // A process cannot have more codes than its log has space for.
        let codes = metric(&address, "jitscribe_agent_codes");
        assert!(codes < 100_000.0, "{codes} codes");
    };
    for seed in 1..=60 {
        liar.tell(&format!("damage {seed}"));
        ask();
    }
    liar.tell("lie");
    for _ in 0..60 {
        ask();
    }
    // Codes that are announced while the log is damaged are known, and so are processes that start then.
    honest.load(8192, 16, "more");
    assert_eq!(agent.function_at(honest.pid(), 8192), "more");
    let new = started_with("new");
    assert_eq!(agent.function_at(new.pid(), 4096), "new");
    drop(liar);
    wait_until("the liar is forgotten", || agent.processes().len() == 2);
    assert_eq!(metric(&address, "jitscribe_agent_codes"), 3.0);
    assert!(agent.running.is_running());
    assert!(!agent.said().contains("panicked"), "{}", agent.said());
}

/// How many descriptors the helper of an agent has open.
fn descriptors_of_helper(agent: u32) -> usize {
    fs::read_dir(format!("/proc/{}/fd", only_child(agent))).expect("a helper").count()
}

#[test]
fn five_hundred_processes_leave_nothing() {
    if !is_alone("agent_faults::five_hundred_processes_leave_nothing") {
        return;
    }
    let bench = Bench::new();
    let address = free_address();
    let options = format!("--keep-ended 0 --interval 0.05 --metrics {address}");
    let agent = Agent::start(&bench, &options);
    // One that stays, so that the agent has everything that it ever opens for itself.
    let stays = started_with("stays");
    agent.wait_for(stays.pid());
    let table = || {
        let names = ["processes", "ended_processes", "codes", "code_bytes", "left_out_processes"];
        names.map(|name| metric(&address, &format!("jitscribe_agent_{name}")))
    };
    let base = table();
    assert_eq!(base[..3], [1.0, 0.0, 1.0]);
    let mut fewest = (f64::MAX, usize::MAX);
    for _ in 0..10 {
        let all: Vec<Announcer> = (0..10).map(|_| started_with("goes")).collect();
        for process in &all {
            assert_eq!(agent.function_at(process.pid(), 4096), "goes");
        }
        for _ in 0..40 {
            assert!(Command::new("true").status().expect("run").success());
        }
        drop(all);
        // They are forgotten when the agent has seen that they have ended.
        wait_until("one process is left", || table() == base);
        // Examinations that still run have descriptors, too.
        let mut now = fewest;
        wait_until("no more descriptors than before", || {
            now.0 = metric(&address, "process_open_fds");
            now.1 = descriptors_of_helper(agent.pid());
            now.0 <= fewest.0 && now.1 <= fewest.1
        });
        fewest = now;
    }
    assert!(metric(&address, "jitscribe_agent_codes_total") >= 101.0);
    assert_eq!(agent.function_at(stays.pid(), 4096), "stays");
    assert!(!agent.said().contains("panicked"), "{}", agent.said());
}

#[test]
fn a_helper_that_does_not_run_is_noticed() {
    let bench = Bench::new();
    let address = free_address();
    let agent = Agent::start(&bench, &format!("--metrics {address}"));
    let before = started_with("before");
    agent.wait_for(before.pid());
    let helper = only_child(agent.pid());
    signal(helper, Signal::STOP);
    let new = started_with("new");
    let age = || metric(&address, "jitscribe_agent_look_age_seconds");
    wait_until("the age grows", || age() >= 1.0);
    signal(helper, Signal::CONT);
    assert_eq!(agent.function_at(new.pid(), 4096), "new");
    wait_until("all are examined", || age() == 0.0);
}
