//! Reading a recording into a profile, for all verbs that show one.

use std::collections::BTreeMap;
use std::path::Path;

use profile::Profile;
use profile_recording::{Options, RecordedProfile};

use crate::files::Believed;
use crate::stage_bar::StageBar;
use crate::{Error, Result, descriptors, note, text};

/// Whose files are believed for a recording.
pub fn believed(input: &Path) -> Believed {
    Believed::about(text::named_file(input), &BTreeMap::new(), false, &[])
}

/// Reads a recording. Says what was left out, and what is missing.
pub fn read<'f>(input: &Path, files: &'f Believed) -> Result<RecordedProfile<'f>> {
    descriptors::raise();
    let bar = StageBar::new(input, "reading the samples");
    let mut options = Options::default();
    options.files = files;
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

/// The profile of a recording that this command has made itself. Prints nothing.
pub fn read_quietly(input: &Path) -> Result<Profile> {
    let files = believed(input);
    let mut options = Options::default();
    options.files = &files;
    Ok(profile_recording::read(input, &options, &|_| {})?.profile)
}
