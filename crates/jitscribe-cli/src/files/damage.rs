//! What is wrong with a file, and what of it is used all the same.

use std::io;
use std::path::Path;

use jitdump::{End, Outcome};

/// Damaged places of one file: the first is told, the rest are counted.
#[derive(Debug, Default)]
pub struct Damage {
    first: Option<String>,
    more: usize,
}

impl Damage {
    /// Takes in one place.
    pub fn note(&mut self, error: &dyn std::fmt::Display) {
        match self.first {
            None => self.first = Some(error.to_string()),
            Some(_) => self.more += 1,
        }
    }

    /// Says what was taken in.
    pub fn tell(self, path: &Path, warnings: &mut Vec<String>) {
        let Some(first) = self.first else { return };
        let more = match self.more {
            0 => String::new(),
            more => format!(", and {more} more such places"),
        };
        let path = path.display();
        warnings.push(format!("{path}: {first}{more}; jitscribe check {path} tells more"));
    }
}

/// Says how a dump ended that told of `count` codes, if that was not as it should be.
pub fn tell_end(
    path: &Path,
    count: usize,
    outcome: io::Result<Option<Outcome>>,
    warnings: &mut Vec<String>,
) {
    let path = path.display();
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            warnings.push(format!("{path}: {error}; its {count} codes before that are applied"));
            None
        }
    };
    let left_out = outcome.map_or(0, |outcome| outcome.left_out.count);
    if left_out > 0 {
        warnings.push(format!(
            "{path}: {left_out} codes are missing: the process had no room for them in its log"
        ));
    }
    match outcome.map(|outcome| outcome.end) {
        Some(End::CutOff { offset, .. }) => warnings.push(format!(
            "{path}: cut off at offset {offset:#x}, or still being written; its {count} codes \
             before that are applied"
        )),
        Some(End::Damaged { offset }) => warnings.push(format!(
            "{path}: from offset {offset:#x} on there are no records; its {count} codes before \
             that are applied"
        )),
        _ => {}
    }
}
