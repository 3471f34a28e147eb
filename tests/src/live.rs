//! Recordings made while the test runs.
