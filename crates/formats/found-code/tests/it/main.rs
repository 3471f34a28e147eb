//! Integration tests of `found-code`.

mod hostile;
mod memory;
mod traces;
