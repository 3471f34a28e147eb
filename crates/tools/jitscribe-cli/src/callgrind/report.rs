//! The report on a rewritten profile, as text and as JSON.

use std::path::PathBuf;

use callgrind::{Event, Summary};
use serde::Serialize;

use crate::symbols::SourceSummary;
use crate::text::shell_word;
use crate::{Result, note, text};

/// The report. `--json` prints it in this form.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The profile that was read.
    #[serde(serialize_with = "text::path_in_json")]
    pub input: PathBuf,
    /// The profile that was written; `None` for standard output.
    #[serde(serialize_with = "text::path_in_json")]
    pub output: Option<PathBuf>,
    /// The object file with the code's bytes, if they are available.
    #[serde(serialize_with = "text::path_in_json")]
    pub image: Option<PathBuf>,
    /// The process.
    pub pid: Option<u32>,
    /// The counts of what was found and named.
    #[serde(flatten)]
    pub summary: Summary,
    /// The files with code.
    pub sources: Vec<SourceSummary>,
    /// What was skipped, and what was guessed.
    pub warnings: Vec<String>,
}

impl Report {
    /// Prints the report on standard error.
    pub fn say(&self) {
        for warning in &self.warnings {
            note::warning(warning);
        }
        note::say(self.line());
        if let Some(output) = &self.output {
            let output = shell_word(output);
            note::say(format_args!("written: {output}; next: kcachegrind {output}"));
        }
    }

    /// The report in one line.
    pub fn line(&self) -> String {
        let codes: usize = self.sources.iter().map(|source| source.codes).sum();
        let told = format!("{codes} codes from {} files", self.sources.len());
        let Some(Event { name, total, unknown, named, .. }) = self.summary.events.first() else {
            return format!("{}: no events; {told}", text::path(&self.input));
        };
        let left = unknown.saturating_sub(*named);
        let lines = self.restored_lines().unwrap_or_default();
        format!(
            "{}: {} of {total} {name} in unknown code before, {} now; {} contexts are {} functions; {lines}{told}",
            text::path(&self.input),
            percent(*unknown, *total),
            percent(left, *total),
            self.summary.contexts,
            self.summary.functions,
        )
    }

    /// How much was in announced code without a right line.
    fn restored_lines(&self) -> Option<String> {
        let Event { name, total, without_line, restored, corrected, .. } =
            self.summary.events.first()?;
        if without_line.saturating_add(*corrected) == 0 {
            return None;
        }
        Some(format!(
            "{} {name} in announced code had no line or that of other code, {} now; ",
            percent(without_line.saturating_add(*corrected), *total),
            percent(without_line.saturating_sub(*restored), *total),
        ))
    }

    /// Prints it as JSON on standard output.
    pub fn print_json(&self) -> Result<()> {
        let mut out = text::Out::new();
        out.json_pretty(self)?;
        out.finish()
    }
}

fn percent(part: u64, whole: u64) -> String {
    if part == 0 {
        return "0 %".into();
    }
    format!("{:.2} %", part as f64 * 100.0 / whole.max(1) as f64)
}
