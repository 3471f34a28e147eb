//! HTML files that are written for the user's browser.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use jitscribe_inject::output::Output;
use profile_report::BEGINNING;

use crate::text::{self, Out, shell_word};
use crate::{Error, Result, browser, note};

/// An HTML file, or standard output.
pub struct Html<'a> {
    path: &'a Path,
    /// `None` for standard output.
    file: Option<Output>,
    open: bool,
}

impl<'a> Html<'a> {
    /// Before work is spent on what may not be written. A file of `jitscribe` is replaced, another one with `force` only.
    pub fn create(path: &'a Path, open: bool, force: bool) -> Result<Self> {
        let is_file = path.as_os_str() != "-";
        if open && !is_file {
            return Err(Error::Usage("--open needs a file: write it with -o FILE".into()));
        }
        if !is_file && text::is_terminal() {
            return Err(Error::Refused(
                "standard output is a terminal; write the report to a file with -o FILE".into(),
            ));
        }
        let create = || Output::create(path, force || is_report(path));
        let file = is_file.then(create).transpose()?;
        Ok(Self { path, file, open })
    }

    /// Writes it. `write` answers what is in it, of which `describe` makes what is said, and the size.
    pub fn write<Summary>(
        self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<Summary>,
        describe: impl FnOnce(&Summary) -> (String, u64),
    ) -> Result<()> {
        let Self { path, file, open } = self;
        let Some(mut file) = file else {
            let mut out = Out::new();
            let summary = write(&mut out).map_err(Error::Stdout)?;
            out.finish()?;
            note::say(describe(&summary).0);
            return Ok(());
        };
        let mut out = BufWriter::with_capacity(1 << 16, file.file());
        let written = write(&mut out);
        let flushed = written.and_then(|summary| out.flush().map(|()| summary));
        drop(out);
        let summary = flushed.map_err(Error::file(path))?;
        file.finish()?;
        let (line, bytes) = describe(&summary);
        note::say(line);
        let next = if open { "" } else { "; open it in a browser" };
        let mebibytes = bytes as f64 / f64::from(1 << 20);
        note::say(format_args!("written: {} ({mebibytes:.1} MiB){next}", shell_word(path)));
        if open { browser::open(path) } else { Ok(()) }
    }
}

/// Whether a file is one that this command has written, which may be replaced.
fn is_report(path: &Path) -> bool {
    // A symbolic link, a pipe or a device is none.
    if !path.symlink_metadata().is_ok_and(|file| file.is_file()) {
        return false;
    }
    let mut first = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(BEGINNING.len() as u64).read_to_end(&mut first));
    read.is_ok() && first == BEGINNING.as_bytes()
}
