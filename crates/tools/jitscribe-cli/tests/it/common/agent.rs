//! `jitscribe agent`, as tests start it and ask it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{Bench, Running, Words};

/// An agent, and its socket.
pub struct Agent {
    pub running: Running,
    pub socket: PathBuf,
    said: PathBuf,
}

impl Agent {
    /// Starts one, and waits until it listens.
    pub fn start(bench: &Bench, options: &(impl Words + ?Sized)) -> Self {
        Self::spawn(bench, options).listening()
    }

    /// The same with a command that starts it, which gets the option for the socket.
    pub fn by(bench: &Bench, command: Command) -> Self {
        Self::spawn_by(bench, command).listening()
    }

    fn listening(mut self) -> Self {
        // It listens, or says why not and ends.
        while UnixStream::connect(&self.socket).is_err() {
            assert!(self.running.is_running(), "the agent ended: {}", self.said());
            std::thread::yield_now();
        }
        self
    }

    pub fn spawn(bench: &Bench, options: &(impl Words + ?Sized)) -> Self {
        let mut command = bench.jitscribe("agent -q");
        command.args(options.words());
        Self::spawn_by(bench, command)
    }

    fn spawn_by(bench: &Bench, mut command: Command) -> Self {
        let (socket, said) = (bench.path("agent.sock"), bench.path("agent.said"));
        command.arg("--socket").arg(&socket).stderr(File::create(&said).expect("a file"));
        Self { running: Running::start(&mut command), socket, said }
    }

    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// What it has printed on standard error.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.said).expect("text")
    }

    /// Sends a line, and returns the answer.
    pub fn ask(&self, request: &Value) -> Value {
        ask(&self.socket, request)
    }

    /// What is at these addresses.
    pub fn resolve(&self, addresses: &[Value]) -> Vec<Value> {
        let request = json!({"version": 1, "id": 5, "ask": {"resolve": addresses}});
        let answer = self.ask(&request);
        assert_eq!((&answer["version"], &answer["id"]), (&json!(1), &json!(5)), "{answer}");
        answer["resolved"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
    }

    /// What is at an address of a process.
    pub fn look(&self, pid: u32, address: u64) -> Value {
        self.resolve(&[json!({"pid": pid, "address": address})]).remove(0)
    }

    /// The same, once the process is known.
    pub fn code_at(&self, pid: u32, address: u64) -> Value {
        self.wait_for(pid);
        self.look(pid, address)
    }

    /// The name of the function at an address of a process, once the process is known.
    pub fn function_at(&self, pid: u32, address: u64) -> Value {
        function(&self.code_at(pid, address)).clone()
    }

    /// The processes that it knows.
    pub fn processes(&self) -> Vec<Value> {
        let answer = self.ask(&json!({"version": 1, "ask": "processes"}));
        answer["processes"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
    }

    /// Waits until a process is known.
    pub fn wait_for(&self, pid: u32) -> Value {
        loop {
            let found = self.processes().into_iter().find(|process| process["pid"] == pid);
            if let Some(found) = found {
                return found;
            }
            // Asked without a pause, it would have no time to look.
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

/// The name of the function in an answer.
pub fn function(answer: &Value) -> &Value {
    &answer["code"]["frames"][0]["function"]
}

/// Sends a line to the agent behind a socket, and does not read the answer.
pub fn send(socket: &Path, request: &Value) -> UnixStream {
    let stream = UnixStream::connect(socket).expect("the agent listens");
    writeln!(&stream, "{request}").expect("asked");
    stream
}

/// Sends a line, and returns the answer.
pub fn ask(socket: &Path, request: &Value) -> Value {
    let stream = send(socket, request);
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).expect("an answer");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// An address for metrics, with a port that is free: the system chose it a moment ago.
pub fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").to_string()
}

/// Asks for the metrics, as Prometheus does. Returns the one with this name.
pub fn metric(address: &str, name: &str) -> f64 {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
    let line = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name}: {answer}")).parse().expect("a number")
}
