//! Numbers of some codes.

use std::num::NonZeroU32;

use code_timeline::CodeId;

/// A number for each of some codes. A table by code, with four bytes for each, is read and filled faster than one by hash.
#[derive(Debug, Default)]
pub struct CodeNumbers(Vec<Option<NonZeroU32>>);

impl CodeNumbers {
    /// Of `codes` codes, none of which has a number yet.
    pub fn new(codes: usize) -> Self {
        Self(vec![None; codes])
    }

    /// The number of a code.
    pub fn get(&self, code: CodeId) -> Option<usize> {
        let above = (*self.0.get(code.index())?)?;
        usize::try_from(above.get() - 1).ok()
    }

    /// Gives a code a number.
    pub fn set(&mut self, code: CodeId, number: usize) {
        if let Some(place) = self.0.get_mut(code.index()) {
            *place = above(number);
        }
    }
}

/// How a number is kept: 0 stands for none.
fn above(number: usize) -> Option<NonZeroU32> {
    NonZeroU32::MIN.checked_add(u32::try_from(number).ok()?)
}
