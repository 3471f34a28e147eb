//! Caches and buffers that are reused from one method to the next.

use std::sync::{Mutex, PoisonError};

use crate::methods::MethodCache;
use crate::table::Table;

/// The caches and buffers for the description of a method.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) methods: MethodCache,
    pub(crate) table: Table,
}

/// The buffers, while they are not in use.
#[derive(Debug, Default)]
pub(crate) struct ScratchPool(Mutex<Option<Box<Scratch>>>);

/// The buffer is freed after code that is larger than this.
const LARGE: usize = 256 << 10;

impl ScratchPool {
    /// Calls `then` with buffers: those of the pool, or new ones if another thread is using these. No lock is held during
    /// the call.
    pub(crate) fn with<T>(&self, then: impl FnOnce(&mut Scratch) -> T) -> T {
        let pool = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = pool().take().unwrap_or_default();
        let done = then(&mut scratch);
        if scratch.bytes.capacity() > LARGE {
            scratch.bytes = Vec::new();
        }
        // Keep the one that knows more methods.
        let mut pool = pool();
        if pool.as_ref().is_none_or(|other| other.methods.len() < scratch.methods.len()) {
            *pool = Some(scratch);
        }
        done
    }
}
