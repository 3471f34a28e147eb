//! The report on a rewritten valgrind file, as text and as JSON.

use std::path::PathBuf;

use serde::Serialize;

use super::file_args::FileArgs;
use super::namer::NamingSummary;
use crate::symbols::SourceSummary;
use crate::text::shell_word;
use crate::{Result, note, text};

/// The report. `--json` prints it in this form.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The tool that wrote the file.
    pub tool: &'static str,
    /// The file that was read.
    #[serde(serialize_with = "text::path_in_json")]
    pub input: PathBuf,
    /// The file that was written; `None` for standard output.
    #[serde(serialize_with = "text::path_in_json")]
    pub output: Option<PathBuf>,
    /// Counts of its content.
    #[serde(flatten)]
    pub summary: Summary,
    /// The files with code.
    pub sources: Vec<SourceSummary>,
    /// What was skipped or corrected.
    pub warnings: Vec<String>,
}

/// Counts of the content of a file, with the same meaning as in [`valgrind_log::Counts`].
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Summary {
    /// Frames of stacks, or entries of a table of frames.
    pub frames: u64,
    /// Frames, among these, that were addresses without a name.
    pub unknown: u64,
    /// Frames, among the unknown ones, that now have a name.
    pub named: u64,
    /// Frames, among the named ones, whose address held other code at another time.
    pub doubtful: u64,
    /// Stacks with a frame that was named.
    pub stacks: u64,
    /// Stacks, among these, that end inside jitted code.
    pub broken_stacks: u64,
    /// Loss records that are now identical to an earlier one.
    pub repeated_records: u64,
}

impl Report {
    /// Builds the report from the counts and findings.
    pub fn new(
        tool: &'static str,
        args: &FileArgs,
        output: Option<PathBuf>,
        counts: &valgrind_log::Counts,
        found: NamingSummary,
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

    /// Prints the report on standard error.
    pub fn say(&self) {
        self.say_what();
        if let Some(output) = &self.output {
            let output = shell_word(output);
            note::say(match self.tool {
                "massif" => format!("written: {output}; next: ms_print {output}"),
                "dhat" => format!("written: {output}; next: load it into dh_view.html"),
                _ => format!("written: {output}"),
            });
        }
    }

    /// Prints the report without the path of the output.
    pub fn say_what(&self) {
        for warning in &self.warnings {
            note::warning(warning);
        }
        note::say(self.line());
    }

    /// The report in one line.
    fn line(&self) -> String {
        let Summary { frames, unknown, named, .. } = self.summary;
        let codes: usize = self.sources.iter().map(|source| source.codes).sum();
        format!(
            "{}: {frames} frames, {unknown} of them addresses without a name: {named} named, {} \
             left; {codes} codes from {} files",
            text::path(&self.input),
            unknown.saturating_sub(named),
            self.sources.len(),
        )
    }

    /// Prints it as JSON on standard output.
    pub fn print_json(&self) -> Result<()> {
        let mut out = text::Out::new();
        out.json_pretty(self)?;
        out.finish()
    }
}

impl Summary {
    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.doubtful > 0 {
            warnings.push(format!(
                "{} of the named frames are at addresses that held different code at different \
                 times; the last code there is named",
                self.doubtful
            ));
        }
        if self.broken_stacks > 0 {
            warnings.push(format!(
                "{} of {} stacks in jitted code do not lead out of it: valgrind had no unwind \
                 tables for that code, and wrong callers cannot be corrected afterwards. Stacks \
                 are complete if the runtime keeps frame pointers, or announces its code through \
                 jitscribe while it runs under valgrind",
                self.broken_stacks, self.stacks
            ));
        }
        if self.repeated_records > 0 {
            warnings.push(format!(
                "{} loss records are identical to an earlier one now that addresses have names; \
                 valgrind distinguishes them by address, so they are kept apart",
                self.repeated_records
            ));
        }
        warnings
    }
}
