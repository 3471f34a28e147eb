//! What an injection did: for the person at the terminal, and for programs.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::weigh::Counts;
use crate::files::Kind;
use crate::{Error, Result, note};

/// What was done. With `--json` this is printed as it stands; sizes are bytes, times nanoseconds.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The recording that was read.
    pub input: PathBuf,
    /// The recording that was written; none for standard output.
    pub output: Option<PathBuf>,
    /// Events read.
    pub events: u64,
    /// Samples by where they were taken.
    pub samples: Counts,
    /// The files that told of code.
    pub sources: Vec<SourceReport>,
    /// Object files written.
    pub images: Vec<ImageReport>,
    /// Functions by the number of samples in them, most first.
    pub top: Vec<TopFunction>,
    /// What was left out or put right.
    pub warnings: Vec<String>,
}

/// A file that told of code.
#[derive(Debug, Serialize)]
pub struct SourceReport {
    /// Where it lies.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// The process that it is of.
    pub pid: u32,
    /// How many pieces of code it told of.
    pub codes: usize,
    /// What was added to its times to make them the recording's.
    pub clock_offset_ns: i64,
}

/// An object file that was written.
#[derive(Debug, Serialize)]
pub struct ImageReport {
    /// Where it lies.
    pub path: PathBuf,
    /// Its apparent size: holes count.
    pub size: u64,
    /// Its build-id, in hexadecimal.
    pub build_id: String,
}

/// A function with samples.
#[derive(Debug, Serialize)]
pub struct TopFunction {
    /// Its name.
    pub name: String,
    /// Samples in it.
    pub samples: u64,
    /// Whether its machine code is known, so that there is assembly to be seen: a perf map has none.
    pub has_code: bool,
}

impl Report {
    /// Says on standard error what must be known.
    pub fn warn(&self) {
        for warning in &self.warnings {
            note::warning(warning);
        }
    }

    /// Prints it as JSON on standard output.
    pub fn print_json(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, self)
            .map_err(|error| Error::Stdout(error.into()))?;
        writeln!(out).map_err(Error::Stdout)
    }

    /// Says on standard error what was done.
    pub fn say(&self) {
        self.warn();
        let Counts { samples, named, unnamed, .. } = self.samples;
        let codes: usize = self.sources.iter().map(|source| source.codes).sum();
        note::say(format_args!(
            "{}: {} samples, {} in jitted code: {named} named, {unnamed} unnamed; {codes} codes \
             from {} files, {} images",
            self.input.display(),
            samples,
            self.samples.jitted(),
            self.sources.len(),
            self.images.len(),
        ));
        if let Some(output) = &self.output {
            let output = shell_word(output);
            note::say(format_args!("written: {output}; now: perf report -i {output}"));
        }
    }
}

/// A path as one would type it.
pub fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
