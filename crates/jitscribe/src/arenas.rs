//! Code that lies in an arena: its file is told.
//!
//! Without the feature `arena`, and on Windows, there is nothing behind the same names.

use crate::code::Code;
use crate::log::{Log, Position};

/// Whether there is any arena.
#[cfg(all(feature = "arena", unix))]
#[inline]
pub(crate) fn are_there() -> bool {
    code_arena::are_there()
}

/// New code.
#[cfg(all(feature = "arena", unix))]
pub(crate) fn load(code: &Code<'_>) {
    if code_arena::contains(code.address) {
        crate::image::announced(code, |shown| {
            code_arena::announce(shown, code.unwind.as_ref());
        });
    }
}

/// A code as the log has it.
#[cfg(all(feature = "arena", unix))]
pub(crate) fn load_from(log: &Log, position: Position, index: u32) {
    if let Some((address, _)) = log.place(position, index)
        && code_arena::contains(address)
        && let Some(dump) = log.dump_of(position, index)
    {
        crate::image::logged(&dump, |shown| {
            code_arena::announce(shown, None);
        });
    }
}

/// Whether unwinders know code at this address by themselves.
#[cfg(all(feature = "arena", feature = "unwinders", unix))]
pub(crate) fn is_linked(address: u64) -> bool {
    code_arena::is_linked(address)
}

#[cfg(all(not(all(feature = "arena", unix)), feature = "unwinders"))]
pub(crate) fn is_linked(_: u64) -> bool {
    false
}

#[cfg(not(all(feature = "arena", unix)))]
pub(crate) fn are_there() -> bool {
    false
}

#[cfg(not(all(feature = "arena", unix)))]
pub(crate) fn load(_: &Code<'_>) {}

#[cfg(not(all(feature = "arena", unix)))]
pub(crate) fn load_from(_: &Log, _: Position, _: u32) {}
