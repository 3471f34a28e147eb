//! Code that lies in a [`CodeArena`](crate::CodeArena): it is entered into the arena's object file.

use super::Publisher;
use crate::log::{Announced, Log};
use crate::notice::Subject;
use jit_code::Code;

/// The arenas of the process, whoever made them.
#[derive(Debug)]
pub(super) struct Arena;

/// Whether the process has any arena.
#[inline]
pub(super) fn are_there() -> bool {
    code_arena::are_there()
}

/// Whether unwinders know the code at this address from its arena, so that they must not be told a second time.
#[cfg(feature = "unwinders")]
pub(super) fn is_linked(address: u64) -> bool {
    code_arena::is_linked(address)
}

impl Publisher for Arena {
    fn subject(&self) -> Subject {
        Subject::Arena
    }

    fn is_on(&self) -> bool {
        are_there()
    }

    fn load(&self, code: &Code<'_>, _: Option<Announced>) {
        if code_arena::contains(code.address) {
            // Without memory for it, the code is left out.
            let _ = fallible::attempt(|| code_arena::announce(code));
        }
    }

    fn moved(&self, log: &Log, _: Announced, to: Option<Announced>, _: u64) {
        let _ = fallible::attempt(|| {
            if let Some((position, index)) = to
                && let Some((address, _)) = log.place(position, index)
                && code_arena::contains(address)
                && let Some(dump) = log.dump_of(position, index)
            {
                crate::image::logged(&dump, |code| {
                    code_arena::announce(code);
                });
            }
        });
    }

    /// The arena drops it when its memory is freed.
    fn unload(&self, _: &Log, _: Announced) {}

    fn forked(&self, _: &Log) {}
}
