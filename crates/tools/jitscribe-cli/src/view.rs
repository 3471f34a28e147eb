//! What the verbs that show recordings have in common: where they print and write, and their JSON.

use std::ffi::OsStr;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use jitscribe_inject::output::{Folder, Output};
use profile_text::Line;
use serde::Serialize;

use crate::text::Out;
use crate::{Error, Result, text};

/// The version of the JSON of `report`, `annotate` and `diff`. It grows when a field is removed or changes its meaning, not when one is added.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Shown<'a, View> {
    schema_version: u32,
    verb: &'static str,
    /// The recordings that are shown.
    recordings: Vec<std::borrow::Cow<'a, str>>,
    #[serde(flatten)]
    view: View,
}

/// Prints a view as JSON on standard output.
pub fn print_json(verb: &'static str, recordings: &[&Path], view: impl Serialize) -> Result<()> {
    let recordings = recordings.iter().map(|path| path.to_string_lossy()).collect();
    let mut out = Out::new();
    out.json_pretty(&Shown { schema_version: SCHEMA_VERSION, verb, recordings, view })?;
    out.finish()
}

/// Prints lines on standard output; on a terminal, through a pager.
pub fn print(lines: &[Line], pager: bool) -> Result<()> {
    let mut out = match pager && text::is_terminal() {
        true => Out::paged(),
        false => Out::new(),
    };
    for line in lines {
        out.styled(line)?;
    }
    out.finish()
}

/// Where a view is written: to a file, which appears when it is complete, or to standard output.
#[derive(Debug)]
pub struct Target(Option<Output>);

impl Target {
    /// A file at `path`, or standard output. Fails if it may not be written, before work is spent on it.
    pub fn open(path: Option<&Path>, replace: bool) -> Result<Self> {
        Ok(Self(path.map(|path| Output::create(path, replace)).transpose()?))
    }

    /// A file in a folder that is open.
    #[cfg_attr(not(feature = "parquet"), allow(dead_code, reason = "only tables have folders"))]
    pub fn within(folder: &Arc<Folder>, name: &OsStr, replace: bool) -> Result<Self> {
        Ok(Self(Some(Output::create_in(folder, name, replace)?)))
    }

    /// Writes it.
    pub fn write<T>(self, write: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> Result<T> {
        let Some(mut output) = self.0 else {
            let mut out = Out::new();
            let written = write(&mut out).map_err(Error::Stdout)?;
            out.finish()?;
            return Ok(written);
        };
        let mut out = BufWriter::with_capacity(1 << 16, output.file());
        let written = write(&mut out).and_then(|written| out.flush().map(|()| written));
        drop(out);
        let written = written.map_err(Error::file(output.path()))?;
        output.finish()?;
        Ok(written)
    }
}
