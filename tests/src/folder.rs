//! Folders of one test, and folders that the tests of a run share.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use test_once::once;

/// Samples of a shared recording. One with fewer is made again by the next test that takes it, or by the second try of the same
/// test.
pub(crate) const ENOUGH: usize = 100;

/// Where a recording lies.
#[derive(Debug)]
pub enum Folder {
    /// Of one test, which removes it.
    Own(TempDir),
    /// Of all tests of a run: see [`shared_folder`].
    Shared(PathBuf),
}

impl Folder {
    /// One for this test alone.
    pub fn own() -> Self {
        Self::Own(TempDir::with_prefix("jitscribe-live-").expect("a temporary folder"))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        match self {
            Self::Own(dir) => dir.path(),
            Self::Shared(dir) => dir,
        }
    }
}

/// The folder `name` of a run of the tests, which `make` fills the first time.
pub fn shared_folder(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    // …/target/debug/deps/this
    let this = std::env::current_exe().expect("this program");
    let target = this.ancestors().nth(3).expect("the target folder");
    once(&target.join("tmp/recordings"), name, make)
}
