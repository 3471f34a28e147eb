//! The integration tests, as one program.

mod announced;
mod example;
mod frames;
