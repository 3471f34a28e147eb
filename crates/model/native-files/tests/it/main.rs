//! The integration tests, as one program.

mod binutils;
mod damaged;
mod loaded;
