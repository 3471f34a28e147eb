//! The folder for the intermediate files of a recording.

use std::fs::{self, DirBuilder, File, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use jitscribe_inject::output::{self, is_safe_from_others};
use rustix::fs::{Access, access};
use tempfile::TempDir;

use super::abandoned::{self, KEPT, PREFIX};
use crate::{Error, Result, text};

/// A private folder with the recording as perf writes it and the dumps of runtimes that let us choose the place. It is beside the output,
/// unless another user could replace it there. Dropping this deletes the folder, unless it is to be kept.
#[derive(Debug)]
pub struct Workspace {
    path: PathBuf,
    temporary: Option<TempDir>,
    /// While it is open, [other recordings](super::abandoned) do not take the folder for abandoned.
    _open: File,
}

impl Workspace {
    /// Creates the folder: a temporary one, or `keep_at`, which is kept.
    pub fn new(output: &Path, keep_at: Option<&Path>) -> Result<Self> {
        let beside = output::parent(output);
        // Where the output cannot be written, this is said before anything runs.
        access(beside, Access::WRITE_OK | Access::EXEC_OK)
            .map_err(|error| Error::file(beside)(error.into()))?;
        let (path, temporary) = match keep_at {
            Some(path) => {
                if !is_safe_from_others(beside) {
                    return Err(Error::Refused(format!(
                        "--keep-raw: other users may replace {}, where perf would write; write to a folder of your own with -o FILE",
                        text::path(path)
                    )));
                }
                DirBuilder::new().mode(0o700).create(path).map_err(Error::file(path))?;
                (path.to_owned(), None)
            }
            None => {
                let mut builder = tempfile::Builder::new();
                builder.prefix(PREFIX).permissions(Permissions::from_mode(0o700));
                let place = safe_place(beside);
                abandoned::remove(place);
                let folder = builder.tempdir_in(place).map_err(Error::file(place))?;
                (folder.path().to_owned(), Some(folder))
            }
        };
        // Runtimes change their working directory.
        let path = fs::canonicalize(&path).map_err(Error::file(&path))?;
        let open = File::open(&path).map_err(Error::file(&path))?;
        Ok(Self { path, temporary, _open: open })
    }

    /// The recording as perf writes it.
    pub fn recording(&self) -> PathBuf {
        self.path.join("perf.data")
    }

    /// The folder for dumps. perf's marker events contain this path.
    pub fn folder(&self) -> &Path {
        &self.path
    }

    /// Keeps the folder, so that the recording is not lost.
    pub fn keep(&mut self) {
        if let Some(folder) = self.temporary.take() {
            // Without it, the next recording would remove it.
            _ = File::create(self.path.join(KEPT));
            // The path is known already.
            _ = folder.keep();
        }
    }
}

/// Where a folder of ours stays ours: beside the output, if no other user can replace it there. Root often records in a folder of the
/// user whose program it is: there, the user could put a link in the place of the workspace, through which perf then writes as root.
/// `/var/tmp` has the sticky bit, and is on a disk.
pub(super) fn safe_place(beside: &Path) -> &Path {
    let other = Path::new("/var/tmp");
    match is_safe_from_others(beside) || !is_safe_from_others(other) {
        true => beside,
        false => other,
    }
}

/// Removes the folder that an earlier recording was kept in, so that it can be replaced.
pub fn remove(kept: &Path) -> Result<()> {
    if kept.symlink_metadata().is_err() {
        return Ok(());
    }
    // Not a folder that only has the same name.
    if kept.is_symlink() || !kept.join("perf.data").is_file() {
        return Err(Error::Refused(format!(
            "{}: not the folder of an earlier recording; remove it, or write elsewhere with -o FILE",
            text::path(kept)
        )));
    }
    fs::remove_dir_all(kept).map_err(Error::file(kept))
}
