//! The integration tests, as one program.

mod hour_away;

/// With tools of the second tier (`scripts/test.sh --live`).
#[cfg(feature = "client")]
mod live {
    mod servers;
}
