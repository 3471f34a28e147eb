//! Reading a recording into a profile, for all verbs that show one.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use jitscribe_inject::{Progress, Stage};
use profile::Profile;
use profile_recording::{Options, RecordedProfile};

use crate::files::Believed;
use crate::{Error, Result, descriptors, note, text};

/// Whose files are believed for a recording.
pub fn believed(input: &Path) -> Believed {
    let path = Some(input).filter(|input| input.as_os_str() != "-");
    Believed::about(path, &BTreeMap::new(), false, &[])
}

/// Reads a recording. Says what was left out, and what is missing.
pub fn read<'f>(input: &Path, files: &'f Believed) -> Result<RecordedProfile<'f>> {
    descriptors::raise();
    let size = fs::metadata(input).map_or(0, |file| file.len());
    let bar = note::progress("reading the recording", size);
    let begun = Cell::new(None);
    let progress = |progress| match progress {
        Progress::Begins(stage) if begun.replace(Some(stage)) != Some(stage) => {
            bar.set_message(message(stage));
        }
        Progress::At(offset) => bar.set_position(offset),
        _ => {}
    };
    let mut options = Options::default();
    options.files = files;
    let recorded = profile_recording::read(input, &options, &progress)?;
    bar.finish_and_clear();
    for warning in &recorded.warnings {
        note::warning(warning);
    }
    let profile = &recorded.profile;
    for missing in &profile.missing {
        let path = text::name(profile.text(missing.path));
        note::detail(format_args!("{path}: {} ({} samples)", missing.cause, missing.samples));
    }
    if profile.samples().is_empty() {
        return Err(Error::Refused(format!("{}: the recording has no samples", text::path(input))));
    }
    Ok(recorded)
}

/// The profile of a recording that this command has made itself. Prints nothing.
pub fn read_quietly(input: &Path) -> Result<Profile> {
    let files = believed(input);
    let mut options = Options::default();
    options.files = &files;
    Ok(profile_recording::read(input, &options, &|_| {})?.profile)
}

fn message(stage: Stage) -> &'static str {
    match stage {
        Stage::Reading => "reading the recording",
        Stage::Attributing => "looking for the code",
        Stage::WritingImages => "writing object files",
        _ => "reading the samples",
    }
}
