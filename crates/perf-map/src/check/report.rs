//! What a check found.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::Rule;

/// How many findings of one rule a [`Report`] keeps. All are counted.
pub const KEPT_PER_RULE: u64 = 100;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It may mislead a tool or its user.
    Warning,
    /// Some tool in use loses the symbol, or names it wrongly.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The rule's name. It does not change between versions.
    pub rule: &'static str,
    /// Offset of the line's first byte in the file.
    pub offset: u64,
    /// Number of the line, from 1.
    pub line: u64,
    /// What is wrong here.
    pub what: String,
    /// What it costs, and in which tool.
    pub cost: &'static str,
    /// How the writer should mend it.
    pub mend: &'static str,
}

/// How often a rule was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// The rule.
    pub rule: &'static Rule,
    /// The number of its findings, kept or not.
    pub count: u64,
}

/// What [`check`](super::check) found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of entries that could be read.
    pub entries: u64,
    /// The findings in the order of the file, of each rule the first
    /// [`KEPT_PER_RULE`]. A file of a million wrong lines has one thing wrong with
    /// it, a million times.
    pub findings: Vec<Finding>,
    /// The rules broken, each once, in the order of their first finding.
    pub tallies: Vec<Tally>,
}

impl Report {
    /// The number of findings of a severity, kept or not.
    #[must_use]
    pub fn count(&self, severity: Severity) -> u64 {
        let of_severity = self.tallies.iter().filter(|tally| tally.rule.severity == severity);
        of_severity.fold(0, |sum, tally| sum.saturating_add(tally.count))
    }

    pub(super) fn add(
        &mut self,
        rule: &'static Rule,
        offset: u64,
        line: u64,
        what: impl FnOnce() -> String,
    ) {
        let count = match self.tallies.iter_mut().find(|tally| tally.rule.name == rule.name) {
            Some(tally) => {
                tally.count = tally.count.saturating_add(1);
                tally.count
            }
            None => {
                self.tallies.push(Tally { rule, count: 1 });
                1
            }
        };
        if count <= KEPT_PER_RULE {
            self.findings.push(Finding {
                severity: rule.severity,
                rule: rule.name,
                offset,
                line,
                what: what(),
                cost: rule.cost,
                mend: rule.mend,
            });
        }
    }
}
