//! A live recording with each tool of the first tier: perf, gdb, Valgrind, node, Python.

mod demo;
mod demo_command;
mod valgrind_demo;
mod walked_stacks;
