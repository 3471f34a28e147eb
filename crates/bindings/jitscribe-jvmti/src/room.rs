//! Caches and buffers that are reused from one method to the next.

use std::sync::{Mutex, PoisonError};

use crate::methods::Known;
use crate::table::Table;

/// The caches and buffers for the description of a method.
#[derive(Debug, Default)]
pub(crate) struct Room {
    pub(crate) bytes: Vec<u8>,
    pub(crate) known: Known,
    pub(crate) table: Table,
}

/// The room, while it is not in use.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Option<Box<Room>>>);

/// The buffer is freed after code that is larger than this.
const LARGE: usize = 256 << 10;

impl Spare {
    /// Calls `then` with a room: the spare one, or a new one if another thread is using that. No lock is held during the
    /// call.
    pub(crate) fn with<T>(&self, then: impl FnOnce(&mut Room) -> T) -> T {
        let spare = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut room = spare().take().unwrap_or_default();
        let done = then(&mut room);
        if room.bytes.capacity() > LARGE {
            room.bytes = Vec::new();
        }
        // Keep the one that knows more methods.
        let mut spare = spare();
        if spare.as_ref().is_none_or(|there| there.known.len() < room.known.len()) {
            *spare = Some(room);
        }
        done
    }
}
