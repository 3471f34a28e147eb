//! What the map knows about code that callgrind did not know.

use std::ops::Range;
use std::rc::Rc;

/// The function at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The function's number, which the map chooses.
    pub function: u32,
    /// Address of its first byte, where it is entered.
    pub start: u64,
    /// The range around the requested address that belongs to the same function.
    pub visible: Range<u64>,
}

/// How a function is named. Readers of profiles treat functions as one if all three fields are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: Rc<[u8]>,
    /// The object that contains it.
    pub object: Rc<[u8]>,
    /// The source file that it begins in; empty if unknown.
    pub file: Rc<[u8]>,
}

/// A position in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: Rc<[u8]>,
    /// The line, from 1.
    pub line: u32,
}

/// Answers which code was at which address.
pub trait CodeMap {
    /// The function at `address`.
    fn at(&mut self, address: u64) -> Option<Owner>;
    /// The names of a function that [`Self::at`] returned.
    fn function(&mut self, function: u32) -> Function;
    /// The source position of the instruction at `address` in a function, if known.
    fn place(&mut self, function: u32, address: u64) -> Option<Place>;

    /// Whether an object describes code that its process announced to callgrind. Lines of such code are missing, or wrong, if the
    /// code was freed or replaced before the profile was written.
    fn is_announced(&mut self, object: &[u8]) -> bool {
        let _ = object;
        false
    }

    /// The source position of the instruction at `address` of an announced function, if it differs from what the profile has.
    /// `function` is the name in the profile, with recursion level and callers, and `line` is the line there, 0 for none.
    fn announced_place(&mut self, function: &[u8], address: u64, line: u64) -> Option<Place> {
        let _ = (function, address, line);
        None
    }
}
