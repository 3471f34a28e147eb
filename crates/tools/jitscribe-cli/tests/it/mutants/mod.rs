//! Files that are almost right, and the command on them.

#![allow(dead_code, reason = "each test program uses a part")]

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use jitscribe::{Code, Line, Scribe};

/// Random numbers that are the same each time.
#[derive(Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Another sequence for each seed.
    pub fn new(seed: u64) -> Self {
        Self(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed))
    }

    /// A number below this.
    pub fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % below
    }

    /// A word as damage makes it: small, or near a power of two, or any.
    pub fn word(&mut self) -> u64 {
        let power = 1_u64 << self.next(64);
        match self.next(4) {
            0 => self.next(256) as u64,
            1 => power.wrapping_add(self.next(17) as u64).wrapping_sub(8),
            2 => u64::MAX - self.next(16) as u64,
            _ => self.0,
        }
    }
}

/// Tries mutants of this, with random numbers for each; `is_used` says whether one was used and not refused.
pub fn try_mutants(what: &'static str, mut is_used: impl FnMut(&mut Numbers, u64) -> bool) {
    let (mut used, mut tried) = (0, 0);
    for seed in seeds(what) {
        used += u32::from(is_used(&mut Numbers::new(seed), seed));
        tried += 1;
    }
    // Those that are refused at their heads show little.
    assert!(used * 5 > tried, "{used} of {tried}");
}

/// How many there are in an ordinary run of the tests.
const USUAL: u64 = 150;

/// The seeds of mutants: a few, or as many as there is time for by `JITSCRIBE_MUTANT_SECONDS`. How many there were is printed.
#[expect(clippy::print_stdout, reason = "for who asked for more than the usual number")]
fn seeds(what: &'static str) -> impl Iterator<Item = u64> {
    let seconds = std::env::var("JITSCRIBE_MUTANT_SECONDS").ok();
    let seconds = seconds.map(|seconds| seconds.parse().expect("a number of seconds"));
    let (begun, time) = (Instant::now(), seconds.map(Duration::from_secs));
    let is_over = move |seed: u64| match time {
        Some(time) => begun.elapsed() > time,
        None => seed > USUAL,
    };
    (1..).take_while(move |&seed| {
        if is_over(seed) {
            println!("{} mutants of {what}", seed - 1);
        }
        !is_over(seed)
    })
}

/// Writes over a few words, by their own size or not, that begin in one of these stretches; now and then the file is cut off.
pub fn mutate(numbers: &mut Numbers, bytes: &mut Vec<u8>, stretches: &[std::ops::Range<usize>]) {
    for _ in 0..=numbers.next(4) {
        let stretch = stretches[numbers.next(stretches.len())].clone();
        let size = 1 << numbers.next(4);
        let at = stretch.start + numbers.next(stretch.len());
        let at = (at / size * size).min(bytes.len() - size);
        let word = numbers.word().to_ne_bytes();
        bytes[at..at + size].copy_from_slice(&word[..size]);
    }
    if numbers.next(10) == 0 {
        bytes.truncate(numbers.next(bytes.len()));
    }
}

/// The file of a log, and as many pages of it as are in use.
pub fn bytes_of_log(scribe: &Scribe) -> (File, Vec<u8>) {
    let log = scribe.log_fd().expect("a log").try_clone_to_owned().expect("a descriptor");
    let file = File::from(log);
    let mut bytes = vec![0; 4096 + (4 << 20)];
    let count = code_log::Source::read_at(&file, 0, &mut bytes).expect("its bytes");
    let used = bytes[..count].iter().rposition(|byte| *byte != 0).expect("something");
    bytes.truncate((used + 1).next_multiple_of(4096));
    (file, bytes)
}

/// Announces as many pieces of code, one behind the other, of which every third one is dead.
pub fn announce(scribe: &Scribe, pieces: &[[u8; 64]]) {
    let lines = [Line::new(0, "/src/a.lang", 7).column(1)];
    for (number, bytes) in pieces.iter().enumerate() {
        let name = format!("function {number}");
        let handle = scribe.load(&Code::new(bytes).named(&name).lines(&lines));
        if number % 3 == 0 { drop(handle) } else { handle.leak() }
    }
}

/// Writes over a few places of a log, except for the words that identify a log.
pub fn damage_log(numbers: &mut Numbers, bytes: &mut [u8]) {
    for _ in 0..=numbers.next(8) {
        let size = 1 << numbers.next(4);
        // The heads are few, and most is decided there.
        let within = if numbers.next(3) == 0 { 4096 + 256 } else { bytes.len() };
        let at = 92 + numbers.next(within.min(bytes.len()) - 100);
        let at = at / size * size;
        let word = numbers.word().to_ne_bytes();
        bytes[at..at + size].copy_from_slice(&word[..size]);
    }
}

/// More address space than honest files of a few kilobytes make it take, and less than most machines have.
const MEMORY: u64 = 1 << 30;

/// Debug builds on a busy machine are slow.
const TIME: Duration = Duration::from_secs(60);

/// Runs the command on a mutant, with bounded memory, files and time. It has to end by itself, in an order that it chose; if it
/// fails, what it says must have one of these names. Returns whether it succeeded.
pub fn run(command: &Command, seed: u64, names: &[&str]) -> bool {
    let mut bounded = Command::new("prlimit");
    bounded.arg(format!("--as={MEMORY}")).arg(format!("--fsize={MEMORY}"));
    bounded.arg(command.get_program()).args(command.get_args());
    bounded.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        bounded.current_dir(folder);
    }
    // A file: a pipe that nobody reads might be full.
    let mut said = tempfile::tempfile().expect("a file");
    let stderr = said.try_clone().expect("a descriptor");
    bounded.stdin(Stdio::null()).stdout(File::create("/dev/null").expect("opened")).stderr(stderr);
    let mut child = bounded.spawn().expect("prlimit of util-linux");
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if begun.elapsed() > TIME {
            child.kill().expect("it runs");
            panic!("mutant {seed}: {command:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let mut text = Vec::new();
    said.rewind().expect("a file");
    said.read_to_end(&mut text).expect("a file");
    let text = String::from_utf8_lossy(&text);
    assert_eq!(status.signal(), None, "mutant {seed}: {text}");
    assert!(matches!(status.code(), Some(0 | 1)), "mutant {seed}: {status}: {text}");
    assert!(!text.contains("panicked"), "mutant {seed}: {text}");
    let is_named = names.iter().any(|name| text.contains(name));
    assert!(status.success() || is_named, "mutant {seed} names no file: {text}");
    status.success()
}
