//! The integration tests, as one program.

mod absolute;
mod common;
mod frame_pointer;
mod rows;
mod saves;
mod tools;
mod windows;
