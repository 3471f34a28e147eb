//! Inlined calls that V8 writes into its code log, and not into its jitdump.
//!
//! [`logged_codes`] reads the logs of one process. [`matching`] finds which load of the dump is which code of the logs,
//! and [`positions`] gives such a load the calls and the lines.

mod logged_codes;
mod matching;
mod positions;

pub use logged_codes::{InfoId, LoggedCodes};
pub use matching::Matching;
pub use positions::PositionsReader;
