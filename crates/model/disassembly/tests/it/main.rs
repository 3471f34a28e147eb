//! The integration tests, as one program.

mod any_bytes;
mod frames;
mod objdump;
