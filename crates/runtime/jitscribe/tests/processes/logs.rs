//! Other processes, and their logs as an outsider reads them.

use std::fs::{self, File};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use jitdump::check::{Severity, check};
use jitdump::extension::log;

/// This program in another role.
pub fn player(role: &str, arguments: &[String]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(format!("role:{role}")).args(arguments);
    command
}

/// Waits until `is_so`, for 20 seconds.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(1));
    }
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
    let count = code_log::Source::read_at(file, 0, &mut bytes).unwrap();
    bytes.truncate(count);
    bytes
}
