//! What a profile does not say itself.

use profile::Selection;

/// How a profile is exported.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The samples.
    pub selection: Selection,
    /// The name of the host.
    pub host: String,
    /// The name of the service. `None`: each process is a service of its name.
    pub service: Option<String>,
    /// The version of the service that is deployed; empty if it is not known.
    pub version: String,
    /// Seconds in a window of time; at least 1.
    pub window: u32,
    /// What to add to times of the recording to get nanoseconds since 1970, UTC, if the recording does not tell.
    pub to_utc: Option<i64>,
}

/// Seconds in a window, unless the user says otherwise.
const WINDOW: u32 = 600;

impl Options {
    /// All samples of a host, in windows of ten minutes.
    #[must_use]
    pub fn new(host: &str) -> Self {
        Self {
            selection: Selection::default(),
            host: host.to_owned(),
            service: None,
            version: String::new(),
            window: WINDOW,
            to_utc: None,
        }
    }
}
