//! HTML files that are written for the user's browser.

use std::io::{self, Write};
use std::path::Path;

use profile_report::is_report;

use crate::text::{self, shell_word};
use crate::view::Target;
use crate::{Error, Result, browser, note};

/// An HTML file, or standard output.
pub struct Html<'a> {
    /// `None` for standard output.
    path: Option<&'a Path>,
    target: Target,
    open: bool,
}

impl<'a> Html<'a> {
    /// Fails if it may not be written, before work is spent on it. An HTML file of this command is replaced, another file with `force` only.
    pub fn create(path: &'a Path, open: bool, force: bool) -> Result<Self> {
        let path = text::named_file(path);
        if open && path.is_none() {
            return Err(Error::Usage("--open needs a file: write it with -o FILE".into()));
        }
        if path.is_none() {
            text::refuse_terminal("report")?;
        }
        let target = Target::open(path, force || path.is_some_and(is_report))?;
        Ok(Self { path, target, open })
    }

    /// Writes it. `write` answers what is in it, of which `describe` makes what is said, and the size.
    pub fn write<Summary>(
        self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<Summary>,
        describe: impl FnOnce(&Summary) -> (String, u64),
    ) -> Result<()> {
        let summary = self.target.write(write)?;
        let (line, bytes) = describe(&summary);
        note::say(line);
        let Some(path) = self.path else { return Ok(()) };
        let next = if self.open { "" } else { "; open it in a browser" };
        let mebibytes = bytes as f64 / f64::from(1 << 20);
        note::say(format_args!("written: {} ({mebibytes:.1} MiB){next}", shell_word(path)));
        if self.open { browser::open(path) } else { Ok(()) }
    }
}
