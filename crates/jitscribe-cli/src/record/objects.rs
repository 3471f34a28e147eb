//! What programs that link the library write under valgrind: the object files that valgrind's output
//! names and KCachegrind disassembles, which stay, and a dump beside them, which does not.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::Args;
use crate::inject::shell_word;
use crate::runtimes::Preparation;
use crate::{Error, Result};

/// By which the library is told the folder.
const VARIABLE: &str = "JITSCRIBE_DIR";

/// The folder, FILE.jit. What is not to stay there goes when this is dropped.
#[derive(Debug)]
pub struct Objects {
    /// None if the user has chosen one, or nothing is set at all.
    folder: Option<PathBuf>,
    /// What was there before; `None` if all is to stay.
    before: Option<HashSet<OsString>>,
}

impl Objects {
    /// Makes the folder, or takes the workspace if that stays, and has the library write there.
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
        let folder = super::with_suffix(base, ".jit");
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if folder.is_dir() => drop(error),
            made => made.map_err(Error::file(&folder))?,
        }
        let folder = fs::canonicalize(&folder).map_err(Error::file(&folder))?;
        folder.as_os_str().clone_into(variable);
        let before = Some(names(&folder).collect());
        Ok(Self { folder: Some(folder), before })
    }

    /// Where files may be that tell of code.
    pub fn folders(&self, workspace: &Path) -> Vec<PathBuf> {
        let own = self.folder.iter().filter(|folder| *folder != workspace);
        own.cloned().chain([workspace.to_owned()]).collect()
    }

    /// Whether the process that a file of valgrind's is of has object files.
    pub fn are_of(&self, file: &Path) -> bool {
        let pid = file.extension().and_then(OsStr::to_str).unwrap_or_default();
        let begin = format!("jit-{pid}-");
        let is_one = |name: OsString| {
            name.to_str().is_some_and(|name| name.starts_with(&begin) && name.ends_with(".so"))
        };
        self.folder.iter().any(|folder| names(folder).any(is_one))
    }

    /// What it means that there are any.
    pub fn line(&self) -> String {
        let folder = self.folder.as_deref().unwrap_or(Path::new("."));
        format!(
            "the process announced its code: it had its names while it ran; object files: {}",
            shell_word(folder)
        )
    }

    /// Leaves everything.
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
        // What cannot be deleted is none the worse for being there.
        for name in names(folder).filter(is_dump) {
            _ = fs::remove_file(folder.join(name));
        }
        if before.is_empty() {
            // Only if it is empty.
            _ = fs::remove_dir(folder);
        }
    }
}

fn names(folder: &Path) -> impl Iterator<Item = OsString> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name())
}
