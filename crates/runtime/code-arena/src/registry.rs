//! All segments of the process: a runtime that announces code knows its address, but not its arena.
#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::AcqRel, Ordering::Acquire};

use fallible::Place;
use jit_code::Code;

use crate::segment::Segment;

pub(crate) struct Node {
    segment: Segment,
    next: *const Node,
}

/// The list of all segments. It only grows, so it needs no lock, which a fork might leave locked.
static FIRST: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());

/// Makes a segment findable.
pub(crate) fn add(place: Place<Node>, segment: Segment) -> &'static Segment {
    let node = Box::into_raw(place.fill(Node { segment, next: ptr::null() }));
    let mut first = FIRST.load(Acquire);
    loop {
        // SAFETY: only we have the node until it is in the list.
        unsafe { (*node).next = first };
        match FIRST.compare_exchange_weak(first, node, AcqRel, Acquire) {
            // SAFETY: it is never freed, and never changed from now on.
            Ok(_) => return unsafe { &(*node).segment },
            Err(now) => first = now,
        }
    }
}

/// The segments, the youngest first, including those that are closed.
fn segments() -> impl Iterator<Item = &'static Segment> {
    let mut next: *const Node = FIRST.load(Acquire);
    std::iter::from_fn(move || {
        // SAFETY: null, or a node of the list, which is never freed.
        let node = unsafe { next.as_ref() }?;
        next = node.next;
        Some(&node.segment)
    })
}

/// Announces a code load. It replaces whatever was at its address. Call it before the code runs. Returns whether the code
/// is in an arena of this process.
///
/// For code that is moved or replaced, only announce the new place. Unloads need not be announced: code stays known
/// until its space is reused.
pub fn announce(code: &Code<'_>) -> bool {
    segments()
        .filter(|segment| segment.contains(code.address))
        .any(|segment| segment.announce(code))
}

/// Whether the process ever created an arena. Costs one load from memory.
#[inline]
#[must_use]
pub fn are_there() -> bool {
    !FIRST.load(Acquire).is_null()
}

/// Whether an address is in the text of an arena of this process, including those of the process it was forked from.
#[must_use]
pub fn contains(address: u64) -> bool {
    segments().any(|segment| segment.contains(address))
}

/// Whether an address is in an arena that the process's own loader has linked: then unwinders find its code without
/// registration.
#[must_use]
pub fn is_linked(address: u64) -> bool {
    segments().any(|segment| segment.contains(address) && segment.is_linked())
}
