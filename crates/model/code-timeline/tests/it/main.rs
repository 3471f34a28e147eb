//! The integration tests, as one program.

mod histories;
mod model;
mod perf_maps;
