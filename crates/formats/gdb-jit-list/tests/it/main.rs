//! Integration tests of `gdb-jit-list`.

mod heads;
mod hostile;
mod list;
mod memory;
mod real;
