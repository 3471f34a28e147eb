//! The integration tests, as one program.

mod cfi;
mod common;
mod formats;
mod inlined;
mod inlined_tools;
mod objects;
mod parts;
mod round_trip;
mod symfile;
mod tools;
mod windows;
