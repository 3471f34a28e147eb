//! What `jitscribe agent` costs on a machine with many processes.
//! `cargo bench -p benches --bench agent -- "$PWD/target/release/jitscribe" [PROCESSES [CODES [SECONDS]]]`
//!
//! And whether anything grows while processes come and go:
//! `cargo bench -p benches --bench agent -- "$PWD/target/release/jitscribe" churn [PROCESSES [AT-ONCE]]`

#![allow(clippy::print_stdout, reason = "a table, and what the processes say that are measured")]

mod churn;
mod processes;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use jitscribe::{Code, Line, Scribe};

use crate::processes::{ask, children, used};

/// Codes that each process announces in a second, and addresses of each that are asked for.
const CHANGES: u64 = 10;
const ADDRESSES: u64 = 100;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |at: usize, default: u64| {
        words.get(at).map_or(default, |word| word.parse().expect("a number"))
    };
    match words.first().map(String::as_str) {
        None => println!("usage: agent JITSCRIBE [churn] [NUMBER...]"),
        Some("hold") => hold(number(1, 20_000)),
        Some("idle") => churn::idle(),
        Some(program) if words.get(1).is_some_and(|word| word == "churn") => {
            churn::churn(program, number(2, 10_000), number(3, 200));
        }
        Some(program) => measure(program, number(1, 100), number(2, 20_000), number(3, 30)),
    }
}

/// A process with this number of codes, which announces more when the benchmark asks for them.
fn hold(codes: u64) {
    let scribe = Scribe::builder().build();
    let files: Vec<String> = (0..100).map(|n| format!("/srv/app/module-{n}.lang")).collect();
    let mut next = 0;
    let mut load = |count: u64| {
        for _ in 0..count {
            let n = next;
            next += 1;
            let file = &files[(n % 100) as usize];
            let lines: Vec<Line<'_>> =
                (0..20).map(|line| Line::new(line * 8, file, n as u32 % 1000 + line)).collect();
            let name = format!("package.module{}.function{n}", n % 100);
            scribe.load(&Code::at(0x10_0000 + n * 256, 200).named(&name).lines(&lines)).leak();
        }
    };
    load(codes);
    println!("ready");
    for line in std::io::stdin().lines() {
        load(line.expect("a line").parse().expect("a number"));
    }
}

/// Starts a process with this number of codes.
fn start_holder(codes: u64) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["hold", &codes.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("started");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("ready");
    child
}

fn measure(program: &str, count: u64, codes: u64, seconds: u64) {
    let mut processes: Vec<Child> = (0..count).map(|_| start_holder(codes)).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("agent.sock");
    let mut agent =
        Command::new(program).args(["agent", "--socket"]).arg(&socket).spawn().expect("started");
    let known = |codes: u64| loop {
        if UnixStream::connect(&socket).is_ok() {
            let answer = ask(&socket, r#"{"version":1,"ask":"processes"}"#);
            let all = answer.matches(&format!("\"codes\":{codes}}}")).count() as u64;
            if all >= count {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    known(codes);
    let all = || {
        let mut pids = vec![agent.id()];
        pids.extend(children(agent.id()));
        pids.into_iter().map(used).fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d))
    };
    let (first, memory) = all();
    println!("{count} processes, {codes} codes each");
    println!("read for the first time: {first:.2} s of processor time; memory {memory:.1} MiB");
    let rounds = |processes: &mut Vec<Child>, changes: u64, asks: bool| {
        let begun = Instant::now();
        let (before, _) = all();
        for second in 0..seconds {
            for process in processes.iter_mut() {
                if changes > 0 {
                    writeln!(process.stdin.as_mut().expect("a pipe"), "{changes}").expect("told");
                }
                if asks && second % 5 == 0 {
                    let pid = process.id();
                    let addresses: Vec<String> = (0..ADDRESSES)
                        .map(|n| {
                            let address = 0x10_0000 + n * 7919 % codes * 256 + 100;
                            format!("{{\"pid\":{pid},\"address\":{address}}}")
                        })
                        .collect();
                    let addresses = addresses.join(",");
                    let request =
                        format!("{{\"version\":1,\"ask\":{{\"resolve\":[{addresses}]}}}}");
                    let answer = ask(&socket, &request);
                    assert_eq!(answer.matches("\"generation\"").count() as u64, ADDRESSES);
                }
            }
            let until = Duration::from_secs(second + 1);
            std::thread::sleep(until.saturating_sub(begun.elapsed()));
        }
        let (after, memory) = all();
        let share = (after - before) / begun.elapsed().as_secs_f64() * 100.0;
        (share, memory)
    };
    let (share, memory) = rounds(&mut processes, 0, false);
    println!("nothing changes: {share:.2} % of a processor; memory {memory:.1} MiB");
    let (share, memory) = rounds(&mut processes, CHANGES, false);
    println!(
        "each announces {CHANGES} codes in a second: {share:.2} % of a processor; memory {memory:.1} MiB"
    );
    let (share, memory) = rounds(&mut processes, CHANGES, true);
    println!(
        "and {ADDRESSES} addresses of each are asked for every 5 s: {share:.2} % of a processor; memory {memory:.1} MiB"
    );
    for mut process in processes {
        process.kill().expect("killed");
        process.wait().expect("ended");
    }
    agent.kill().expect("killed");
    agent.wait().expect("ended");
}
