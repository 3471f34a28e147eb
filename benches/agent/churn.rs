//! 10,000 processes that start and end under an agent, and the memory, descriptors and rows that the agent holds while they do.

use std::collections::VecDeque;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::processes::{ask, children, used};
use crate::start_holder;

/// One process in this many has a log, with this number of codes.
const WITH_LOG: u64 = 4;
const CODES: u64 = 50;
/// One process in this many is waited for until the agent knows its code.
const ASKED: u64 = 64;

/// Set where there are no other processes.
const ALONE: &str = "AGENT_CHURN_ALONE";

/// A process without code: it waits until it is ended.
pub fn idle() {
    let _ = std::io::stdin().read(&mut [0]);
}

fn start_idle() -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.arg("idle").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("started")
}

fn end(mut process: Child) {
    process.kill().expect("it runs");
    process.wait().expect("it has ended");
}

/// An agent that is measured.
struct Measured {
    agent: Child,
    metrics: String,
}

/// What it holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    processes: u64,
    ended: u64,
    codes: u64,
    descriptors: u64,
    of_helper: u64,
    memory: f64,
    memory_of_helper: f64,
}

impl Measured {
    fn held(&self) -> Held {
        let mut stream = TcpStream::connect(&self.metrics).expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("asked");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let number = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|number| number.parse().ok())
                .unwrap_or_else(|| panic!("no {name}: {text}"))
        };
        let helper = *children(self.agent.id()).first().expect("a helper");
        let open = fs::read_dir(format!("/proc/{helper}/fd")).expect("as root").count();
        Held {
            processes: number("jitscribe_agent_processes"),
            ended: number("jitscribe_agent_ended_processes"),
            codes: number("jitscribe_agent_codes"),
            descriptors: number("process_open_fds"),
            of_helper: open as u64,
            memory: used(self.agent.id()).1,
            memory_of_helper: used(helper).1,
        }
    }
}

fn row(count: u64, held: Held) {
    let Held { processes, ended, codes, descriptors, of_helper, memory, memory_of_helper } = held;
    println!(
        "{count:>9} {processes:>9} {ended:>9} {codes:>9} {descriptors:>11} {of_helper:>9} {memory:>11.1} {memory_of_helper:>10.1}"
    );
}

/// Waits until the agent answers which code a process has.
fn wait_for(socket: &Path, pid: u32) {
    let request = format!(
        "{{\"version\":1,\"ask\":{{\"resolve\":[{{\"pid\":{pid},\"address\":{}}}]}}}}",
        0x10_0000 + 100
    );
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = ask(socket, &request);
        if answer.contains("package.module0.function0") {
            return;
        }
        assert!(Instant::now() < end, "the agent never knew process {pid}: {answer}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs this program once more where there are no processes but its own: what an agent holds of others would change, too.
fn alone() {
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]);
    unshare.args(std::env::args_os()).env(ALONE, "1");
    assert!(unshare.status().expect("unshare of util-linux").success(), "it needs root");
}

/// Starts and ends `count` processes, `at_once` of which are alive, one in four with a log.
pub fn churn(program: &str, count: u64, at_once: u64) {
    if std::env::var_os(ALONE).is_none() {
        return alone();
    }
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("agent.sock");
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let metrics = port.to_string();
    let mut command = Command::new(program);
    command.args(["agent", "-q", "--metrics", &metrics, "--socket"]).arg(&socket);
    let measured = Measured { agent: command.spawn().expect("started"), metrics };
    while UnixStream::connect(&socket).is_err() {
        std::thread::sleep(Duration::from_millis(50));
    }
    // So that it has everything that it opens for itself.
    let first = start_holder(CODES);
    wait_for(&socket, first.id());
    end(first);
    println!(
        "{:>9} {:>9} {:>9} {:>9} {:>11} {:>9} {:>11} {:>10}",
        "started", "known", "ended", "codes", "descriptors", "helper's", "memory, MiB", "helper's"
    );
    let base = settled(&measured);
    row(0, base);
    let begun = Instant::now();
    let mut alive: VecDeque<Child> = VecDeque::new();
    for number in 1..=count {
        if alive.len() as u64 >= at_once
            && let Some(oldest) = alive.pop_front()
        {
            end(oldest);
        }
        let has_log = number % WITH_LOG == 0;
        let process = if has_log { start_holder(CODES) } else { start_idle() };
        if number % ASKED == 0 {
            wait_for(&socket, process.id());
        }
        alive.push_back(process);
        if number % (count / 10).max(1) == 0 {
            row(number, measured.held());
        }
    }
    println!("in {:.0} s; all are ended", begun.elapsed().as_secs_f64());
    alive.into_iter().for_each(end);
    let held = settled(&measured);
    row(count, held);
    let (mut agent, is_back) = (measured.agent, held.descriptors <= base.descriptors);
    agent.kill().expect("it runs");
    agent.wait().expect("it has ended");
    assert!(
        is_back && held.of_helper <= base.of_helper,
        "descriptors are left: {base:?}, {held:?}"
    );
}

/// What the agent holds when it has forgotten the processes that have ended, and examines none.
fn settled(measured: &Measured) -> Held {
    let end = Instant::now() + Duration::from_secs(180);
    let mut last = measured.held();
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let held = measured.held();
        let is_same = (held.descriptors, held.of_helper) == (last.descriptors, last.of_helper);
        if held.processes == 0 && is_same {
            assert_eq!((held.ended, held.codes), (0, 0), "{held:?}");
            return held;
        }
        assert!(Instant::now() < end, "processes are left: {held:?}");
        last = held;
    }
}
