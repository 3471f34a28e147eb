//! The integration tests, as one program.

mod common;
mod made_recordings;
mod other_byte_order;
mod real_recordings;
