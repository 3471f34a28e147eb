//! The `/tmp` of a process, and temporary files in it.

use std::cell::OnceCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use crate::foreign::Leftovers;

/// A folder.
#[derive(Debug)]
pub struct Folder {
    folder: OwnedFd,
    /// `None` if it could not be created.
    leftovers: OnceCell<Option<Leftovers>>,
}

/// The name of a file that was created in a folder. The file is removed when this is dropped or the process is killed.
#[derive(Debug)]
pub struct Name<'f> {
    folder: &'f Folder,
    name: String,
}

impl Folder {
    /// Wraps an open folder.
    pub fn new(folder: OwnedFd) -> Self {
        Self { folder, leftovers: OnceCell::new() }
    }

    /// Creates a file in the folder.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn make<T>(
        &self,
        name: String,
        make: impl FnOnce(BorrowedFd<'_>, &str) -> Result<T, Errno>,
    ) -> Result<Name<'_>, Errno> {
        let leftovers = self.leftovers.get_or_init(|| Leftovers::of(&self.folder).ok());
        if let Some(leftovers) = leftovers {
            leftovers.add(&name);
        }
        match make(self.folder.as_fd(), &name) {
            Ok(_) => Ok(Name { folder: self, name }),
            Err(error) => {
                self.forget(&name);
                Err(error)
            }
        }
    }

    fn forget(&self, name: &str) {
        if let Some(Some(leftovers)) = self.leftovers.get() {
            leftovers.forget(name);
        }
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

impl Name<'_> {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.name
    }
}

impl Drop for Name<'_> {
    fn drop(&mut self) {
        // Another process that may write there may have removed the file already.
        let _ = unlinkat(&self.folder.folder, &self.name, AtFlags::empty());
        self.folder.forget(&self.name);
    }
}
