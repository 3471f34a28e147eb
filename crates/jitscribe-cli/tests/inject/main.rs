//! `jitscribe inject` on recordings made event by event, read back by `perf script`.

mod clocks;
mod found;
mod hostile;
mod memory;
mod output;
mod perf_maps;
mod processes;
mod recording;
mod reuse;
mod scene;
mod shapes;
mod stacks;
mod tails;
