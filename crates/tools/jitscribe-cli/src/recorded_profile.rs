//! Reads a recording as a profile, for the verbs that show one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use jitscribe_inject::Progress;
use profile_recording::{Options, RecordedProfile};

use crate::files::Believed;
use crate::{Result, note};

/// Reads the recording `path`, or standard input for `-`, and passes it to `show`. Prints what was left out.
pub fn read<T>(path: &Path, show: impl FnOnce(RecordedProfile<'_>) -> Result<T>) -> Result<T> {
    let size = fs::metadata(path).map_or(0, |file| file.len());
    let bar = note::progress("reading the recording", size);
    let progress = |progress| {
        if let Progress::At(offset) = progress {
            bar.set_position(offset);
        }
    };
    read_with(path, &progress, |recorded| {
        bar.finish_and_clear();
        for warning in &recorded.warnings {
            note::warning(warning);
        }
        show(recorded)
    })
}

/// Like [`read`], and prints nothing.
pub fn read_quietly<T>(
    path: &Path,
    show: impl FnOnce(RecordedProfile<'_>) -> Result<T>,
) -> Result<T> {
    read_with(path, &|_| {}, show)
}

fn read_with<T>(
    path: &Path,
    progress: &dyn Fn(Progress),
    show: impl FnOnce(RecordedProfile<'_>) -> Result<T>,
) -> Result<T> {
    let named = Some(path).filter(|path| path.as_os_str() != "-");
    // Whether it was made on this machine is not known yet. Without that, files that other users left in `/tmp` are not trusted for processes of theirs:
    // `inject` asks, and its result needs no such files.
    let believed = Believed::about(named, &BTreeMap::new(), false, &[]);
    let mut options = Options::default();
    options.files = &believed;
    show(profile_recording::read(path, &options, progress)?)
}
