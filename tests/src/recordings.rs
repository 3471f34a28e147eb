//! Live recordings that several tests read. The first test of a run that takes one makes it.
//!
//! A test changes none of the files: what it wants to change, it makes again in a folder of its own (`jitscribe inject -o`). A recording of which
//! a test changes the dump, which has an odd environment, or whose program writes into `/tmp`, is made by [`Recorder`] for that test alone.

use std::path::{Path, PathBuf};

use test_once::once;

use crate::demo::{TRUTH, demo};
use crate::live::{Recorder, Recording, workload};
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

/// The demo with copied stacks, and with listings of its intermediate representation in the recording's folder.
pub const DEMO_COPIED: Shared = Shared {
    name: "demo-copied",
    options: COPIED,
    program: |recorder| {
        let dir = recorder.dir().to_str().expect("a UTF-8 path");
        demo(recorder.dir(), TRUTH, &["--ir-dir", dir])
    },
};

/// The installed node, which writes a jitdump.
pub const NODE: Shared = Shared {
    name: "node",
    options: FRAME_POINTERS,
    program: |_| vec!["node".into(), "--perf-prof".into(), script("spin.js")],
};

/// LLVM 14's interpreter with MCJIT, whose jitdump says vma 0 and biases its lines' addresses by 0x40.
pub const LLVM: Shared = Shared {
    name: "llvm",
    options: FRAME_POINTERS,
    program: |_| vec!["lli-14".into(), "--jit-kind=mcjit".into(), script("spin.ll")],
};

impl Shared {
    /// The recording, and what `jitscribe inject` made of it: see [`Recording::ours`].
    pub fn get(&self) -> Recording {
        let folder = shared_folder(self.name, |folder| {
            let recorder = Recorder::in_folder(folder).options(self.options);
            let program = (self.program)(&recorder);
            recorder.record(&program).ours();
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

/// The folder `name` of a run of the tests, which `make` fills the first time.
pub fn shared_folder(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    // …/target/debug/deps/this
    let this = std::env::current_exe().expect("this program");
    let target = this.ancestors().nth(3).expect("the target folder");
    once(&target.join("tmp/recordings"), name, make)
}

/// The path of a workload, as an argument.
pub fn script(name: &str) -> String {
    workload(name).to_str().expect("a UTF-8 path").to_owned()
}
