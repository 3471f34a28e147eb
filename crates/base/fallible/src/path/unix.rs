//! Paths in the form that system calls take.

use std::ffi::{CStr, OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use crate::Vec;

/// A path with the terminating NUL that system calls need, so that they take it without a copy.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PathText(Vec<u8>);

impl PathText {
    /// Copies a path. Returns `None` if it contains a NUL or the allocation is refused.
    #[must_use]
    pub fn new(path: impl AsRef<Path>) -> Option<Self> {
        let mut new = Self(Vec::new());
        new.append(path.as_ref().as_os_str().as_bytes())?;
        Some(new)
    }

    /// The path of a file in this directory, or `None` if the name contains a NUL or the allocation is refused.
    #[must_use]
    pub fn join(&self, name: impl AsRef<OsStr>) -> Option<Self> {
        let mut new = Self(Vec::new());
        let (directory, name) = (self.bytes(), name.as_ref().as_bytes());
        if name.starts_with(b"/") {
            return Self::new(OsStr::from_bytes(name));
        }
        new.0.try_reserve(directory.len().saturating_add(name.len()).saturating_add(2)).ok()?;
        new.append(directory)?;
        if !directory.is_empty() && !directory.ends_with(b"/") {
            new.append(b"/")?;
        }
        new.append(name)?;
        Some(new)
    }

    /// The path of another file in the directory of this one.
    #[must_use]
    pub fn with_file_name(&self, name: impl AsRef<OsStr>) -> Option<Self> {
        let path = self.as_path();
        let directory = match path.file_name() {
            Some(_) => path.parent().unwrap_or(path),
            None => path,
        };
        Self::new(directory)?.join(name)
    }

    /// The absolute path: see [`std::path::absolute`].
    #[must_use]
    pub fn absolute(&self) -> Option<Self> {
        if self.as_path().is_absolute() {
            return Self::new(self);
        }
        let mut absolute = current_dir()?;
        for component in self.as_path().components() {
            if component != Component::CurDir {
                absolute = absolute.join(component.as_os_str())?;
            }
        }
        Some(absolute)
    }

    /// Converts into a [`PathBuf`] that uses the same memory.
    #[must_use]
    pub fn into_path_buf(self) -> PathBuf {
        let mut bytes = self.0.into_inner();
        bytes.pop();
        OsString::from_vec(bytes).into()
    }

    fn append(&mut self, bytes: &[u8]) -> Option<()> {
        if bytes.contains(&0) {
            return None;
        }
        self.0.try_reserve(bytes.len().saturating_add(1)).ok()?;
        self.0.pop();
        self.0.extend_from_slice(bytes);
        self.0.push(0);
        Some(())
    }

    fn bytes(&self) -> &[u8] {
        self.0.split_last().map_or(&[], |(_, path)| path)
    }

    /// This path as a [`Path`].
    #[must_use]
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.bytes()))
    }

    /// This path as a C string.
    #[must_use]
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_with_nul(&self.0).unwrap_or_default()
    }
}

impl AsRef<Path> for PathText {
    fn as_ref(&self) -> &Path {
        self.as_path()
    }
}

impl fmt::Debug for PathText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_path().fmt(f)
    }
}

/// The current working directory.
#[allow(unsafe_code)]
fn current_dir() -> Option<PathText> {
    let mut room = [0_u8; libc::PATH_MAX as usize];
    // SAFETY: `room` is writable for its whole length, which is the size passed.
    let found = unsafe { libc::getcwd(room.as_mut_ptr().cast(), room.len()) };
    if found.is_null() {
        return None;
    }
    let path = CStr::from_bytes_until_nul(&room).ok()?;
    PathText::new(OsStr::from_bytes(path.to_bytes()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{PathText, current_dir};

    #[test]
    fn paths_are_joined_as_in_std() {
        let at = |path: &str| PathText::new(path).unwrap();
        for (directory, name) in [("/a/b", "c"), ("/a/", "c"), ("", "c"), ("/", "c"), ("a", "/c")] {
            let joined = at(directory).join(name).unwrap();
            assert_eq!(joined.as_path(), Path::new(directory).join(name));
            assert_eq!(
                joined.as_c_str().to_bytes(),
                joined.as_path().as_os_str().as_encoded_bytes()
            );
        }
        for path in ["/a/b", "b", "/a/b/", "/"] {
            let other = at(path).with_file_name("c").unwrap();
            assert_eq!(other.as_path(), Path::new(path).with_file_name("c"), "{path}");
        }
        assert_eq!(current_dir().unwrap().as_path(), std::env::current_dir().unwrap());
        let absolute = at("./a/../b").absolute().unwrap();
        assert_eq!(absolute.as_path(), std::path::absolute("./a/../b").unwrap());
        assert!(PathText::new("a\0b").is_none());
    }
}
