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
