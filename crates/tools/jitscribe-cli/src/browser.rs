//! The user's browser.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::text::path as shown;
use crate::{Error, Result, note};

/// Opens a file in the user's browser: that of `$BROWSER`, or of the desktop.
pub fn open(file: &Path) -> Result<()> {
    // Not relative, as it could be taken for an option or for a site.
    let file = fs::canonicalize(file).map_err(Error::file(file))?;
    let browser = std::env::var_os("BROWSER").filter(|browser| !browser.is_empty());
    let browser = browser.unwrap_or_else(|| OsString::from("xdg-open"));
    let mut command = Command::new(&browser);
    // It goes on when this command ends, and Ctrl-C is not meant for it.
    command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0);
    note::detail(format_args!("{} {}", shown(&browser), shown(&file)));
    match command.spawn() {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::Refused(format!(
            "it was written, but {} cannot be run ({error}); open {} in a browser, or set BROWSER",
            shown(&browser),
            shown(&file)
        ))),
    }
}
