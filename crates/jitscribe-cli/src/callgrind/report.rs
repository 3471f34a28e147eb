//! What was done to a profile: for the person at the terminal, and for programs.

use std::io::Write;
use std::path::PathBuf;

use callgrind::{Event, Summary};
use serde::Serialize;

use crate::inject::shell_word;
use crate::known::KnownSource;
use crate::{Error, Result, note};

/// What was done. With `--json` this is printed as it stands.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The profile that was read.
    pub input: PathBuf,
    /// The profile that was written; none for standard output.
    pub output: Option<PathBuf>,
    /// The object file with the code's bytes, if anybody wrote them down.
    pub image: Option<PathBuf>,
    /// The process.
    pub pid: Option<u32>,
    /// What was found and what became of it.
    #[serde(flatten)]
    pub summary: Summary,
    /// The files that told of code.
    pub sources: Vec<KnownSource>,
    /// What was left out, and what was guessed.
    pub warnings: Vec<String>,
}

impl Report {
    /// Says on standard error what was done.
    pub fn say(&self) {
        for warning in &self.warnings {
            note::warning(warning);
        }
        note::say(self.line());
        if let Some(output) = &self.output {
            let output = shell_word(output);
            note::say(format_args!("written: {output}; now: kcachegrind {output}"));
        }
    }

    /// What was done, in one line.
    pub fn line(&self) -> String {
        let codes: usize = self.sources.iter().map(|source| source.codes).sum();
        let told = format!("{codes} codes from {} files", self.sources.len());
        let Some(Event { name, total, unknown, named, .. }) = self.summary.events.first() else {
            return format!("{}: no events; {told}", self.input.display());
        };
        let left = unknown.saturating_sub(*named);
        format!(
            "{}: {} of {total} {name} in unknown code before, {} now; {} contexts are {} functions; {told}",
            self.input.display(),
            percent(*unknown, *total),
            percent(left, *total),
            self.summary.contexts,
            self.summary.functions,
        )
    }

    /// Prints it as JSON on standard output.
    pub fn print_json(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, self)
            .map_err(|error| Error::Stdout(error.into()))?;
        writeln!(out).map_err(Error::Stdout)
    }
}

fn percent(part: u64, whole: u64) -> String {
    if part == 0 {
        return "0 %".into();
    }
    format!("{:.2} %", part as f64 * 100.0 / whole.max(1) as f64)
}
