//! Whether the library has stopped watching, because something went wrong.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::span;

static IS_DISABLED: AtomicBool = AtomicBool::new(false);

/// Stops watching, in this process and its children.
pub(crate) fn disable() {
    IS_DISABLED.store(true, Relaxed);
    span::set(std::iter::empty());
}

pub(crate) fn is_disabled() -> bool {
    IS_DISABLED.load(Relaxed)
}
