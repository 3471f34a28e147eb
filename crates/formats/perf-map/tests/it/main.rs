//! The integration tests, as one program.

mod check;
mod perf;
mod resolve;
mod round_trip;
mod spelling;
