//! Other processes, and their logs as an outsider reads them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use code_log::{Snapshot, Source};
use jitdump::check::{Severity, check};
use jitdump::extension::log;
use jitdump::{CodeEvent, CodeLoad, Dump};
use jitscribe::{Scribe, Subject};

/// What the environment of a process tells the library.
const SETTINGS: [&str; 5] =
    ["JITSCRIBE", "JITSCRIBE_DIR", "JITSCRIBE_LIMIT", "XDG_RUNTIME_DIR", "OTEL_SERVICE_NAME"];

/// This program in another role, without the settings of this process.
pub fn player(role: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(format!("role:{role}")).args(arguments);
    for name in SETTINGS {
        command.env_remove(name);
    }
    command
}

/// A process that carries out commands, one for each line of its input, and answers each.
pub struct Told {
    pub child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Told {
    /// Its first answer is that it is ready.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut told = Self { child, to, from: BufReader::new(from) };
        assert_eq!(told.answer(), "ready", "{command:?}");
        told
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub fn tell(&mut self, word: &str) -> String {
        self.tell_and_go(word);
        self.answer()
    }

    /// The same without its answer.
    pub fn tell_and_go(&mut self, word: &str) {
        writeln!(self.to, "{word}").unwrap();
    }

    pub fn end(mut self) {
        drop(self.to);
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

/// In the process: answers, and waits for the next word. `None` if there is none.
pub fn say(answer: &str) -> Option<String> {
    println!("{answer}");
    std::io::stdout().flush().unwrap();
    let mut word = String::new();
    std::io::stdin().lock().read_line(&mut word).unwrap();
    (!word.is_empty()).then(|| word.trim_end().to_owned())
}

/// Waits until `is_so`, for 20 seconds.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub fn subjects(notices: &[(Subject, String)]) -> Vec<Subject> {
    notices.iter().map(|(subject, _)| *subject).collect()
}

/// The log of a scribe of this process.
pub fn own_log(scribe: Scribe) -> File {
    File::from(scribe.log_fd().expect("a log").try_clone_to_owned().unwrap())
}

/// What is in the log of a scribe of this process.
pub fn own_snapshot(scribe: Scribe) -> Snapshot {
    code_log::snapshot(&own_log(scribe)).unwrap()
}

/// Memory of this process or another, read as `/proc/PID/mem` has it.
#[derive(Debug)]
pub struct Mapped {
    file: File,
    start: u64,
    end: u64,
}

impl Source for Mapped {
    fn read_at(&self, at: u64, room: &mut [u8]) -> std::io::Result<usize> {
        let size = self.end - self.start;
        let length = room.len().min(size.saturating_sub(at) as usize);
        FileExt::read_at(&self.file, &mut room[..length], self.start + at)
    }
}

/// The shared memory of a process, by its number or `self`: that of files whose path contains `name`. Adjacent mappings of one
/// file are one.
pub fn shared_memory(process: &str, name: &str) -> Vec<Mapped> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let mut found: Vec<(Mapped, String)> = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw-s ") && line.contains(name)) {
        // The range, the permissions, the offset, the device and the inode.
        let columns: Vec<&str> = line.split_ascii_whitespace().take(5).collect();
        let (start, end) = columns[0].split_once('-').unwrap();
        let (start, end, file) = (number(start), number(end), columns[3..].join(" "));
        match found.last_mut().filter(|(last, of)| last.end == start && *of == file) {
            Some((last, _)) => last.end = end,
            None => {
                let memory = File::open(format!("/proc/{process}/mem")).unwrap();
                found.push((Mapped { file: memory, start, end }, file));
            }
        }
    }
    found.into_iter().map(|(mapped, _)| mapped).collect()
}

/// The memfd with the log of a process, for ever.
pub fn log_of(child: &Child) -> File {
    log_of_pid(child.id())
}

/// [`log_of`] for a process that is not one's child.
pub fn log_of_pid(pid: u32) -> File {
    let folder = format!("/proc/{pid}/fd");
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if let Ok(target) = fs::read_link(entry.path())
            && target.as_os_str().as_encoded_bytes().starts_with(b"/memfd:jitscribe")
        {
            return File::open(entry.path()).unwrap();
        }
    }
    panic!("no log");
}

/// The codes of a dump without a fault.
pub fn loads(dump: &[u8]) -> impl Iterator<Item = CodeLoad<'_>> {
    Dump::parse(dump).unwrap().codes().filter_map(|event| match event.unwrap() {
        CodeEvent::Load(code) => Some(code),
        _ => None,
    })
}

pub fn errors_in(dump: &[u8]) -> Vec<String> {
    let findings = check(dump).findings;
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(|finding| format!("{finding:?}")).collect()
}

/// All of a log's file that is in use: one in memory has the size that it may get.
pub fn bytes_of(file: &File) -> Vec<u8> {
    let head = code_log::snapshot(file).unwrap().head;
    let used = log::FIRST_CHUNK + head.chunks as usize * head.chunk_size as usize;
    let mut bytes = vec![0; used];
    let count = Source::read_at(file, 0, &mut bytes).unwrap();
    bytes.truncate(count);
    bytes
}
