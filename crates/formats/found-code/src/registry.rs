//! The codes that are there, and what a poll reads from.

use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::code::{Change, FoundCode};
use crate::limits;
use crate::mapped::Mapped;

/// The codes that are there.
#[derive(Debug, Default)]
pub struct Codes {
    next: u64,
    /// The number of the code that begins at an address.
    at: HashMap<u64, u64>,
    /// Where the code with a number begins.
    address: HashMap<u64, u64>,
}

/// What a poll reads from.
pub struct Context<'p, M: ?Sized> {
    pub memory: &'p M,
    pub mapped: &'p Mapped,
    pub last: u64,
    /// How many structures are still examined.
    left: Cell<u64>,
}

impl<'p, M: ?Sized> Context<'p, M> {
    pub fn new(memory: &'p M, mapped: &'p Mapped, last: u64) -> Self {
        Self { memory, mapped, last, left: Cell::new(limits::EXAMINED) }
    }

    /// Counts structures that are examined. `false` if there were too many.
    pub fn examine(&self, count: u64) -> bool {
        let left = self.left.get().checked_sub(count);
        self.left.set(left.unwrap_or_default());
        left.is_some()
    }
}

/// Tells of codes that appear and go.
pub struct Registry<'r> {
    codes: &'r mut Codes,
    each: &'r mut dyn FnMut(Change),
}

impl Codes {
    /// Whether there are as many as are reported.
    pub fn is_full(&self) -> bool {
        self.at.len() >= limits::CODES
    }
}

impl<'r> Registry<'r> {
    pub fn new(codes: &'r mut Codes, each: &'r mut dyn FnMut(Change)) -> Self {
        Self { codes, each }
    }

    /// Adds a code. `None` if there is one at its address, or if there are too many.
    pub fn add(&mut self, code: FoundCode, since: u64) -> Option<u64> {
        if self.codes.is_full() {
            return None;
        }
        let id = self.codes.next;
        match self.codes.at.entry(code.address) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(place) => place.insert(id),
        };
        self.codes.address.insert(id, code.address);
        self.codes.next = id.saturating_add(1);
        (self.each)(Change::Found { id, code, since });
        Some(id)
    }

    /// Removes a code.
    pub fn remove(&mut self, id: u64) {
        if let Some(address) = self.codes.address.remove(&id) {
            self.codes.at.remove(&address);
            (self.each)(Change::Gone { id });
        }
    }
}
