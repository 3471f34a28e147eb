//! What was done to a file of valgrind's: for the person at the terminal, and for programs.

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;

use super::FileArgs;
use super::namer::Found;
use crate::inject::shell_word;
use crate::known::KnownSource;
use crate::{Error, Result, note};

/// What was done. With `--json` this is printed as it stands.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The tool whose file it is.
    pub tool: &'static str,
    /// The file that was read.
    pub input: PathBuf,
    /// The file that was written; none for standard output.
    pub output: Option<PathBuf>,
    /// What it holds.
    #[serde(flatten)]
    pub summary: Summary,
    /// The files that told of code.
    pub sources: Vec<KnownSource>,
    /// What was left out or put right.
    pub warnings: Vec<String>,
}

/// What a file holds. The meanings are those of [`valgrind_log::Counts`].
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Summary {
    /// Frames of stacks, or entries of a table of frames.
    pub frames: u64,
    /// Of these, addresses that had no name.
    pub unknown: u64,
    /// Of these, those that have one now.
    pub named: u64,
    /// Of these, those where other code was at another time.
    pub doubtful: u64,
    /// Stacks with a frame that was named.
    pub stacks: u64,
    /// Of these, those that do not lead out of jitted code.
    pub broken_stacks: u64,
    /// Loss records that now say the same as an earlier one.
    pub repeated_records: u64,
}

impl Report {
    /// Puts together what was counted and found.
    pub fn new(
        tool: &'static str,
        args: &FileArgs,
        output: Option<PathBuf>,
        counts: &valgrind_log::Counts,
        found: Found,
    ) -> Self {
        let valgrind_log::Counts { frames, unknown, named, doubtful, stacks, broken, repeated } =
            *counts;
        let summary = Summary {
            frames,
            unknown,
            named,
            doubtful,
            stacks,
            broken_stacks: broken,
            repeated_records: repeated,
        };
        let mut warnings = found.warnings;
        warnings.extend(summary.warnings());
        Self { tool, input: args.input.clone(), output, summary, sources: found.sources, warnings }
    }

    /// Says on standard error what was done.
    pub fn say(&self) {
        self.say_what();
        if let Some(output) = &self.output {
            let output = shell_word(output);
            note::say(match self.tool {
                "massif" => format!("written: {output}; now: ms_print {output}"),
                "dhat" => format!("written: {output}; now: load it into dh_view.html"),
                _ => format!("written: {output}"),
            });
        }
    }

    /// The same, but for where it was written.
    pub fn say_what(&self) {
        for warning in &self.warnings {
            note::warning(warning);
        }
        note::say(self.line());
    }

    /// What was done, in one line.
    fn line(&self) -> String {
        let Summary { frames, unknown, named, .. } = self.summary;
        let codes: usize = self.sources.iter().map(|source| source.codes).sum();
        format!(
            "{}: {frames} frames, {unknown} of them addresses without a name: {named} named, {} \
             left; {codes} codes from {} files",
            self.input.display(),
            unknown.saturating_sub(named),
            self.sources.len(),
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

impl Summary {
    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.doubtful > 0 {
            warnings.push(format!(
                "{} of the named frames are where different code was at different times; the one \
                 that was there last is named",
                self.doubtful
            ));
        }
        if self.broken_stacks > 0 {
            warnings.push(format!(
                "{} of {} stacks in jitted code do not lead out of it: valgrind had no unwind \
                 tables for that code, and what it took for callers cannot be put right \
                 afterwards. A runtime that keeps frame pointers, or announces its code through \
                 jitscribe while it runs under valgrind, is unwound whole",
                self.broken_stacks, self.stacks
            ));
        }
        if self.repeated_records > 0 {
            warnings.push(format!(
                "{} loss records say the same as an earlier one now that addresses have names; \
                 valgrind tells them apart by address, and they are left apart",
                self.repeated_records
            ));
        }
        warnings
    }
}
