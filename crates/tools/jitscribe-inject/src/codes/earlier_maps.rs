//! Perf maps that an earlier process left behind, under an id that a recorded process had, too.
//!
//! All that connects a perf map with a process is the id in its name. But a process that began while perf recorded has changed its map since then: a map that
//! was last changed before the recording began is an earlier process's. For processes that ran before, the recording does not tell.
//!
//! Files have times of the wall clock, which may be set, and a right map must not be left out for that:
//!
//! - With `-k mono`, perf notes in the recording what both clocks say when it begins. What they say now does not matter.
//! - If the wall clock was set back while perf recorded, maps that were written after that look too old. But so does the recording's own file, which was last
//!   changed at the end: if it is older than the monotonic clock says, no map is left out. (A copy of the file has a later time, and hides this.)
//! - Another machine may set the times of a network file system. So only local file systems count.
//! - Some file systems round times to two seconds, and clocks are adjusted in small steps. [`MARGIN`] is larger.

use std::fs::{self, File};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{StatFs, fstatfs, statfs};

use crate::recording::Recording;
use crate::recording::clock::CLOCK_MONOTONIC;

/// A map must be older than the recording by this.
const MARGIN: Duration = Duration::from_secs(10);
/// An upper bound for the rounding of file times.
const ROUNDED: Duration = Duration::from_secs(2);

/// The file systems whose times are those of this machine's clock: `f_type` of `statfs(2)`.
const LOCAL: [u32; 7] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683e, // btrfs
    0xf2f5_2010, // F2FS
    0x2fc1_2fc1, // ZFS
    0x0102_1994, // tmpfs
    0x794c_7630, // overlayfs, as in containers
];

/// When a recording began, by the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct RecordingBegin(SystemTime);

impl RecordingBegin {
    /// `None` if that is unknown, or the wall clock was set back while perf recorded.
    pub fn of(recording: &Recording) -> Option<Self> {
        let Recording { path, input, index, .. } = recording;
        let begin = input.features().clock_data(input.endian())?;
        if !index.clock.monotonic || begin.clock_id != CLOCK_MONOTONIC {
            return None;
        }
        let wall = UNIX_EPOCH.checked_add(Duration::from_nanos(begin.wall_clock))?;
        let took = Duration::from_nanos(index.last_sample.checked_sub(begin.time)?);
        let file = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        if !has_local_times(&statfs(path).ok()?) {
            return None;
        }
        Self::checked(wall, took, file.modified().ok()?)
    }

    /// A recording that began at `wall`, took `took` by a clock that cannot be set, and has ended now. `None` if the wall clock was set back in between.
    #[must_use]
    pub fn of_ended(wall: SystemTime, took: Duration) -> Option<Self> {
        Self::checked(wall, took, SystemTime::now())
    }

    /// `took` is the time from the beginning to the last sample by a clock that cannot be set, and `changed` the time of the recording's file.
    fn checked(wall: SystemTime, took: Duration, changed: SystemTime) -> Option<Self> {
        let end = wall.checked_add(took)?;
        (changed.checked_add(ROUNDED)? >= end).then_some(Self(wall))
    }

    /// Whether this file was last changed before the recording began.
    pub fn is_behind(&self, file: &File) -> bool {
        let modified = file.metadata().and_then(|file| file.modified());
        fstatfs(file).is_ok_and(|system| has_local_times(&system))
            && modified.is_ok_and(|modified| self.is_later_than(modified))
    }

    fn is_later_than(&self, modified: SystemTime) -> bool {
        modified.checked_add(MARGIN).is_some_and(|modified| modified < self.0)
    }
}

fn has_local_times(system: &StatFs) -> bool {
    u32::try_from(system.f_type).is_ok_and(|kind| LOCAL.contains(&kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_older_only_if_the_clock_was_not_set_back() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let hour = Duration::from_secs(3600);
        let begin = RecordingBegin::checked(at(10_000), hour, at(13_600)).expect("a time");
        assert!(begin.is_later_than(at(9_000)) && begin.is_later_than(UNIX_EPOCH));
        assert!(!begin.is_later_than(at(9_995)), "rounded");
        assert!(!begin.is_later_than(at(10_001)) && !begin.is_later_than(at(50_000)));
        // Set forward, or copied.
        assert!(RecordingBegin::checked(at(10_000), hour, at(90_000)).is_some());
        // Set back, by two minutes of the hour and by a day.
        assert!(RecordingBegin::checked(at(10_000), hour, at(13_480)).is_none());
        assert!(RecordingBegin::checked(at(100_000), hour, at(13_600)).is_none());
    }
}
