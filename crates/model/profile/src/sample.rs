//! Samples.

use crate::id::{EventId, StackId, ThreadId};

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRow {
    /// Its time.
    pub time: u64,
    /// The thread that ran.
    pub thread: ThreadId,
    /// What it counts.
    pub event: EventId,
    /// How many events it stands for: perf's period, or 1.
    pub weight: u64,
    /// Its stack, by the innermost frame.
    pub stack: StackId,
}

/// All samples in the order of time, as columns of equal length.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    time: Vec<u64>,
    thread: Vec<ThreadId>,
    event: Vec<EventId>,
    weight: Vec<u64>,
    stack: Vec<StackId>,
}

impl Samples {
    /// Their number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// All samples.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = SampleRow> + ExactSizeIterator {
        let (times, threads) = (self.time.iter(), self.thread.iter());
        let (events, weights) = (self.event.iter(), self.weight.iter());
        let columns = times.zip(threads).zip(events).zip(weights).zip(&self.stack);
        columns.map(|((((&time, &thread), &event), &weight), &stack)| SampleRow {
            time,
            thread,
            event,
            weight,
            stack,
        })
    }

    /// Their times.
    #[must_use]
    pub fn times(&self) -> &[u64] {
        &self.time
    }

    /// Their stacks.
    #[must_use]
    pub fn stacks(&self) -> &[StackId] {
        &self.stack
    }

    pub(crate) fn push(&mut self, row: SampleRow) {
        self.time.push(row.time);
        self.thread.push(row.thread);
        self.event.push(row.event);
        self.weight.push(row.weight);
        self.stack.push(row.stack);
    }

    /// Sorts by time; samples of the same time keep their order.
    pub(crate) fn sort(&mut self) {
        if self.time.is_sorted() {
            return;
        }
        let mut rows: Vec<SampleRow> = self.iter().collect();
        rows.sort_by_key(|row| row.time);
        *self = Self::default();
        rows.into_iter().for_each(|row| self.push(row));
    }
}
