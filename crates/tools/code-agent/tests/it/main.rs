//! The integration tests, as one program.

mod files;
mod images;
mod processes;
