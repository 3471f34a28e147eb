//! How far the reading of a recording is.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use indicatif::ProgressBar;
use jitscribe_inject::{Progress, Stage};

use crate::note;

/// A progress bar with the stage of the work.
#[derive(Debug)]
pub struct StageBar {
    bar: ProgressBar,
    begun: Cell<Stage>,
    last: &'static str,
}

impl StageBar {
    /// For a recording. `last` is said of the last stage.
    pub fn new(input: &Path, last: &'static str) -> Self {
        let size = fs::metadata(input).map_or(0, |file| file.len());
        let begun = Stage::Reading;
        Self { bar: note::progress(message(begun, last), size), begun: Cell::new(begun), last }
    }

    /// Shows the progress.
    pub fn show(&self, progress: Progress) {
        match progress {
            Progress::Begins(stage) if self.begun.replace(stage) != stage => {
                let message = message(stage, self.last);
                note::detail(message);
                self.bar.set_message(message);
            }
            Progress::At(offset) => self.bar.set_position(offset),
            _ => {}
        }
    }

    /// Removes the bar.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

fn message(stage: Stage, last: &'static str) -> &'static str {
    match stage {
        Stage::Reading => "reading the recording",
        Stage::Attributing => "looking for the code",
        Stage::WritingImages => "writing object files",
        _ => last,
    }
}
