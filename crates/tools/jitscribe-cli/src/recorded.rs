//! Reading a recording into a profile, for all verbs that show one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use profile::Profile;
use profile_recording::{Options, RecordedCode, RecordedProfile};

use crate::files::Believed;
use crate::stage_bar::StageBar;
use crate::{Error, Result, descriptors, note, text};

/// Whose files are believed for a recording.
pub fn believed(input: &Path) -> Believed {
    Believed::about(text::named_file(input), &BTreeMap::new(), false, &[])
}

/// Reads a recording. Says what was left out, and what is missing.
pub fn read<'f>(input: &Path, files: &'f Believed) -> Result<RecordedProfile<'f>> {
    read_with_sources(input, files, &[])
}

/// The same, for a view with sources. Those in `folders` are shown if the folder's owner may read them.
pub fn read_with_sources<'f>(
    input: &Path,
    files: &'f Believed,
    folders: &[PathBuf],
) -> Result<RecordedProfile<'f>> {
    descriptors::raise();
    let bar = StageBar::new(input, "reading the samples");
    let mut options = Options::default();
    options.files = files;
    for folder in folders {
        // The paths in recordings are absolute, and lead through no links.
        options.sources.folders.push(fs::canonicalize(folder).map_err(Error::file(folder))?);
    }
    let recorded = profile_recording::read(input, &options, &|progress| bar.show(progress))?;
    bar.finish();
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

/// How many samples are in files that cannot be looked into, for the end of a line: nothing if there are none.
pub fn missing(profile: &Profile) -> String {
    match profile.missing.iter().map(|missing| missing.samples).sum::<u64>() {
        0 => String::new(),
        samples => {
            format!("; {samples} samples in files that cannot be looked into (-v lists them)")
        }
    }
}

/// Says which sources are not shown, though they are there.
pub fn warn_of_withheld(code: &RecordedCode<'_>) {
    let count = code.withheld().count();
    let Some(first) = code.withheld().next() else { return };
    let sources = if count == 1 { "source" } else { "sources" };
    note::warning(format_args!(
        "{count} {sources} not shown, as the users whose code names them may not read them, as far as is known: {}{}; to show them, \
         name their folder: --source-dir DIR",
        text::name(first),
        if count == 1 { "" } else { ", ..." }
    ));
}

/// Reads a recording that this command has written, and counts whole call stacks.
pub fn read_with_stacks<'f>(input: &Path, files: &'f Believed) -> Result<RecordedProfile<'f>> {
    let bar = StageBar::new(input, "counting the samples");
    let mut options = Options::default();
    (options.files, options.count_stacks) = (files, true);
    let recorded = profile_recording::read(input, &options, &|progress| bar.show(progress))?;
    bar.finish();
    Ok(recorded)
}

/// The profile of a recording that this command has made itself. Prints nothing.
pub fn read_quietly(input: &Path) -> Result<Profile> {
    let files = believed(input);
    let mut options = Options::default();
    options.files = &files;
    Ok(profile_recording::read(input, &options, &|_| {})?.profile)
}
