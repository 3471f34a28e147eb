//! The installed library: by `make install`, found by pkg-config, used from C and C++.

mod announced;
mod backtraces;
mod context;
mod crash;
mod debuggers;
mod fork;
mod guests;
mod package;
mod programs;
mod running;
mod rust_backtraces;
mod symbols;
mod tree;
