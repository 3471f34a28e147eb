//! The integration tests, as one program.

mod codelog;
mod conformance;

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    mod log;
}
