//! A dump's time, said in the recording's clock.
//!
//! A jitdump's records carry `CLOCK_MONOTONIC` or the processor's own counter. perf's samples carry
//! `CLOCK_MONOTONIC` with `-k mono`, else the scheduler's clock, which runs beside it at a small
//! distance. That distance can be had: perf saw the dump's marker mapping at one time, and the
//! writer stamped the dump's header just before.

use jitdump::{HeaderClock, RecordClock};
use perf_data::{Attrs, TimeConv};

/// The clock id of `clock_gettime` for `CLOCK_MONOTONIC`.
const CLOCK_MONOTONIC: i32 = 1;

/// The clock of a recording's times.
#[derive(Clone, Copy, Debug)]
pub struct RecordingClock {
    /// Recorded with `-k mono`.
    pub monotonic: bool,
    /// How the processor's counter becomes perf's own time, where the recording says it.
    time_conv: Option<TimeConv>,
}

/// What a dump says of its times.
#[derive(Clone, Copy, Debug)]
pub struct DumpTimes {
    /// In which clock its records are.
    pub records: RecordClock,
    /// In which clock its header is.
    pub header_clock: HeaderClock,
    /// When its header was written.
    pub header: u64,
    /// When its first code was told; `None` in a dump without.
    pub first_load: Option<u64>,
}

/// Turns the times of one dump into those of the recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Translation {
    ticks: Option<TimeConv>,
    /// Nanoseconds to add.
    pub offset: i64,
}

/// Why a dump's times cannot be had in the recording's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its timestamps are in ticks of the processor's clock, and the recording does not contain the \
     conversion; its code is applied without regard to time"
)]
pub struct NoConversion;

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

    /// How the times of a dump become times of this clock. `marker` is when perf saw the dump
    /// mapped, if it did.
    pub fn translate(
        &self,
        dump: &DumpTimes,
        marker: Option<u64>,
    ) -> Result<Translation, NoConversion> {
        let ticks = match dump.records {
            RecordClock::Arch => Some(self.time_conv.ok_or(NoConversion)?),
            _ => None,
        };
        let unmoved = Translation { ticks, offset: 0 };
        let same_clock = match dump.records {
            RecordClock::Monotonic => self.monotonic,
            // The counter becomes the scheduler's clock by itself.
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
            // The header is of no use, but code is told only after the marker was mapped. As long
            // as that holds of two clocks that run side by side, nothing says that they differ.
            (_, Some(first)) if dump.records == RecordClock::Monotonic => distance(first).max(0),
            (_, Some(first)) => distance(first),
        };
        Ok(Translation { ticks, offset })
    }
}

impl Translation {
    /// A time of the dump as a time of the recording.
    pub fn apply(&self, time: u64) -> u64 {
        self.ticks.map_or(time, |ticks| ticks.time(time)).saturating_add_signed(self.offset)
    }
}
