//! A process with a code log, for tests that look at it from outside.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use jitscribe::{Code, Line, LoadedCode, Scribe};

use crate::mutants::{Numbers, bytes_of_log, damage_log};

/// A process that carries out commands, one for each line of its input, and answers each.
///
/// It is the test program itself, which runs an ignored test; the variable `ANNOUNCER` says that it was started for this.
pub struct Announcer(Child);

impl Announcer {
    /// Starts it with `how` in the variable. `test` is the path of the ignored test; the command is the test program, or one that starts it.
    pub fn start(test: &str, mut command: Command, how: &str) -> Self {
        command
            .args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"])
            .env("ANNOUNCER", how)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut this = Self(command.spawn().expect("started"));
        this.wait();
        this
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn tell(&mut self, line: &str) {
        writeln!(self.0.stdin.as_mut().expect("a pipe"), "{line}").expect("written");
        self.wait();
    }

    /// Announces a code.
    pub fn load(&mut self, address: u64, size: u64, name: &str) {
        self.tell(&format!("load {address} {size} {name}"));
    }

    /// Reads up to the answer, byte by byte: the test harness of the process prints, too.
    fn wait(&mut self) {
        let mut lines =
            BufReader::with_capacity(1, self.0.stdout.as_mut().expect("a pipe")).lines();
        assert!(lines.any(|line| line.expect("a line").ends_with("done")), "the announcer ended");
    }
}

impl Drop for Announcer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The test program itself.
pub fn program() -> Command {
    Command::new(std::env::current_exe().expect("this program"))
}

/// A process that runs [`announcer`], whose code has no bytes.
pub fn started() -> Announcer {
    started_by(program())
}

/// One that has announced a code of 16 bytes at 4096.
pub fn started_with(name: &str) -> Announcer {
    let mut process = started();
    process.load(4096, 16, name);
    process
}

/// The same by a command that starts the test program.
pub fn started_by(command: Command) -> Announcer {
    Announcer::start("common::announcer::announcer", command, "")
}

/// The same with [`bytes`].
pub fn started_with_bytes() -> Announcer {
    Announcer::start("common::announcer::announcer", program(), "bytes")
}

/// The bytes of a code: a function that returns a number, and then traps.
pub fn bytes(number: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![0xcc; size];
    let number = u8::try_from(number & 0x7f).expect("seven bits");
    bytes[..4].copy_from_slice(&[0x6a, number, 0x58, 0xc3]);
    bytes
}

/// A log, as a process that lies writes it.
struct Log {
    file: File,
    sound: Vec<u8>,
}

impl Log {
    fn of(scribe: &Scribe) -> Self {
        let (file, sound) = bytes_of_log(scribe);
        Self { file, sound }
    }

    /// Writes what it should be, and over a few places of that.
    fn damage(&self, numbers: &mut Numbers) {
        let mut bytes = self.sound.clone();
        damage_log(numbers, &mut bytes);
        self.file.write_all_at(&bytes, 0).expect("written");
    }
}

/// Does as the lines of standard input say: `load ADDRESS SIZE NAME`, `free INDEX`, and to its own log `damage SEED` and `lie`.
#[test]
#[ignore = "the process that the other tests look at, started by them"]
#[allow(clippy::print_stdout, reason = "standard output is how it answers")]
fn announcer() {
    let Ok(how) = std::env::var("ANNOUNCER") else { return };
    let has_bytes = how == "bytes";
    let builder = Scribe::builder();
    let scribe = if has_bytes { builder.bytes() } else { builder }.build();
    let lines = [Line::new(0, "/src/a.lang", 7), Line::new(2, "/src/a.lang", 8)];
    let mut loaded: Vec<LoadedCode> = Vec::new();
    let mut log: Option<Arc<Log>> = None;
    println!("done");
    for line in std::io::stdin().lines() {
        let line = line.expect("a line");
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        match words[0] {
            "load" => {
                let (address, size) = (number(1), number(2));
                let bytes = bytes(address >> 12, size as usize);
                let code = if has_bytes {
                    Code::new(&bytes).runs_at(address)
                } else {
                    Code::at(address, size)
                };
                loaded.push(scribe.load(&code.named(words[3]).lines(&lines).tier("baseline")));
            }
            "free" => drop(loaded.remove(number(1) as usize)),
            // From then on, it announces no more.
            "damage" => {
                let log = log.get_or_insert_with(|| Arc::new(Log::of(&scribe)));
                log.damage(&mut Numbers::new(number(1)));
            }
            "lie" => {
                let log = log.get_or_insert_with(|| Arc::new(Log::of(&scribe))).clone();
                std::thread::spawn(move || {
                    let mut numbers = Numbers::new(u64::MAX);
                    loop {
                        log.damage(&mut numbers);
                    }
                });
            }
            _ => panic!("{line}"),
        }
        println!("done");
    }
}
