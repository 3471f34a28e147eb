//! `jitscribe inject` on recordings made event by event, read back by `perf script`.

mod again;
mod clocks;
mod found;
mod histories;
mod hostile;
mod memory;
#[path = "../../../../../model/code-timeline/tests/it/model/mod.rs"]
#[allow(dead_code, reason = "each test program uses a part")]
mod model;
mod mutated;
mod output;
mod owners;
mod perf_inject;
mod perf_maps;
mod processes;
mod programs;
pub mod recording;
mod reuse;
pub mod scene;
mod shapes;
mod sources;
mod stacks;
mod tails;
mod unannounced;
mod unnamed;
mod views;
