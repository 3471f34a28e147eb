//! The stacks that samples have.

use crate::count::Count;
use crate::id::{Id, StackId};
use crate::profile::Profile;
use crate::sample::SampleRow;

/// A stack with the number of its samples and their weight. Stacks are few where samples are many.
#[derive(Clone, Copy, Debug)]
pub struct SampledStack {
    /// The stack, by its innermost frame.
    pub stack: StackId,
    /// Number of samples.
    pub samples: u64,
    /// Their weight.
    pub weight: u64,
}

impl SampledStack {
    /// The stacks that these samples have, each once.
    pub(crate) fn all(
        profile: &Profile,
        samples: impl Iterator<Item = SampleRow>,
    ) -> impl Iterator<Item = Self> {
        let mut stacks = vec![(0_u64, 0_u64); profile.stacks().len()];
        for sample in samples {
            if let Some((samples, weight)) = stacks.get_mut(sample.stack.index()) {
                *samples = samples.saturating_add(1);
                *weight = weight.saturating_add(sample.weight);
            }
        }
        let sampled = stacks.into_iter().enumerate().filter(|(_, (samples, _))| *samples > 0);
        sampled.map(|(place, (samples, weight))| Self {
            stack: StackId::at(place),
            samples,
            weight,
        })
    }

    /// What its innermost frame counts.
    pub(crate) fn own(&self) -> Count {
        Count { own: self.samples, own_weight: self.weight, ..Count::default() }
    }

    /// What each of its frames counts.
    pub(crate) fn total(&self) -> Count {
        Count { total: self.samples, total_weight: self.weight, ..Count::default() }
    }
}
