//! The result of a check.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::rules::{RULES, Rule};
use super::severity::Severity;

/// How many places a [`Finding`] keeps.
pub const MAX_PLACES: usize = 8;

/// A line of the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// Its number, from 1.
    pub line: u64,
}

/// All occurrences of one rule's problem in a map. A file of a million wrong lines usually has one problem, a million
/// times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The severity.
    pub severity: Severity,
    /// The rule's name. It is stable between versions; see [`RULES`].
    pub rule: &'static str,
    /// Offset in the file of the first occurrence.
    pub offset: u64,
    /// The first occurrences, at most [`MAX_PLACES`].
    pub places: Vec<Place>,
    /// Number of occurrences.
    pub count: u64,
    /// What is wrong at the first occurrence.
    pub what: String,
    /// What it costs, and in which tool.
    pub cost: &'static str,
    /// How the writer can fix it.
    pub fix: &'static str,
}

/// What [`check`](super::check) found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of entries that could be read.
    pub entries: u64,
    /// One for each rule that is violated: the most severe first, those of equal severity in the order of [`RULES`].
    pub findings: Vec<Finding>,
}

impl Report {
    /// The highest severity found; `None` if there is no finding.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// Whether there is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.worst() == Some(Severity::Error)
    }

    /// Records that `rule` is violated at a place. `what` is called only the first time.
    pub(super) fn add(
        &mut self,
        rule: &Rule,
        offset: u64,
        line: u64,
        what: impl FnOnce() -> String,
    ) {
        let place = Place { offset, line };
        if let Some(finding) = self.findings.iter_mut().find(|f| f.rule == rule.name) {
            finding.count = finding.count.saturating_add(1);
            if finding.places.len() < MAX_PLACES {
                finding.places.push(place);
            }
            return;
        }
        self.findings.push(Finding {
            severity: rule.severity,
            rule: rule.name,
            offset,
            places: vec![place],
            count: 1,
            what: what(),
            cost: rule.cost,
            fix: rule.fix,
        });
    }

    /// Sorts the findings.
    pub(super) fn sort(&mut self) {
        let position = |name| RULES.iter().position(|rule| rule.name == name);
        self.findings.sort_by_key(|f| (Reverse(f.severity), position(f.rule)));
    }
}
