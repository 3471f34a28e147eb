//! The installed library: by `make install`, found by pkg-config, used from C and C++.

mod announced;
mod backtraces;
mod crash;
mod debuggers;
mod fork;
mod package;
mod programs;
mod running;
mod rust_backtraces;
mod symbols;
mod tree;

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    mod context;
    mod guests;
}
