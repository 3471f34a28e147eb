//! The integration tests, as one program.

mod bpf_programs;
mod common;
mod made_recordings;
mod other_byte_order;
mod real_recordings;
