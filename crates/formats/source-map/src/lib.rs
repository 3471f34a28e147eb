//! Source maps of JavaScript: from a position in generated source text to the position in the text that it was generated from.
//!
//! The format is ECMA-426, revision 3 of the older proposal included: plain maps, and index maps, whose sections are maps. [`SourceMap::parse`] reads one,
//! [`SourceMap::original`] answers, [`MapUrl::of_script`] finds the comment by which a script refers to its map, and [`source_url`] that by which it names itself.
//!
//! ```
//! use source_map::SourceMap;
//!
//! let map = SourceMap::parse(br#"{"version":3,"sources":["a.ts"],"names":[],"mappings":"AAAA;AACA,IAAI"}"#)?;
//! let place = map.original(2, 7).ok_or("no mapping")?;
//! assert_eq!((place.source, place.line, place.column), (0, 2, 5));
//! assert_eq!(map.sources()[0], "a.ts");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Lines and columns count from 1, as in the output of compilers. Columns count UTF-16 code units.
//!
//! The content of a map is treated as hostile: it causes no panic, and memory use is limited to a multiple of its size. A map with invalid mappings
//! keeps those before them ([`SourceMap::damage`]).
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

mod base64;
mod error;
mod map;
mod mappings;
mod url;

pub use error::Error;
pub use map::{Original, SourceMap};
pub use url::{MapUrl, percent_decoded, source_url};
