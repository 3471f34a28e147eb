//! The report of `push --json`. `docs/scripts.md` describes its fields.

use serde::Serialize;

/// What was made of the recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct Made {
    /// Its selected samples.
    pub samples: u64,
    /// As how many requests they are sent.
    pub requests: u64,
    /// The size of these, gzipped.
    pub bytes: u64,
}

/// The report.
#[derive(Debug, Serialize)]
pub struct Report {
    pub schema_version: u32,
    pub verb: &'static str,
    /// The recording; none if only the spool was sent.
    pub input: Option<String>,
    pub server: String,
    pub samples: u64,
    pub requests: u64,
    pub bytes: u64,
    /// What the server took, with what the spool held.
    pub sent: u64,
    pub sent_bytes: u64,
    pub retried: u64,
    pub divided: u64,
    pub rejected: u64,
    pub dropped: u64,
    /// What the spool keeps.
    pub spooled: u64,
    /// What was neither sent nor kept.
    pub unsent: u64,
    /// Why the server takes nothing with these settings.
    pub refused: Option<String>,
    pub last_failure: Option<String>,
    pub has_other_sender: bool,
}
