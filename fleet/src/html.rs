//! The HTML file that is written.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use printable::shell_path;
use profile_report::is_report;
use tempfile::NamedTempFile;

use crate::error::{Error, Result};
use crate::printed;

/// An HTML file, which appears at its path when it is complete.
#[derive(Debug)]
pub struct Html<'a> {
    path: &'a Path,
    file: NamedTempFile,
}

impl<'a> Html<'a> {
    /// Fails if it may not be written, before work is spent on it. An HTML file of jitscribe is replaced, another file with `force` only.
    pub fn create(path: &'a Path, force: bool) -> Result<Self> {
        if !force && path.symlink_metadata().is_ok() && !is_report(path) {
            return Err(Error::Usage(format!(
                "{}: exists, and is no report of jitscribe (--force replaces it)",
                shell_path(path)
            )));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let file = tempfile::Builder::new()
            .prefix(".jitscribe-")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(Error::file(path))?;
        Ok(Self { path, file })
    }

    /// Writes it. `write` answers what is in it, of which `describe` makes what is said, and the size.
    pub fn write<Summary>(
        self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<Summary>,
        describe: impl FnOnce(&Summary) -> (String, u64),
    ) -> Result<()> {
        let Self { path, file } = self;
        let mut out = BufWriter::with_capacity(1 << 16, file.as_file());
        let summary = write(&mut out).and_then(|summary| out.flush().map(|()| summary));
        drop(out);
        let summary = summary.map_err(Error::file(path))?;
        file.persist(path).map_err(|error| Error::file(path)(error.error))?;
        let (said, bytes) = describe(&summary);
        let mebibytes = bytes as f64 / f64::from(1 << 20);
        printed::say(said);
        printed::say(format_args!(
            "written: {} ({mebibytes:.1} MiB); open it in a browser",
            shell_path(path)
        ));
        Ok(())
    }
}
