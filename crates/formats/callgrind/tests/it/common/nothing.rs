//! A map of nothing.

use callgrind_profile::{CodeMap, Function, Owner, Place};

/// A map that knows no code.
pub struct Nothing;

impl CodeMap for Nothing {
    fn at(&mut self, _: u64) -> Option<Owner> {
        None
    }

    fn function(&mut self, _: u32) -> Function {
        unreachable!("no code is at any address")
    }

    fn place(&mut self, _: u32, _: u64) -> Option<Place> {
        None
    }
}
