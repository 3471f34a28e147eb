//! The recordings of `tests/corpus`, unpacked for one test.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::jitscribe::inject;
use crate::perf::Perf;
use crate::sample::{self, Sample};
use crate::tool::{crate_dir, run, tool};

/// One producer's recordings in a folder of their own, removed when dropped.
#[derive(Debug)]
pub struct Corpus {
    root: TempDir,
    name: String,
}

impl Corpus {
    /// Unpacks `tests/corpus/NAME.tar.xz`.
    pub fn unpack(name: &str) -> Self {
        let root = TempDir::with_prefix("jitscribe-corpus-").expect("a temporary folder");
        let archive = crate_dir().join("corpus").join(format!("{name}.tar.xz"));
        // tar runs xz, and its message is unclear if xz is missing.
        tool("xz");
        run(tool("tar").arg("-xJf").arg(&archive).arg("-C").arg(root.path()));
        Self { root, name: name.to_owned() }
    }

    /// The folder that holds the producer's files.
    pub fn dir(&self) -> PathBuf {
        self.root.path().join(&self.name)
    }

    /// A file of the archive.
    pub fn file(&self, name: &str) -> PathBuf {
        let file = self.dir().join(name);
        assert!(file.exists(), "{} holds no {name}", self.name);
        file
    }

    /// A folder beside the archive's, for files that the test writes.
    pub fn scratch(&self) -> &Path {
        self.root.path()
    }

    /// The samples of `RECORDING.data` as perf printed them before (`0`) or after (`1`) `perf inject --jit`.
    pub fn oracle(&self, recording: &str, after: u8) -> Vec<Sample> {
        let printed =
            run(tool("zcat").arg(self.file(&format!("{recording}.script{after}.gz")))).stdout;
        sample::parse(&printed)
    }

    /// Injects `RECORDING.data`, and returns the path of the result, which is beside the archive's folder.
    pub fn inject(&self, recording: &str) -> PathBuf {
        let output = self.scratch().join(format!("{recording}.out.data"));
        let input = self.file(&format!("{recording}.data"));
        inject(&input, &output, ["--aux-dir".as_ref(), self.dir().as_os_str()]);
        output
    }

    /// The samples of `RECORDING.data` after `jitscribe inject`, as perf reads them.
    pub fn samples(&self, recording: &str) -> Vec<Sample> {
        Perf::installed().samples(&self.inject(recording))
    }
}
