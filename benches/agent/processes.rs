//! What processes use, and what an agent answers.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The processor time of a process in seconds, and its memory (Pss) in MiB.
pub fn used(pid: u32) -> (f64, f64) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit_once(')').expect("a name").1.split_whitespace().collect();
    let ticks: f64 =
        fields[11].parse::<f64>().expect("ticks") + fields[12].parse::<f64>().expect("ticks");
    let status = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("as root");
    let line = status.lines().find_map(|line| line.strip_prefix("Pss:")).expect("its memory");
    let kib: f64 = line.split_whitespace().next().expect("a number").parse().expect("a number");
    (ticks / 100.0, kib / 1024.0)
}

/// The processes that the first thread of a process has started.
pub fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().expect("a process")).collect()
}

/// Asks the agent behind a socket.
pub fn ask(socket: &Path, request: &str) -> String {
    let stream = UnixStream::connect(socket).expect("the agent");
    writeln!(&stream, "{request}").expect("asked");
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer).expect("an answer");
    answer
}
