//! The integration tests, as one program.

mod header;
mod installed;
mod vtune;
