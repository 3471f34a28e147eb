//! What is known, and memory, that is used for one method after the other.

use std::sync::{Mutex, PoisonError};

use crate::methods::Known;
use crate::table::Table;

/// What a method is put together in.
#[derive(Debug, Default)]
pub(crate) struct Room {
    pub(crate) bytes: Vec<u8>,
    pub(crate) known: Known,
    pub(crate) table: Table,
}

/// Room while nobody uses it.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Option<Box<Room>>>);

/// Code that was larger than this gives its memory back.
const LARGE: usize = 256 << 10;

impl Spare {
    /// Calls `then` with room for itself: what is there, or new one if another thread has that. No lock is held meanwhile.
    pub(crate) fn with<T>(&self, then: impl FnOnce(&mut Room) -> T) -> T {
        let spare = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut room = spare().take().unwrap_or_default();
        let done = then(&mut room);
        if room.bytes.capacity() > LARGE {
            room.bytes = Vec::new();
        }
        // Of two, the one that knows more.
        let mut spare = spare();
        if spare.as_ref().is_none_or(|there| there.known.len() < room.known.len()) {
            *spare = Some(room);
        }
        done
    }
}
