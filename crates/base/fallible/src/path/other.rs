//! Paths on systems where the library does not access files by itself.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathText(PathBuf);

impl PathText {
    /// Copies a path.
    #[must_use]
    pub fn new(path: impl AsRef<Path>) -> Option<Self> {
        Some(Self(path.as_ref().to_owned()))
    }

    /// The path of a file in this directory.
    #[must_use]
    pub fn join(&self, name: impl AsRef<OsStr>) -> Option<Self> {
        Some(Self(self.0.join(name.as_ref())))
    }

    /// The path of another file in the directory of this one.
    #[must_use]
    pub fn with_file_name(&self, name: impl AsRef<OsStr>) -> Option<Self> {
        Some(Self(self.0.with_file_name(name)))
    }

    /// The absolute path: see [`std::path::absolute`].
    #[must_use]
    pub fn absolute(&self) -> Option<Self> {
        std::path::absolute(&self.0).ok().map(Self)
    }

    /// This path as a [`Path`].
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Converts into a [`PathBuf`].
    #[must_use]
    pub fn into_path_buf(self) -> PathBuf {
        self.0
    }
}

impl AsRef<Path> for PathText {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}
