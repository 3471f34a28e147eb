//! Reading a log as an outsider does.

use std::fs::File;

use code_log::Snapshot;
use jitdump::{CodeEvent, CodeLoad, Dump};
use jitscribe::Scribe;

/// What the log of `scribe` holds, read through a descriptor of its own.
pub fn snapshot(scribe: Scribe) -> Snapshot {
    let fd = scribe.log_fd().expect("a log in a file").try_clone_to_owned().unwrap();
    code_log::snapshot(&File::from(fd)).unwrap()
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

/// The log itself, as a tool that knows nothing of logs would read it.
#[allow(dead_code)]
pub fn raw(scribe: Scribe) -> Vec<u8> {
    let fd = scribe.log_fd().expect("a log in a file").try_clone_to_owned().unwrap();
    let mut file = File::from(fd);
    let mut bytes = Vec::new();
    std::io::Seek::rewind(&mut file).unwrap();
    std::io::Read::read_to_end(&mut file, &mut bytes).unwrap();
    bytes
}

/// Fails at whatever the checker calls an error.
#[allow(dead_code)]
pub fn assert_valid(dump: &[u8]) {
    let report = jitdump::check::check(dump);
    let errors: Vec<_> = report
        .findings
        .iter()
        .filter(|finding| finding.severity == jitdump::check::Severity::Error)
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
}
