//! Live recordings that several tests read. The first test of a run that takes one makes it.
//!
//! A test changes none of the files: what it wants to change, it makes again in a folder of its own (`jitscribe inject -o`). A recording of which
//! a test changes the dump, which has an odd environment, or whose program writes into `/tmp`, is made by [`Recorder`] or
//! [`Record`] for that test alone.
//!
//! [`Record`]: crate::record::Record

use crate::demo::{TRUTH, demo};
use crate::folder::{ENOUGH, shared_folder};
use crate::live::{Recorder, Recording};
use crate::record::Recorded;
use crate::runtimes::{lli, node, python};
use crate::truth::Truth;

/// perf's options for stacks by frame pointers.
pub const FRAME_POINTERS: &[&str] = &["-k", "mono", "-F", "999", "-g"];

/// perf's options for copied stacks.
pub const COPIED: &[&str] = &["-k", "mono", "-F", "999", "--call-graph", "dwarf,16384"];

/// A recording that tests share.
#[derive(Debug)]
pub struct Shared {
    /// Its name among all of a run.
    pub name: &'static str,
    /// What `perf record` is given.
    pub options: &'static [&'static str],
    /// The recorded program, with its arguments, for the folder in which it runs.
    pub program: fn(&Recorder) -> Vec<String>,
}

/// The demo.
pub const DEMO: Shared = Shared {
    name: "demo",
    options: FRAME_POINTERS,
    program: |recorder| demo(recorder.dir(), TRUTH, &[]),
};

/// The demo without frame pointers, with copied stacks, and with listings of its intermediate representation in the folder.
pub const DEMO_COPIED: Shared = Shared {
    name: "demo-copied",
    options: COPIED,
    program: |recorder| {
        let dir = recorder.dir().to_str().expect("a UTF-8 path");
        demo(recorder.dir(), TRUTH, &["--no-frame-pointers", "--ir-dir", dir])
    },
};

/// The installed node, which writes a jitdump.
pub const NODE: Shared =
    Shared { name: "node", options: FRAME_POINTERS, program: |_| node(&["--perf-prof"]) };

/// LLVM 14's interpreter with MCJIT, whose jitdump says vma 0 and biases its lines' addresses by 0x40.
pub const LLVM: Shared = Shared { name: "llvm", options: FRAME_POINTERS, program: |_| lli() };

/// `record`'s options for copied stacks. The recording as perf wrote it is kept.
pub const COPIED_BY_RECORD: &[&str] = &["--keep-raw", "--call-graph", "dwarf", "-F", "999"];

/// The installed node with copied stacks, as `record` runs it.
pub fn recorded_node() -> Recorded {
    Recorded::shared("recorded-node", COPIED_BY_RECORD, |record| record.program(&node(&[])))
}

/// CPython 3.13, of which `record` chooses to copy stacks.
pub fn recorded_python() -> Recorded {
    let options = ["--keep-raw", "-F", "999"];
    Recorded::shared("recorded-python", &options, |record| record.program(&python(&[])))
}

impl Shared {
    /// The recording, and what `jitscribe inject` made of it: see [`Recording::ours`].
    pub fn get(&self) -> Recording {
        let folder = shared_folder(self.name, |folder| {
            let recorder = Recorder::in_folder(folder).options(self.options);
            let program = (self.program)(&recorder);
            let recording = recorder.record(&program);
            let count = recording.raw().len();
            assert!(count >= ENOUGH, "only {count} samples were recorded");
            recording.ours();
        });
        Recording::open(folder)
    }

    /// The recording of a demo, and the demo's own record of what it ran.
    pub fn with_truth(&self) -> (Recording, Truth) {
        let recording = self.get();
        let truth = Truth::read(&recording.dir().join(TRUTH));
        (recording, truth)
    }
}
