//! How long a process waits for its log, and how long it takes to read one from outside.
//! `cargo bench -p benches --bench log`

#![allow(clippy::print_stdout, reason = "tables, and what the processes say that are measured")]

use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use jitscribe::{Code, Mode, Scribe};

const PROCESSES: usize = 100;
const READINGS: usize = 50;
const CODES: u64 = 100_000;
const NAME: &str = "a_function_name_of_32_bytes_long";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["start", mib] => start(mib.parse().expect("a number"), false),
        ["start", mib, "context"] => start(mib.parse().expect("a number"), true),
        ["hold"] => hold(),
        _ => {
            starts();
            snapshots();
        }
    }
}

fn this_program(words: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Fastest and median.
fn both(mut took: Vec<Duration>) -> String {
    took.sort();
    let median = took.get(took.len() / 2);
    format!("fastest {:.1?}, median {:.1?}", took[0], median.unwrap_or(&took[0]))
}

/// In a process of its own: its first log, the first announcement, and one more log.
fn start(mib: usize, with_context: bool) {
    let build = || {
        let start = Instant::now();
        let builder = Scribe::builder();
        let builder = if mib == 0 { builder } else { builder.limit(mib << 20) };
        let builder = if with_context { builder.process_context(Mode::On) } else { builder };
        let scribe = builder.build();
        (scribe, start.elapsed().as_nanos())
    };
    let (scribe, first) = build();
    let start = Instant::now();
    scribe.load(&Code::at(0x1000, 16).named(black_box(NAME))).leak();
    let announced = start.elapsed().as_nanos();
    println!("{first} {announced} {}", build().1);
}

fn starts() {
    println!("start-up, in {PROCESSES} processes");
    let cases: [(&str, &[&str]); 4] = [
        ("no limit set", &["start", "0"]),
        ("64 MiB", &["start", "64"]),
        ("16 GiB", &["start", "16384"]),
        ("64 MiB, and a process context", &["start", "64", "context"]),
    ];
    for (what, words) in cases {
        let mut took = [const { Vec::new() }; 3];
        for _ in 0..PROCESSES {
            let done = this_program(words).output().expect("it runs");
            let said = String::from_utf8(done.stdout).expect("numbers");
            for (took, word) in took.iter_mut().zip(said.split_whitespace()) {
                took.push(Duration::from_nanos(word.parse().expect("a number")));
            }
        }
        let [first, announced, more] = took.map(both);
        println!("  {what}: the first log {first}; its first announcement {announced}");
        println!("    one more log: {more}");
    }
}

/// In a process of its own: has a log of many codes until its standard input ends.
fn hold() {
    let scribe = Scribe::builder().limit(64 << 20).build();
    for n in 0..CODES {
        scribe.load(&Code::at(0x1000 * n, 512).named(NAME).frame_pointer()).leak();
    }
    let fd = scribe.log_fd().map(|fd| std::os::fd::AsRawFd::as_raw_fd(&fd));
    println!("{}", fd.expect("a log"));
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

fn snapshots() {
    let mut holder = this_program(&["hold"]).spawn().expect("it runs");
    let mut said = String::new();
    BufReader::new(holder.stdout.as_mut().expect("a pipe")).read_line(&mut said).expect("a line");
    let log = File::open(format!("/proc/{}/fd/{}", holder.id(), said.trim())).expect("its log");
    let mut took = Vec::new();
    for _ in 0..READINGS {
        let start = Instant::now();
        let snapshot = black_box(code_log::snapshot(&log)).expect("a snapshot");
        took.push(start.elapsed());
        assert_eq!((snapshot.codes, snapshot.torn), (CODES, 0));
    }
    println!(
        "a snapshot of {CODES} functions without bytes, from outside, {READINGS} times: {}",
        both(took)
    );
    drop(holder.stdin.take());
    holder.wait().expect("it ends");
}
