//! The formats of sources: a file for each, and a line in [`FORMATS`].

mod jitdump;
mod perf_map;

use crate::format::Format;

pub use jitdump::JITDUMP;
pub use perf_map::PERF_MAP;

/// Every format. A content has the first one that recognizes it.
pub const FORMATS: [Format; 2] = [JITDUMP, PERF_MAP];

/// The format of a content.
#[must_use]
pub fn format_of(content: &[u8]) -> Option<Format> {
    FORMATS.into_iter().find(|format| (format.recognizes)(content))
}
