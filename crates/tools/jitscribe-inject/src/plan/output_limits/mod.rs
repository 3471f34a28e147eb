//! Limits that keep images and perf maps usable for any input. `jitscribe inject` and `jitscribe dump` share them.

mod arenas;
mod part_filter;

pub use arenas::{ARENA_GAP, ARENA_SPAN, split_into_arenas};
pub use part_filter::{PartFilter, parts_fit};
