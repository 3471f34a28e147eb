//! Reading a log as an outsider does.

use std::fs::File;

use code_log::Snapshot;
use jitdump::check::Severity;
use jitdump::{CodeEvent, CodeLoad, Dump};
use jitscribe::{Builder, Scribe};

mod notices;
pub use notices::listening;

/// A scribe whose log has the bytes of codes, or not.
pub fn builder(with_bytes: bool) -> Builder {
    if with_bytes { Scribe::builder().bytes() } else { Scribe::builder() }
}

/// The file of a log, through a descriptor of its own.
pub fn log_file(scribe: Scribe) -> File {
    File::from(scribe.log_fd().expect("a log in a file").try_clone_to_owned().unwrap())
}

/// What the log of `scribe` holds.
pub fn snapshot(scribe: Scribe) -> Snapshot {
    code_log::snapshot(&log_file(scribe)).unwrap()
}

/// The codes of a dump without a fault.
pub fn codes(dump: &[u8]) -> Vec<CodeLoad<'_>> {
    let events = Dump::parse(dump).unwrap().codes().map(|event| event.unwrap());
    events
        .filter_map(|event| match event {
            CodeEvent::Load(code) => Some(code),
            _ => None,
        })
        .collect()
}

/// Those that have not died.
pub fn living<'a, 'b>(codes: &'a [CodeLoad<'b>]) -> Vec<&'a CodeLoad<'b>> {
    codes.iter().filter(|code| code.died().is_none()).collect()
}

/// The log itself, as a tool that knows nothing of logs would read it.
pub fn raw(scribe: Scribe) -> Vec<u8> {
    let mut file = log_file(scribe);
    let mut bytes = Vec::new();
    std::io::Seek::rewind(&mut file).unwrap();
    std::io::Read::read_to_end(&mut file, &mut bytes).unwrap();
    bytes
}

/// Fails at whatever the checker calls an error.
pub fn assert_valid(dump: &[u8]) {
    let mut findings = jitdump::check::check(dump).findings;
    findings.retain(|finding| finding.severity == Severity::Error);
    assert_eq!(findings, []);
}
