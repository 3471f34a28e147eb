//! Settings of the publisher.

use std::fmt;

use crate::publisher::Etw;

/// Called when a recording begins.
pub(crate) type WhenEnabled = Box<dyn Fn(&Etw) + Send + Sync>;

/// Settings of the publisher.
#[derive(Default)]
pub struct Options {
    pub(crate) when_enabled: Option<WhenEnabled>,
    /// Whether an allocation for one of the settings failed.
    pub(crate) is_refused: bool,
}

impl Options {
    /// Nothing is called.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what is called when a recording begins, or asks for what is alive: it [loads](Etw::load) each live code. It is called on a
    /// thread of the system, with no lock held, while other threads may load code.
    #[must_use]
    pub fn when_enabled(mut self, called: impl Fn(&Etw) + Send + Sync + 'static) -> Self {
        match fallible::boxed(called) {
            Ok(called) => self.when_enabled = Some(called),
            Err(_) => self.is_refused = true,
        }
        self
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").finish_non_exhaustive()
    }
}
