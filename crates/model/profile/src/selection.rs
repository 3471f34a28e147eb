//! Which samples are looked at.

use std::ops::Range;

use crate::id::{EventId, Id, ThreadId};
use crate::profile::Profile;
use crate::sample::SampleRow;

/// A part of the samples. The default is all of them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Selection {
    /// Only from this time on, and before that.
    pub times: Option<Range<u64>>,
    /// Only these threads.
    pub threads: Option<Vec<ThreadId>>,
    /// Only this event.
    pub event: Option<EventId>,
}

impl Selection {
    /// The samples, in the order of time.
    pub fn of<'p>(&self, profile: &'p Profile) -> impl Iterator<Item = SampleRow> + use<'p> {
        let mut threads = vec![self.threads.is_none(); profile.threads().len()];
        for thread in self.threads.iter().flatten() {
            if let Some(selected) = threads.get_mut(thread.index()) {
                *selected = true;
            }
        }
        let times = profile.samples().times();
        let until = |time: u64| times.partition_point(|&at| at < time);
        let (from, until) = match &self.times {
            Some(span) => (until(span.start), until(span.end)),
            None => (0, times.len()),
        };
        let event = self.event;
        let rows = profile.samples().iter().skip(from).take(until.saturating_sub(from));
        rows.filter(move |row| {
            threads.get(row.thread.index()) == Some(&true)
                && event.is_none_or(|event| event == row.event)
        })
    }

    /// The events of the samples, with how many each has: those with the most first.
    #[must_use]
    pub fn events(&self, profile: &Profile) -> Vec<(EventId, u64)> {
        self.counted(profile, profile.events().len(), |row| row.event)
    }

    /// The threads of the samples, with how many each has: those with the most first.
    #[must_use]
    pub fn threads_with_samples(&self, profile: &Profile) -> Vec<(ThreadId, u64)> {
        self.counted(profile, profile.threads().len(), |row| row.thread)
    }

    fn counted<Number: Id>(
        &self,
        profile: &Profile,
        rows: usize,
        of: impl Fn(&SampleRow) -> Number,
    ) -> Vec<(Number, u64)> {
        let mut counts = vec![0_u64; rows];
        for sample in self.of(profile) {
            if let Some(count) = counts.get_mut(of(&sample).index()) {
                *count = count.saturating_add(1);
            }
        }
        let numbered = counts.into_iter().enumerate().filter(|(_, count)| *count > 0);
        let mut counted: Vec<_> =
            numbered.map(|(place, count)| (Number::at(place), count)).collect();
        counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counted
    }
}
