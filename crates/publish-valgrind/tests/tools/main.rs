//! The real valgrind names code that was announced.
//!
//! What valgrind runs is this program itself, in a role.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
// There is no harness to do it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod jit;
mod roles;

fn main() {
    if let Ok(role) = std::env::var("ROLE") {
        roles::play(&role);
    }
}
