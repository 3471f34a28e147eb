//! Modules that run in wasmtime, recorded by perf: the second tier (`scripts/test.sh --live`).

mod four_hosts;
mod recorded;
