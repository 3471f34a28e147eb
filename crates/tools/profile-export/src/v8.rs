//! What V8's formats have in common: `.cpuprofile`, and samples in Chrome's traces.

use std::io;

use profile::Profile;

use crate::json::Object;
use crate::keys::Keys;
use crate::options::{Label, short};

/// The nodes that are not the profile's: the root, and the time in which a thread was idle. The profile's are numbered behind them.
pub const ROOT: u64 = 1;
pub const IDLE: u64 = 2;
const FIRST: u64 = 3;

/// The number of a node of the profile.
pub fn number(node: u32) -> u64 {
    u64::from(node).saturating_add(FIRST)
}

/// In microseconds, the times from the begin of each span of time to that of the next. They are differences of rounded times, so that errors
/// do not add up.
#[derive(Clone, Copy, Debug)]
pub struct TimeDeltas {
    begin: u64,
    last: u64,
}

impl TimeDeltas {
    /// The first is from `start` on, in nanoseconds.
    pub fn new(start: u64) -> Self {
        Self { begin: start, last: start / 1000 }
    }

    /// When the next span begins, in nanoseconds.
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// The time from the begin of the previous span to that of the next one, which lasts this many nanoseconds.
    pub fn next(&mut self, duration: u64) -> u64 {
        let begin = self.begin / 1000;
        let delta = begin.saturating_sub(self.last);
        self.last = begin;
        self.begin = self.begin.saturating_add(duration);
        delta
    }
}

/// Writes the fields of a function, or of one that is not of the profile, by its name.
pub fn write_call_frame(
    (profile, keys): (&Profile, &Keys),
    label: Result<&Label, &str>,
    frame: &mut Object<'_>,
) -> io::Result<()> {
    let label = match label {
        Ok(label) => label,
        Err(name) => {
            frame.field("functionName", name)?;
            frame.field("scriptId", "0")?;
            frame.field("url", "")?;
            frame.field("lineNumber", -1)?;
            return frame.field("columnNumber", -1);
        }
    };
    let function = profile.function(label.function);
    // V8 counts from 0, and has -1 for what is not known.
    let from_zero = |number: u32| i64::from(number).saturating_sub(1);
    frame.field("functionName", label.name(profile))?;
    // One script for each file.
    let file = profile.file_of(label.function);
    frame.field("scriptId", file.0.to_string())?;
    frame.field("url", url(profile.text(file)))?;
    frame.field("lineNumber", from_zero(function.line))?;
    frame.field("columnNumber", from_zero(function.column))?;
    // Not V8's: readers leave it out.
    frame.field("functionKey", keys.text(label.function))
}

/// A path as a URL, as V8 has those of modules.
fn url(file: &[u8]) -> String {
    if !file.starts_with(b"/") {
        return short(file);
    }
    let mut url = String::from("file://");
    for character in short(file).chars() {
        match character {
            '%' => url.push_str("%25"),
            '?' => url.push_str("%3F"),
            '#' => url.push_str("%23"),
            ' ' => url.push_str("%20"),
            character => url.push(character),
        }
    }
    url
}
