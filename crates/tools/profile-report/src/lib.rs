//! Profiles as one HTML file that needs no network.
//!
//! [`write()`] makes the file: the page (`page/`, compiled into `page/built.js`), and the profile as compressed columns. [`write_difference`] makes
//! one of two profiles that are compared (`page/difference/`, compiled into `page/built_difference.js`). A page executes
//! nothing but its own script, and its content security policy forbids all requests. Names and sources are foreign text, which the page only ever
//! shows as text.
//!
//! ```
//! use profile::{Builder, CodeId, CodeSource, Listing, Source};
//!
//! /// Without any code or sources.
//! struct Nothing;
//! impl CodeSource for Nothing {
//!     fn listing(&mut self, _: CodeId) -> Option<Listing> {
//!         None
//!     }
//!     fn name_at(&mut self, _: CodeId, _: u64) -> Option<(Vec<u8>, u64)> {
//!         None
//!     }
//!     fn source(&mut self, _: &[u8]) -> Option<Source> {
//!         None
//!     }
//! }
//!
//! let mut html = Vec::new();
//! let profile = Builder::new().finish();
//! profile_report::write(&profile, &mut Nothing, &Default::default(), &mut html)?;
//! assert!(html.starts_with(profile_report::BEGINNING.as_bytes()));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # The data in the file
//!
//! A report has two elements `<script type="application/octet-stream">` with data: `profile`, which is read at once, and `code` (machine code and
//! sources), which is read when it is first looked at. A comparison has one, `difference`. The text of each is base64 of a zlib stream of
//!
//! 1. the length of the directory in bytes, as 4 bytes in little-endian order,
//! 2. the directory, a JSON object, and
//! 3. the columns, one behind the other without gaps.
//!
//! The directory has the `version` of the format (1), what is known of the recording, and `columns`: a list of
//! `[name, encoding, rows, bytes]`. A column `stack.frame` belongs to the table `stack`; all columns of a table have the same number of rows.
//!
//! | Encoding | Each row is |
//! |---|---|
//! | `u32` | an unsigned LEB128 number below 2^32 |
//! | `u64` | an unsigned LEB128 number |
//! | `delta` | the difference to the row before (to 0 in the first one), zigzag-coded as LEB128 |
//! | `f64` | 8 bytes in little-endian order: a double |
//! | `text` | UTF-8 text, ended by a line feed, of which the text has none |
//! | `bytes` | a byte |
//!
//! Rows refer to rows of other tables by number. Where there may be none, the number is one more, and 0 means none: such columns are marked with `?`.
//! Columns that hold strings refer to the table `string` of the same element, which has unprintable characters escaped and long texts shortened.
//! Times are nanoseconds since the first sample.
//!
//! | Table of `profile` | Columns |
//! |---|---|
//! | `string` | `text` |
//! | `process` | `pid`, `name` |
//! | `thread` | `process`, `tid`, `name` |
//! | `module` | `kind` (0 file, 1 image, 2 kernel), `path`, `build_id` |
//! | `event` | `name` |
//! | `function` | `name`, `file`, `line`, `column`, `kind` (as in the directory's `kinds`) |
//! | `code` | `function`, `symbol`, `tier`, `generation`, `process?`, `address_high`, `address_low` (in the process or, without one, in the module), `size`, `loaded` and `gone` (`f64`; NaN: not known), `module?` |
//! | `frame` | `function`, `code?`, `module?`, `address_high`, `address_low`, `offset` (in the code), `depth`, `line`, `column` |
//! | `stack` | `up` (own number − parent's number; 0: no parent), `frame` |
//! | `sample` | `time`, `thread`, `event`, `weight`, `stack` |
//! | `missing` | `path`, `cause`, `samples` |
//! | `unnamed` | `line` (of what is said about code without a name) |
//!
//! | Table of `code` | Columns |
//! |---|---|
//! | `string` | `text` |
//! | `listing` | `code`, `instructions` (their number), `bytes` (their number), `cut` (1: it has more instructions) |
//! | `instruction` | `length`, `text`, `label` (0: none), `target?` (an offset in the code), `function?` (the function that it refers to), `place?` (of the listing's inlined calls) |
//! | `byte` | `value` |
//! | `place` | `outer?` (the place into which it is inlined), `function` (a string), `file`, `line`, `column` |
//! | `file` | `function` (one without a file in `profile`), `file` (a string) |
//! | `source` | `file` (a string), `lines`, `newer` (1: changed after the recording), `hash` (SHA-256, as hexadecimal text) |
//! | `line` | `text` |
//!
//! | Table of `difference` | Columns |
//! |---|---|
//! | `string` | `text` |
//! | `function` | `name`, `file`, `line`, `kind`, `in` (1: in the first profile, 2: in the second, 3: in both), `own_before`, `own_after`, `total_before`, `total_after` (samples), `own_by_chance`, `total_by_chance` (probabilities) |
//! | `node` (of the call tree) | `up` (as in `stack`), `function`, `own_before`, `own_after`, `total_before`, `total_after`, `by_chance` |
//!
//! Its directory has the paths of the `recordings`, their numbers of `samples` and of `runs` (recordings), the `ratio` by which times are compared (null: shares are), and
//! below which probability a difference is `significant`.
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

mod assembly;
mod base64;
mod code;
mod columns;
mod difference;
mod listings;
mod options;
mod places;
mod sources;
mod summary;
mod tables;
mod text;
mod write;
mod written;

pub use difference::{Difference, DifferenceSummary};
pub use options::Options;
pub use summary::Summary;
pub use write::{BEGINNING, write, write_difference};
pub use written::is_report;
