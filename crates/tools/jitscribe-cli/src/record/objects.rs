//! The files that programs which link the library write under valgrind. The object files stay: valgrind's output refers to
//! them, and KCachegrind disassembles them. The dumps beside them are deleted.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::args::{Args, with_suffix};
use super::workspace::safe_place;
use crate::runtimes::Preparation;
use crate::text::shell_word;
use crate::{Error, Result};
use jitscribe_inject::output::{self, Folder};

/// The environment variable that gives the library the folder.
const VARIABLE: &str = "JITSCRIBE_DIR";

/// The folder FILE.jit, or one in `/var/tmp` where another user could replace it. Dropping this deletes the dumps in it.
#[derive(Debug)]
pub struct Objects {
    /// `None` if the user has chosen a folder, or if no variables are set at all.
    folder: Option<PathBuf>,
    /// The files that existed before; `None` if everything is to stay.
    before: Option<HashSet<OsString>>,
}

impl Objects {
    /// Creates the folder, or uses the workspace if that is kept, and makes the library write there.
    pub fn new(
        args: &Args,
        base: &Path,
        workspace: &Path,
        prepared: &mut Preparation,
    ) -> Result<Self> {
        let Some(variable) = prepared.variables.get_mut(OsStr::new(VARIABLE)) else {
            return Ok(Self { folder: None, before: None });
        };
        if args.keep_raw {
            return Ok(Self { folder: Some(workspace.to_owned()), before: None });
        }
        let beside = output::parent(base);
        let folder = match safe_place(beside) {
            place if place == beside => {
                let folder = with_suffix(base, ".jit");
                match DirBuilder::new().mode(0o700).create(&folder) {
                    Err(error) if folder.is_dir() => {
                        drop(error);
                        Folder::create(&folder)?;
                    }
                    made => made.map_err(Error::file(&folder))?,
                }
                folder
            }
            place => {
                let mut builder = tempfile::Builder::new();
                builder.prefix("jitscribe-objects-").permissions(Permissions::from_mode(0o700));
                builder.tempdir_in(place).map_err(Error::file(place))?.keep()
            }
        };
        let folder = fs::canonicalize(&folder).map_err(Error::file(&folder))?;
        folder.as_os_str().clone_into(variable);
        let before = Some(names(&folder).collect());
        Ok(Self { folder: Some(folder), before })
    }

    /// The folders that may contain dumps and perf maps.
    pub fn folders(&self, workspace: &Path) -> Vec<PathBuf> {
        let own = self.folder.iter().filter(|folder| *folder != workspace);
        own.cloned().chain([workspace.to_owned()]).collect()
    }

    /// Whether there are object files of the process that wrote this valgrind output file.
    pub fn are_of(&self, file: &Path) -> bool {
        let pid = file.extension().and_then(OsStr::to_str).unwrap_or_default();
        let begin = format!("jit-{pid}-");
        let is_one = |name: OsString| {
            name.to_str().is_some_and(|name| name.starts_with(&begin) && name.ends_with(".so"))
        };
        self.folder.iter().any(|folder| names(folder).any(is_one))
    }

    /// The message for a process that has object files.
    pub fn line(&self) -> String {
        let folder = self.folder.as_deref().unwrap_or(Path::new("."));
        format!(
            "the process announced its code, so valgrind had names while it ran; object files: {}",
            shell_word(folder)
        )
    }

    /// Keeps all files.
    pub fn keep(&mut self) {
        self.before = None;
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        let Some((folder, before)) = self.folder.as_ref().zip(self.before.as_ref()) else { return };
        let is_dump = |name: &OsString| {
            !before.contains(name) && Path::new(name).extension() == Some(OsStr::new("dump"))
        };
        // A dump that cannot be deleted does no harm.
        for name in names(folder).filter(is_dump) {
            _ = fs::remove_file(folder.join(name));
        }
        if before.is_empty() {
            // Fails if the folder is not empty.
            _ = fs::remove_dir(folder);
        }
    }
}

fn names(folder: &Path) -> impl Iterator<Item = OsString> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name())
}
