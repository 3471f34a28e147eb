//! What V8 writes into its code log, and not into its jitdump: inlined calls, and the scripts of functions that were compiled by `eval`.
//!
//! [`logged_codes`] reads the logs of one process. [`matching`] finds which load of the dump is which code of the logs,
//! [`positions`] gives such a load the calls and the lines, and [`evaluated`] the file in its name.

mod evaluated;
mod logged_codes;
mod matching;
mod positions;

pub use evaluated::with_url;
pub use logged_codes::{InfoId, LoggedCodes};
pub use matching::Matching;
pub use positions::PositionsReader;
