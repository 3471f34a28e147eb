//! The integration tests, as one program.

mod file;
mod model;
mod perf;
mod process;
mod unsafe_parts;
