//! The integration tests, as one program.

mod tables;

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    mod engines;
}
