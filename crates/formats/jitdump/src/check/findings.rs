//! Collecting findings: one for each rule, however often it is violated.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::rules::{RULES, Rule};
use super::severity::Severity;

/// How many offsets a [`Finding`] keeps.
pub const MAX_OFFSETS: usize = 8;

/// All occurrences of one rule's problem in a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The severity.
    pub severity: Severity,
    /// Name of the rule, which is stable: see [`RULES`].
    pub rule: &'static str,
    /// Offset in the file of the first occurrence.
    pub offset: u64,
    /// Offsets of the first occurrences, at most [`MAX_OFFSETS`].
    pub offsets: Vec<u64>,
    /// Number of occurrences.
    pub count: u64,
    /// What is wrong at the first occurrence.
    pub what: String,
    /// What it costs the user, and with which tool.
    pub cost: &'static str,
    /// How the writer can fix it.
    pub fix: &'static str,
}

/// The findings so far, by the name of the rule.
#[derive(Debug, Default)]
pub(super) struct Findings(BTreeMap<&'static str, Finding>);

impl Findings {
    /// Records that `rule` is violated at `offset`. `what` is called only the first time.
    pub(super) fn add(&mut self, rule: &Rule, offset: u64, what: impl FnOnce() -> String) {
        self.0
            .entry(rule.name)
            .and_modify(|finding| {
                finding.count = finding.count.saturating_add(1);
                if finding.offsets.len() < MAX_OFFSETS {
                    finding.offsets.push(offset);
                }
            })
            .or_insert_with(|| Finding {
                severity: rule.severity,
                rule: rule.name,
                offset,
                offsets: vec![offset],
                count: 1,
                what: what(),
                cost: rule.cost,
                fix: rule.fix,
            });
    }

    pub(super) fn into_vec(mut self) -> Vec<Finding> {
        let mut all: Vec<Finding> =
            RULES.iter().filter_map(|rule| self.0.remove(rule.name)).collect();
        all.sort_by_key(|finding| Reverse(finding.severity));
        all
    }
}
