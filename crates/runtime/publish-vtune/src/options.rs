//! Settings of the publisher.

use std::fmt;

use crate::text::Text;

/// Called when the publisher gives up.
pub(crate) type Reporter = Box<dyn Fn(&str) + Send + Sync>;

/// Settings of the publisher.
pub struct Options {
    pub(crate) module: Text,
    /// Whether an allocation for one of the settings failed.
    pub(crate) is_refused: bool,
    pub(crate) reporter: Option<Reporter>,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// The code is in a module named `jit`.
    #[must_use]
    pub fn new() -> Self {
        Options { module: Text::default(), is_refused: false, reporter: None }.module("jit")
    }

    /// Sets the name of the module under which the tool shows the code: that of the runtime. It tells the code of several engines
    /// in one process apart.
    #[must_use]
    pub fn module(mut self, name: &str) -> Self {
        let set = fallible::attempt(|| {
            self.module.name(name.as_bytes());
        });
        self.is_refused |= set.is_err();
        self
    }

    /// Called once, with the reason, if the publisher gives up: on the thread that met the error, inside the call that failed,
    /// with no lock held.
    #[must_use]
    pub fn reporter(mut self, reporter: impl Fn(&str) + Send + Sync + 'static) -> Self {
        match fallible::boxed(reporter) {
            Ok(reporter) => self.reporter = Some(reporter),
            Err(_) => self.is_refused = true,
        }
        self
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("module", &self.module).finish_non_exhaustive()
    }
}
