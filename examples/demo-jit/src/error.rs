//! What can go wrong.

use std::io;
use std::path::PathBuf;

use crate::ast::Position;

/// Where and why a text is not a program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {message}")]
pub struct SyntaxError {
    /// Where reading stopped.
    pub position: Position,
    /// What was wrong there.
    pub message: String,
}

impl SyntaxError {
    pub(crate) fn new(position: Position, message: String) -> Self {
        Self { position, message }
    }

    pub(crate) fn number(position: Position) -> Self {
        Self::new(position, "not a number of 64 bits".to_owned())
    }

    pub(crate) fn character(position: Position, character: char) -> Self {
        Self::new(position, format!("no token starts with {character:?}"))
    }
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program does not parse.
    #[error("the program does not parse: {0}")]
    Syntax(#[from] SyntaxError),
    /// Cranelift has no backend for this machine, or it refused a function.
    #[error("cannot compile {what}: {cause}")]
    Compile {
        /// The function, or "for this machine".
        what: String,
        /// What Cranelift said.
        cause: String,
    },
    /// The generated prologue or epilogue is not one this crate knows.
    #[error("{function}: the generated frame is not as expected: {what}")]
    Frame {
        /// The function.
        function: String,
        /// What was expected.
        what: &'static str,
    },
    /// The code memory is full.
    #[error("no room for {size} bytes of code")]
    ArenaFull {
        /// How much was asked for.
        size: usize,
    },
    /// A code was to replace a longer one's place where it does not fit.
    #[error("{function}: {size} bytes do not fit in its slot of {slot}")]
    SlotTooSmall {
        /// The function.
        function: String,
        /// What the new code takes.
        size: usize,
        /// What there is.
        slot: usize,
    },
    /// The plan asks for a function the program does not have, or not in this state.
    #[error("{function}: {what}")]
    Plan {
        /// The function's name.
        function: String,
        /// What was wrong with the request.
        what: &'static str,
    },
    /// A system call failed.
    #[error("cannot {action}: {cause}")]
    System {
        /// What was tried.
        action: &'static str,
        /// The error.
        #[source]
        cause: io::Error,
    },
    /// The shared object that was to be run does not hold the code.
    #[error("{}: {cause}", path.display())]
    Library {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        cause: io::Error,
    },
    /// A file could not be made or written.
    #[error("cannot write {}: {cause}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The error.
        #[source]
        cause: io::Error,
    },
}

impl Error {
    pub(crate) fn system(action: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |cause| Self::System { action, cause: cause.into() }
    }

    pub(crate) fn file<E: Into<io::Error>>(path: impl Into<PathBuf>) -> impl FnOnce(E) -> Self {
        move |cause| Self::File { path: path.into(), cause: cause.into() }
    }
}
