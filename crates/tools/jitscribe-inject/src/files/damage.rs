//! Warnings about damaged files, and about what of them is still used.

use std::io;
use std::path::Path;

use jitdump::{End, Outcome};

use crate::Warning;

/// Damaged places of one file: the first is reported, the rest are counted.
#[derive(Debug, Default)]
pub struct Damage {
    first: Option<String>,
    more: usize,
}

impl Damage {
    /// Adds a damaged place.
    pub fn note(&mut self, error: &dyn std::fmt::Display) {
        match self.first {
            None => self.first = Some(error.to_string()),
            Some(_) => self.more += 1,
        }
    }

    /// Adds a warning to `warnings` if there was any.
    pub fn report<W: From<Warning>>(self, path: &Path, warnings: &mut Vec<W>) {
        let Self { first: Some(first), more } = self else { return };
        warnings.push(Warning::Damaged { path: path.to_owned(), first, more }.into());
    }
}

/// Adds to `warnings` how a jitdump with `count` codes ended, if that was not as it should be.
pub fn report_end<W: From<Warning>>(
    path: &Path,
    count: usize,
    outcome: io::Result<Option<Outcome>>,
    warnings: &mut Vec<W>,
) {
    let mut warn = |warning: Warning| warnings.push(warning.into());
    let (path, codes) = (path.to_owned(), count);
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            let (path, cause) = (path.clone(), error.to_string());
            warn(Warning::ReadingFailed { path, cause, codes });
            None
        }
    };
    let left_out = outcome.map_or(0, |outcome| outcome.left_out.count);
    if left_out > 0 {
        warn(Warning::CodesMissing { path: path.clone(), count: left_out });
    }
    match outcome.map(|outcome| outcome.end) {
        Some(End::CutOff { offset, .. }) => warn(Warning::JitdumpCutOff { path, offset, codes }),
        Some(End::Damaged { offset }) => warn(Warning::JitdumpEndsEarly { path, offset, codes }),
        _ => {}
    }
}
