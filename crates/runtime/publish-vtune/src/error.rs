//! Errors of the publisher.

use std::fmt;

use fallible::Text;

/// Why the publisher could not be created, or gave up.
#[derive(Debug)]
pub struct Error(pub(crate) Cause);

/// The cause of an error.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause {
    /// No collector is to be loaded: the variable is not set or empty, or the program runs with more privileges than its caller.
    NoCollector,
    /// The collector does not record now: its function `Initialize` returned 0.
    NotRunning,
    /// The dynamic linker cannot load the collector. The text is its own.
    NotLoaded(Text),
    /// The collector has no function of this name.
    Missing(&'static str),
    /// An allocation failed.
    Memory,
    /// All method ids, which have 32 bits, were used.
    NoIds,
    /// The process was forked while another thread was announcing code.
    ForkedAmidWork,
}

impl Error {
    /// The cause.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.0
    }

    /// Whether it only says that nothing records: the process does not run under the tool, or the tool does not collect now.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        matches!(self.0, Cause::NoCollector | Cause::NotRunning)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VTune is passed no code: {}", self.0)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variable = crate::variable::VARIABLE.to_str().unwrap_or_default();
        match self {
            Cause::NoCollector => write!(f, "{variable} names no collector"),
            Cause::NotRunning => write!(f, "the collector of {variable} is not running"),
            Cause::NotLoaded(why) => {
                write!(f, "the collector of {variable} cannot be loaded: {why}")
            }
            Cause::Missing(function) => {
                write!(f, "the collector of {variable} has no function {function}")
            }
            Cause::Memory => f.write_str("out of memory"),
            Cause::NoIds => f.write_str("all method ids are used"),
            Cause::ForkedAmidWork => {
                f.write_str("the process was forked while another thread was announcing code")
            }
        }
    }
}

impl std::error::Error for Error {}
