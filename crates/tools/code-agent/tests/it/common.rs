//! What the tests of the table of processes share.

use std::fs::File;
use std::io;
use std::ops::Range;

use code_agent::access::Peer;
use code_agent::{FoundLog, ProcessFacts, ProcessKey};
use code_log::Source;
use jitscribe::Scribe;

/// A process that the table has.
pub(crate) const KEY: ProcessKey = ProcessKey { pid: 4711, start: 99 };
/// Who asks, unless the test is about who may.
pub(crate) const ROOT: Peer = Peer { user: 0, sees_all: true };

/// What is known of a process of this user.
pub(crate) fn facts(owner: u32) -> ProcessFacts {
    ProcessFacts { owner, inner_pid: 7, container: None }
}

/// A log, read without its holes: some file systems cannot find them.
#[derive(Debug)]
pub(crate) struct Whole(File);

impl Whole {
    /// The log that a scribe writes.
    pub(crate) fn of(scribe: &Scribe) -> Self {
        let log = scribe.log_fd().expect("a log").try_clone_to_owned().expect("a descriptor");
        Self(File::from(log))
    }
}

impl Source for Whole {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(at, buffer)
    }

    fn next_data(&self, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
        Ok(Some(range).filter(|range| !range.is_empty()))
    }
}

/// The log of a scribe, as it is found in a process.
pub(crate) fn found(scribe: &Scribe) -> Vec<FoundLog<Whole>> {
    vec![FoundLog { identity: (1, 2), source: Whole::of(scribe), until: None }]
}
