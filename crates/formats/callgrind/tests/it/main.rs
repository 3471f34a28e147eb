//! The integration tests, as one program.

mod common;
mod identity;
mod rewrite;
