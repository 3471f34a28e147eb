//! What is known of code that callgrind did not know.

use std::ops::Range;
use std::rc::Rc;

/// Who is at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The function's number, of the map's own choice.
    pub function: u32,
    /// Its first byte, where it is entered.
    pub start: u64,
    /// The addresses around the one asked for that are its own as well.
    pub visible: Range<u64>,
}

/// What a function is called. Readers of profiles take functions for one if all three are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: Rc<[u8]>,
    /// The object that it is in.
    pub object: Rc<[u8]>,
    /// The source file that it begins in; empty if unknown.
    pub file: Rc<[u8]>,
}

/// A place in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: Rc<[u8]>,
    /// The line, from 1.
    pub line: u32,
}

/// Who was where.
pub trait CodeMap {
    /// Who was at `address`.
    fn at(&mut self, address: u64) -> Option<Owner>;
    /// What a function that [`Self::at`] gave is called.
    fn function(&mut self, function: u32) -> Function;
    /// What of the source the instruction at `address` in a function is, if known.
    fn place(&mut self, function: u32, address: u64) -> Option<Place>;
}
