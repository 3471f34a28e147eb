//! Places in the stream of events.

use crate::recording::recording_index::{MapEvent, Ordinal};

/// A place in the stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Before the first event.
    First,
    /// Directly behind this event, with its time.
    After(Ordinal, u64),
    /// In the order of time.
    At(u64),
}

impl Place {
    /// Directly behind the event of a mapping.
    pub(crate) fn behind(map: &MapEvent) -> Self {
        Self::After(map.ordinal, map.time)
    }

    /// The time from which on it is valid.
    pub fn time(self) -> u64 {
        match self {
            Self::After(_, time) | Self::At(time) => time,
            Self::First => 0,
        }
    }

    /// The timestamp of the event. Of events with the same time, readers process the first one in the file first.
    /// Events that are placed by time are put behind the samples of that time.
    pub fn time_of_event(self) -> u64 {
        match self {
            Self::At(time) => time.saturating_sub(1),
            Self::First | Self::After(..) => self.time(),
        }
    }

    /// Whether readers process this before the mapping `map`. They sort by time: the order in the file is that of the
    /// CPUs' buffers.
    pub(super) fn precedes(self, map: &MapEvent) -> bool {
        let ordinal = match self {
            Self::After(ordinal, _) => ordinal,
            Self::First | Self::At(_) => 0,
        };
        (self.time(), ordinal) < (map.time, map.ordinal)
    }
}
