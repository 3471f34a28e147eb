//! One side of a comparison: a recording, or those of several runs.

use std::path::Path;

use profile::{Activities, Profile, Runs, Selection};

use crate::selection::SelectionArgs;
use crate::{Error, Result, recorded};

/// One side of a comparison.
pub struct Side<'a> {
    /// Its files.
    pub recordings: Vec<&'a Path>,
    /// The recording or, of several, their selected samples.
    pub profile: Profile,
    /// What is compared of the profile.
    pub selection: Selection,
    /// What was done in the selected samples. Joined, runs are no processes with threads, so it is of each recording and added up.
    pub activities: Activities,
    /// The number of samples a second in each recording, if it was made by frequency.
    frequencies: Vec<Option<u64>>,
}

impl<'a> Side<'a> {
    /// Reads recordings, one after the other.
    pub fn read(recordings: Vec<&'a Path>, selected: &SelectionArgs) -> Result<Self> {
        let read = |path: &Path| -> Result<(Profile, Selection)> {
            let files = recorded::believed(path);
            let profile = recorded::read(path, &files)?.profile;
            let selection = selected.of(&profile)?;
            Ok((profile, selection))
        };
        if let [recording] = recordings.as_slice() {
            let (profile, selection) = read(recording)?;
            let frequencies = vec![profile.about.frequency];
            let activities = Activities::of(&profile, selection.of(&profile));
            return Ok(Self { recordings, profile, selection, activities, frequencies });
        }
        let mut runs = Runs::new();
        let mut frequencies = Vec::new();
        let mut activities = Activities::default();
        for recording in &recordings {
            let (profile, selection) = read(recording)?;
            frequencies.push(profile.about.frequency);
            activities.add(&Activities::of(&profile, selection.of(&profile)));
            runs.add(&profile, &selection);
        }
        let (profile, selection) = (runs.finish(), Selection::default());
        Ok(Self { recordings, profile, selection, activities, frequencies })
    }

    /// The number of recordings.
    pub fn runs(&self) -> usize {
        self.recordings.len()
    }

    /// How many samples a second of work gets, in all recordings together.
    pub fn rate(&self) -> Result<f64> {
        let refused = |why: &str| Err(Error::Refused(format!("--by time: {why}; use --by share")));
        let [first, others @ ..] = self.frequencies.as_slice() else {
            return refused("there is no recording");
        };
        if others.iter().any(|other| other != first) {
            return refused("the recordings of a side were made by different frequencies (-F)");
        }
        // Frequencies and numbers of recordings are far below 2^53.
        #[expect(clippy::cast_precision_loss, reason = "see above")]
        match first.filter(|rate| *rate > 0) {
            Some(rate) => Ok(rate as f64 * self.runs() as f64),
            None => refused(
                "a recording was not made by frequency (-F), so that its samples are no measure of time",
            ),
        }
    }
}
