//! All segments of the process: who announces code knows its address, and no arena.
#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::AcqRel, Ordering::Acquire};

use unwind_info::Unwind;

use crate::segment::Segment;

struct Node {
    segment: Segment,
    next: *const Node,
}

/// The list of all segments, which only grows: so it needs no lock, which a fork might leave closed.
static FIRST: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());

/// Has a segment be found from now on.
pub(crate) fn add(segment: Segment) -> &'static Segment {
    let node = Box::into_raw(Box::new(Node { segment, next: ptr::null() }));
    let mut first = FIRST.load(Acquire);
    loop {
        // SAFETY: the node is ours alone until it is in the list.
        unsafe { (*node).next = first };
        match FIRST.compare_exchange_weak(first, node, AcqRel, Acquire) {
            // SAFETY: it is never freed, and never changed from now on.
            Ok(_) => return unsafe { &(*node).segment },
            Err(now) => first = now,
        }
    }
}

/// The segments, the youngest first, those that are closed among them.
fn segments() -> impl Iterator<Item = &'static Segment> {
    let mut next: *const Node = FIRST.load(Acquire);
    std::iter::from_fn(move || {
        // SAFETY: null, or a node of the list, which is never freed.
        let node = unsafe { next.as_ref() }?;
        next = node.next;
        Some(&node.segment)
    })
}

/// Tells of new code, with its `unwind` info unless `code.unwind` has a ready section; whatever was there before is
/// forgotten. Call it before the code runs. Whether the code lies in an arena of this process.
///
/// Of a code that is moved or replaced, only the new place is told. What died needs no word: it is known until its room
/// is used again.
pub fn announce(code: &code_image::Code<'_>, unwind: Option<&Unwind<'_>>) -> bool {
    segments()
        .filter(|segment| segment.contains(code.start))
        .any(|segment| segment.announce(code, unwind))
}

/// Whether the process ever made an arena: one load from memory.
#[inline]
#[must_use]
pub fn are_there() -> bool {
    !FIRST.load(Acquire).is_null()
}

/// Whether an address lies in the text of an arena that this process has, be it from the one it was forked from.
#[must_use]
pub fn contains(address: u64) -> bool {
    segments().any(|segment| segment.contains(address))
}

/// Whether an address lies in such an arena that the process's own loader has linked: then unwinders know its code by
/// themselves.
#[must_use]
pub fn is_linked(address: u64) -> bool {
    segments().any(|segment| segment.contains(address) && segment.is_linked())
}
