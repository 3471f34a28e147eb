//! Errors.

use thiserror::Error as ThisError;

/// Why a source map, or a part of it, cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// It is not the JSON of a source map.
    #[error("not a source map: {0}")]
    Json(String),
    /// Another revision of the format.
    #[error("source map of version {0}; only version 3 is supported")]
    Version(u64),
    /// A character that is not in the alphabet of base64 VLQ.
    #[error("character {offset} of the mappings is not base64")]
    Character {
        /// Its offset in the mappings.
        offset: usize,
    },
    /// A number does not end, or a segment has a number of fields that no segment has.
    #[error("the mappings are cut off at character {offset}")]
    Segment {
        /// The offset in the mappings at which the segment ends.
        offset: usize,
    },
    /// A number, or the sum with those before it, is negative or too large.
    #[error("a position in the mappings is out of range at character {offset}")]
    Range {
        /// The offset in the mappings at which the segment ends.
        offset: usize,
    },
}
