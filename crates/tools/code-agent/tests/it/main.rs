//! The integration tests, as one program.

mod common;
mod files;
mod images;
mod processes;
