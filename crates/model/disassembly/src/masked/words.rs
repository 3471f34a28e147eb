//! Words between the instructions of a code that hold addresses.

use std::collections::BTreeSet;
use std::ops::Range;

/// The words of a code that are no instructions: those that its instructions load as addresses, and those that are addresses of the code itself, as tables of
/// jumps have them.
#[derive(Debug)]
pub struct Words<'c> {
    code: &'c [u8],
    address: u64,
    /// The size of an address in bytes.
    size: usize,
    /// The offsets of words that are loaded.
    loaded: BTreeSet<usize>,
}

impl<'c> Words<'c> {
    /// Of a code in which no word is known to be loaded.
    pub fn new(code: &'c [u8], address: u64, size: usize) -> Self {
        Self { code, address, size, loaded: BTreeSet::new() }
    }

    /// The addresses of the code.
    pub fn inside(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.code.len() as u64)
    }

    /// Notes that an instruction loads an address from `place`, if a whole word of the code is there.
    pub fn load(&mut self, place: u64) {
        let offset = place.checked_sub(self.address).and_then(|at| usize::try_from(at).ok());
        if let Some(offset) = offset
            && self.bytes(offset).is_some()
        {
            self.loaded.insert(offset);
        }
    }

    fn bytes(&self, offset: usize) -> Option<&'c [u8]> {
        self.code.get(offset..offset.checked_add(self.size)?)
    }

    /// The distance from the beginning of the code of what the word at `offset` is the address of, if it is one in the code. Words with addresses are aligned.
    fn own(&self, offset: usize) -> Option<u64> {
        let place = self.address.wrapping_add(offset as u64);
        if !place.is_multiple_of(self.size as u64) {
            return None;
        }
        let mut word = [0; 8];
        let bytes = self.bytes(offset)?;
        word.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let target = u64::from_le_bytes(word);
        self.inside().contains(&target).then(|| target.wrapping_sub(self.address))
    }

    /// Where the word ends that begins at `offset`; `None` if none does.
    pub fn end_of(&self, offset: usize) -> Option<usize> {
        let is_word = self.loaded.contains(&offset) || self.own(offset).is_some();
        if is_word { offset.checked_add(self.size) } else { None }
    }

    /// The first word that is loaded within these offsets.
    pub fn first_loaded(&self, offsets: Range<usize>) -> Option<usize> {
        if offsets.is_empty() { None } else { self.loaded.range(offsets).next().copied() }
    }

    /// Writes what is left of the word at `offset`: the distance within the code, or zero.
    pub fn write(&self, offset: usize, bytes: &mut [u8]) {
        let left = self.own(offset).unwrap_or(0).to_le_bytes();
        if let Some(end) = offset.checked_add(self.size)
            && let Some(field) = bytes.get_mut(offset..end)
            && let Some(left) = left.get(..self.size)
        {
            field.copy_from_slice(left);
        }
    }
}
