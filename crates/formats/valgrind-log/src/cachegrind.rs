//! cachegrind's output: counts by file, function and line.
//!
//! All code that cachegrind cannot name is in one record, `fn=???`, without addresses. It cannot be named afterwards,
//! but its amount can be reported.

use std::io::BufRead;

use crate::Error;
use crate::frame::number;
use crate::pieces::{Piece, Pieces};

/// Maximum number of events in a file.
const EVENTS: usize = 1 << 10;

/// The counts of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The events, by name: `Ir`, `D1mr`…
    pub events: Vec<String>,
    /// The total count of each event.
    pub total: Vec<u64>,
    /// The count of each event in code without a name.
    pub unknown: Vec<u64>,
}

/// Reads a file.
///
/// # Errors
/// When it cannot be read, or does not list its events.
pub fn read(input: impl BufRead) -> Result<Profile, Error> {
    let mut lines = Pieces::new(input, b'\n');
    let mut profile = Profile::default();
    let mut is_unknown = false;
    let mut offset: u64 = 0;
    let mut summary = None;
    while let Some(Piece { bytes, part }) = lines.next()? {
        let here = offset;
        offset = offset.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if part {
            continue;
        }
        let line = bytes.trim_ascii_end();
        if let Some(events) = line.strip_prefix(b"events:") {
            let names = words(events).take(EVENTS);
            profile.events = names.map(|name| String::from_utf8_lossy(name).into()).collect();
            profile.total = vec![0; profile.events.len()];
            profile.unknown = profile.total.clone();
        } else if let Some(function) = line.strip_prefix(b"fn=") {
            is_unknown = function == b"???";
        } else if let Some(counts) = line.strip_prefix(b"summary:") {
            summary = Some(counted(counts, profile.events.len()));
        } else if line.first().is_some_and(u8::is_ascii_digit) {
            if profile.events.is_empty() {
                let cause = "not a cachegrind file: counts precede the list of events (`events:`)";
                return Err(Error::Format { offset: here, cause });
            }
            let counts = line.split(|&byte| byte == b' ').next().map_or(0, <[u8]>::len);
            let counts = counted(line.get(counts..).unwrap_or_default(), profile.events.len());
            sum(&mut profile.total, &counts);
            if is_unknown {
                sum(&mut profile.unknown, &counts);
            }
        }
    }
    if profile.events.is_empty() {
        let cause = "not a cachegrind file: it has no list of events (`events:`)";
        return Err(Error::Format { offset: 0, cause });
    }
    // Code that was unloaded is only in the summary.
    if let Some(summary) = summary {
        profile.total = summary;
    }
    Ok(profile)
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b' ').filter(|word| !word.is_empty())
}

/// The numbers of a line; a missing or unreadable one (`.` stands for none) is 0.
fn counted(text: &[u8], events: usize) -> Vec<u64> {
    let mut counts: Vec<u64> =
        words(text).take(events).map(|word| number(word).unwrap_or(0)).collect();
    counts.resize(events, 0);
    counts
}

fn sum(sums: &mut [u64], counts: &[u64]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum = sum.saturating_add(*count);
    }
}
