//! A live recording with each tool of the first tier: perf, gdb, Valgrind, node, Python.

mod demo;
mod demo_command;
mod gone;
#[cfg(target_arch = "x86_64")]
mod node;
mod python;
#[cfg(target_arch = "x86_64")]
mod registered;
mod valgrind_demo;
mod walked_stacks;
