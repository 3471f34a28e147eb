//! The integration tests, as one program.

mod cfi;
mod common;
mod inlined;
mod inlined_tools;
mod objects;
mod parts;
mod round_trip;
mod symfile;
mod tools;

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    mod formats;
    mod windows;
}
