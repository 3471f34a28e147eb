//! The progress of scans through memory.

use std::ops::Range;

/// Bytes of one part of a scan.
pub const PART: u64 = 1 << 18;
/// What a part costs whose pages are absent, in bytes.
const ABSENT: u64 = 1 << 12;
/// The most polls between two passes.
const PAUSE: u32 = 32;

/// Passes through all data, a part at a time.
#[derive(Debug, Default)]
pub struct Scan {
    /// Where the next part begins.
    next: u64,
    /// When this pass began; `None` between two passes.
    began: Option<u64>,
    /// When the last whole pass began.
    before: Option<u64>,
    /// Polls until the next pass, and after it.
    wait: u32,
    pause: u32,
}

impl Scan {
    /// Calls `scan` with the next parts of `data` up to `bytes` bytes, and with the time since which they have not been looked at; `None` if they never were.
    /// `scan` returns how many of the bytes are there. Returns whether this was the end of a pass.
    ///
    /// After each pass, there is a pause: a longer one each time, until [`Self::hurry`] is called.
    pub fn advance(
        &mut self,
        data: &[Range<u64>],
        mut bytes: u64,
        now: u64,
        mut scan: impl FnMut(Range<u64>, Option<u64>) -> u64,
    ) -> bool {
        if self.began.is_none() {
            if self.wait > 0 {
                self.wait = self.wait.saturating_sub(1);
                return false;
            }
            (self.next, self.began) = (0, Some(now));
        }
        let first = data.partition_point(|range| range.end <= self.next);
        for range in data.get(first..).unwrap_or_default() {
            let mut at = range.start.max(self.next);
            while at < range.end {
                if bytes == 0 {
                    return false;
                }
                let end = at.saturating_add(PART).min(range.end);
                let there = scan(at..end, self.before);
                bytes = bytes.saturating_sub(there.saturating_add(ABSENT));
                (at, self.next) = (end, end);
            }
        }
        self.before = self.began.take();
        self.pause = self.pause.saturating_mul(2).clamp(1, PAUSE);
        self.wait = self.pause;
        true
    }

    /// Makes the pauses short again: there is something new.
    pub fn hurry(&mut self) {
        (self.wait, self.pause) = (0, 0);
    }
}
