//! Code in a [`CodeArena`](crate::CodeArena): it is added to the arena's object file.

use super::Publisher;
use crate::log::{Log, LogEntry};
use crate::notice::Subject;
use jit_code::Code;

/// All arenas of the process.
#[derive(Debug)]
pub(super) struct Arena;

/// Whether code at this address is in an arena.
#[inline]
pub(super) fn contains(address: u64) -> bool {
    code_arena::are_there() && code_arena::contains(address)
}

/// Whether unwinders know the code at this address from its arena, so that it must not be registered again.
#[cfg(feature = "unwinders")]
pub(super) fn is_linked(address: u64) -> bool {
    code_arena::is_linked(address)
}

impl Publisher for Arena {
    fn subject(&self) -> Subject {
        Subject::Arena
    }

    fn is_on(&self) -> bool {
        code_arena::are_there()
    }

    fn load(&self, _: &Log, code: &Code<'_>, _: Option<LogEntry>) {
        if contains(code.address) {
            // If an allocation fails, the code is left out.
            let _ = fallible::attempt(|| code_arena::announce(code));
        }
    }

    fn moved(&self, log: &Log, _: LogEntry, to: Option<LogEntry>, _: u64) {
        let _ = fallible::attempt(|| {
            if let Some((position, index)) = to
                && let Some((address, _)) = log.place(position, index)
                && contains(address)
                && let Some(dump) = log.dump_of(position, index)
            {
                crate::image::logged(&dump, |code| {
                    code_arena::announce(code);
                });
            }
        });
    }

    /// The arena removes it when its memory is freed.
    fn unload(&self, _: &Log, _: LogEntry) {}

    fn forked(&self, _: &Log) {}
}
