//! Samples by function and tier.

use std::cmp::Reverse;

use crate::id::{FrameId, FunctionId, StringId};
use crate::profile::Profile;
use crate::totals::Totals;

/// The own samples of functions by the tier of the code that they were in: their own code, or that of a function that they were inlined into.
#[derive(Clone, Debug)]
pub struct Tiers(Vec<Vec<(StringId, u64)>>);

impl Tiers {
    /// Of the functions of a profile.
    #[must_use]
    pub fn of(profile: &Profile, totals: &Totals) -> Self {
        let mut tiers = vec![Vec::new(); profile.functions().len()];
        for (id, frame) in (0..).map(FrameId).zip(profile.frames()) {
            let tier = profile.tier_of(frame);
            let own = totals.of_frame(id).own;
            let Some(tiers) = tiers.get_mut(frame.function.index()) else { continue };
            if !tier.is_empty() && own > 0 {
                add(tiers, tier, own);
            }
        }
        for tiers in &mut tiers {
            tiers.sort_by_key(|&(tier, samples)| (Reverse(samples), profile.text(tier)));
        }
        Self(tiers)
    }

    /// Of a function: the tiers with the most samples first, without those that it has no samples in. Samples in code of an unknown tier are left out.
    #[must_use]
    pub fn of_function(&self, function: FunctionId) -> &[(StringId, u64)] {
        self.0.get(function.index()).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Adds samples; a function has few tiers.
fn add(tiers: &mut Vec<(StringId, u64)>, tier: StringId, own: u64) {
    match tiers.iter_mut().find(|(other, _)| *other == tier) {
        Some((_, samples)) => *samples = samples.saturating_add(own),
        None => tiers.push((tier, own)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::made::profile;

    proptest! {
        /// Against the innermost frame of each sample.
        #[test]
        fn each_sample_is_in_the_tier_of_its_innermost_code(profile in profile()) {
            let mut expected: BTreeMap<(FunctionId, StringId), u64> = BTreeMap::new();
            for sample in profile.samples().iter() {
                let Some(frame) = profile.frames_of(sample.stack).next() else { continue };
                let tier = frame.code.map_or(StringId::EMPTY, |code| profile.code(code).tier);
                if tier != StringId::EMPTY {
                    *expected.entry((frame.function, tier)).or_default() += 1;
                }
            }
            let tiers = Tiers::of(&profile, &Totals::all(&profile));
            let mut counted = BTreeMap::new();
            for function in profile.function_ids() {
                let tiers = tiers.of_function(function);
                prop_assert!(tiers.is_sorted_by_key(|&(_, samples)| Reverse(samples)));
                counted.extend(tiers.iter().map(|&(tier, own)| ((function, tier), own)));
            }
            prop_assert_eq!(counted, expected);
        }
    }
}
