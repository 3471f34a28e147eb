//! The integration tests, as one program.

mod announced;
mod common;
#[cfg(feature = "component-model")]
mod components;
