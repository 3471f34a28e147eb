//! Converts the times of a dump to the recording's clock.
//!
//! A jitdump's records have times of `CLOCK_MONOTONIC` or of the processor's counter. perf's samples have times of
//! `CLOCK_MONOTONIC` with `-k mono`, otherwise of the scheduler's clock, which differs from it by a small offset. The
//! offset is known: perf recorded the time at which the dump's marker was mapped, and the writer wrote the time into
//! the dump's header just before.

use jitdump::{HeaderClock, RecordClock};
use perf_data::{Attrs, TimeConv};

/// The clock id of `clock_gettime` for `CLOCK_MONOTONIC`.
pub const CLOCK_MONOTONIC: i32 = 1;

/// The clock of a recording's times.
#[derive(Clone, Copy, Debug)]
pub struct RecordingClock {
    /// Whether it was recorded with `-k mono`.
    pub monotonic: bool,
    /// The conversion from the processor's counter to perf's time, if the recording has it.
    time_conv: Option<TimeConv>,
}

/// The times in a dump.
#[derive(Clone, Copy, Debug)]
pub struct DumpTimes {
    /// The clock of its records.
    pub records: RecordClock,
    /// The clock of its header.
    pub header_clock: HeaderClock,
    /// The time in its header.
    pub header: u64,
    /// The time of its first code load; `None` if there is none.
    pub first_load: Option<u64>,
}

/// Converts the times of one dump to those of the recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Translation {
    ticks: Option<TimeConv>,
    /// Nanoseconds to add.
    pub offset: i64,
}

/// Why a dump's times cannot be converted to the recording's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoConversion {
    /// The recording lacks the conversion from ticks.
    #[error(
        "its timestamps are in ticks of the processor's clock, and the recording does not contain the \
         conversion; its code is applied without regard to time"
    )]
    Ticks,
    /// The recording has no times.
    #[error(
        "the recording has no times, which perf record -T adds; where code was replaced, all samples \
         have the name of the last one"
    )]
    NoTimes,
}

#[cfg(test)]
impl Default for RecordingClock {
    fn default() -> Self {
        Self { monotonic: true, time_conv: None }
    }
}

impl RecordingClock {
    /// The clock of a recording with these events.
    pub fn detect(attrs: &Attrs, time_conv: Option<TimeConv>) -> Self {
        let mut list = attrs.list().iter();
        let monotonic = list.all(|attr| attr.use_clockid() && attr.clockid == CLOCK_MONOTONIC);
        Self { monotonic, time_conv }
    }

    /// The conversion of a dump's times to this clock. `marker` is the time at which perf recorded the mapping of the
    /// dump, if it did.
    pub fn translate(
        &self,
        dump: &DumpTimes,
        marker: Option<u64>,
    ) -> Result<Translation, NoConversion> {
        let ticks = match dump.records {
            RecordClock::Arch => Some(self.time_conv.ok_or(NoConversion::Ticks)?),
            _ => None,
        };
        let unmoved = Translation { ticks, offset: 0 };
        let same_clock = match dump.records {
            RecordClock::Monotonic => self.monotonic,
            // perf's own conversion yields the scheduler's clock.
            RecordClock::Arch => !self.monotonic,
            _ => false,
        };
        let Some(marker) = marker.filter(|&time| time > 0 && !same_clock) else {
            return Ok(unmoved);
        };
        let distance = |time: u64| marker.wrapping_sub(unmoved.apply(time)).cast_signed();
        let offset = match (dump.header_clock, dump.first_load) {
            (HeaderClock::Records, _) => distance(dump.header),
            (_, None) => 0,
            // The header cannot be used. But the first code is always announced after the marker was mapped. If this is
            // true for the two clocks, there is no evidence that they differ.
            (_, Some(first)) if dump.records == RecordClock::Monotonic => distance(first).max(0),
            (_, Some(first)) => distance(first),
        };
        Ok(Translation { ticks, offset })
    }
}

impl Translation {
    /// Converts a time of the dump to the recording's.
    pub fn apply(&self, time: u64) -> u64 {
        self.ticks.map_or(time, |ticks| ticks.time(time)).saturating_add_signed(self.offset)
    }
}
