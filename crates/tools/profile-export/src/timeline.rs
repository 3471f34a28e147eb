//! Samples as spans of time, for formats that show a thread as a sequence of stacks.

use profile::{Profile, Selection, StackId, ThreadId};

use crate::measure;

/// The samples of a thread.
#[derive(Debug)]
pub struct ThreadSamples {
    /// The thread.
    pub thread: ThreadId,
    /// The time and the stack of each, in the order of time.
    pub samples: Vec<(u64, StackId)>,
}

/// A span of time in which a thread ran with one stack, or was idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The stack; `None` if the thread was idle.
    pub stack: Option<StackId>,
    /// How long, in nanoseconds.
    pub duration: u64,
}

/// The samples of each thread that has any, in the order of the profile's threads.
pub fn by_thread(profile: &Profile, selection: &Selection) -> Vec<ThreadSamples> {
    let mut threads: Vec<_> = (0..profile.threads().len()).map(|_| Vec::new()).collect();
    for sample in selection.of(profile) {
        if let Some(samples) = threads.get_mut(sample.thread.index()) {
            samples.push((sample.time, sample.stack));
        }
    }
    let numbered = (0..).map(ThreadId).zip(threads);
    let all = numbered.map(|(thread, samples)| ThreadSamples { thread, samples });
    all.filter(|thread| !thread.samples.is_empty()).collect()
}

/// The place of the thread with the most samples.
pub fn busiest(threads: &[ThreadSamples]) -> Option<usize> {
    // Of several, the first.
    let places = threads.iter().enumerate().rev();
    places.max_by_key(|(_, thread)| thread.samples.len()).map(|(place, _)| place)
}

impl ThreadSamples {
    /// When the span of the first sample begins.
    pub fn start(&self, period: u64) -> u64 {
        self.samples.first().map_or(0, |(time, _)| time.saturating_sub(period))
    }

    /// When the span of the last sample ends.
    pub fn end(&self) -> u64 {
        self.samples.last().map_or(0, |&(time, _)| time)
    }

    /// The spans from [`Self::start`] to [`Self::end`], without gaps. The span of a sample ends at its time; it begins with the end of the
    /// previous one, or a period earlier if that is much longer ago.
    pub fn spans(&self, period: u64) -> impl Iterator<Item = Span> + '_ {
        let longest = period.saturating_add(period / 2);
        let mut end = self.start(period);
        self.samples.iter().flat_map(move |&(time, stack)| {
            let gap = time.saturating_sub(end);
            end = time;
            let idle = if gap > longest { gap.saturating_sub(period) } else { 0 };
            let idle_span = (idle > 0).then_some(Span { stack: None, duration: idle });
            let span = Span { stack: Some(stack), duration: gap.saturating_sub(idle) };
            idle_span.into_iter().chain([span])
        })
    }
}

/// The time between samples of a thread that runs.
pub fn period(profile: &Profile, selection: &Selection, threads: &[ThreadSamples]) -> u64 {
    let busiest = || selection.events(profile).first().map(|&(event, _)| event);
    let event = selection.event.or_else(busiest);
    let known = event.and_then(|event| measure::nanoseconds_each(profile, selection, event));
    let median = || {
        let gaps = |thread: &ThreadSamples| {
            let pairs = thread.samples.iter().zip(thread.samples.iter().skip(1));
            pairs.map(|((before, _), (at, _))| at.saturating_sub(*before)).collect::<Vec<_>>()
        };
        let mut gaps: Vec<u64> = threads.iter().flat_map(gaps).collect();
        gaps.sort_unstable();
        gaps.get(gaps.len() / 2).copied()
    };
    known.or_else(median).unwrap_or(1_000_000).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_lasts_a_period_at_most_but_for_jitter() {
        let stack = StackId(7);
        let thread = ThreadSamples {
            thread: ThreadId(0),
            samples: [100, 112, 119, 119, 300].map(|time| (time, stack)).into(),
        };
        let ran = |duration| Span { stack: Some(stack), duration };
        let idle = Span { stack: None, duration: 171 };
        let spans: Vec<Span> = thread.spans(10).collect();
        assert_eq!(spans, [ran(10), ran(12), ran(7), ran(0), idle, ran(10)]);
        let all: u64 = spans.iter().map(|span| span.duration).sum();
        assert_eq!(all, thread.end() - thread.start(10));
    }
}
