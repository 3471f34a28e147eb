//! The integration tests, as one program.

mod check;
mod codes;
mod extension_properties;
mod extensions;
mod made;
mod moarvm;
mod properties;
mod records;
mod source_positions;
mod writer;
