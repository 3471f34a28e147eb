//! Places in the stream of events.

use crate::recording_index::{MapEvent, Ordinal};

/// Where in the stream of events something is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Before the first event.
    First,
    /// Right behind this event, with its time.
    After(Ordinal, u64),
    /// In order of time.
    At(u64),
}

impl Place {
    /// Right behind the event of a mapping.
    pub(super) fn behind(map: &MapEvent) -> Self {
        Self::After(map.ordinal, map.time)
    }

    /// From when on it holds.
    pub fn time(self) -> u64 {
        match self {
            Self::After(_, time) | Self::At(time) => time,
            Self::First => 0,
        }
    }

    /// The time that the event is given. Of events with one time, readers take that first which
    /// comes first in the file, and what goes by time is put behind the samples of its time.
    pub fn time_of_event(self) -> u64 {
        match self {
            Self::At(time) => time.saturating_sub(1),
            Self::First | Self::After(..) => self.time(),
        }
    }

    /// Whether readers see this before the mapping `map`. They go by time: the order of events in
    /// the file is that of the CPUs' buffers.
    pub(super) fn precedes(self, map: &MapEvent) -> bool {
        let ordinal = match self {
            Self::After(ordinal, _) => ordinal,
            Self::First | Self::At(_) => 0,
        };
        (self.time(), ordinal) < (map.time, map.ordinal)
    }
}
