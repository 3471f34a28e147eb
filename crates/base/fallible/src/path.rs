//! Paths.

#[cfg(not(unix))]
pub use other::PathText;
#[cfg(unix)]
pub use unix::PathText;

#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
mod other;
