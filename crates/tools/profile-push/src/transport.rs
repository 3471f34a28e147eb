//! What carries profiles to a server.

use crate::answer::{Answer, Unreachable};
use crate::destination::Protocol;
use crate::profile_body::ProfileBody;

/// Sends a profile, and waits for the answer.
pub trait Transport: Send {
    /// How it sends.
    fn protocol(&self) -> Protocol;

    /// Sends a profile once. Takes a bounded time.
    ///
    /// # Errors
    /// If there is no answer.
    fn send(&mut self, body: &ProfileBody) -> Result<Answer, Unreachable>;
}
