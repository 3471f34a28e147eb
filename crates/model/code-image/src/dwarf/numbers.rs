//! Numbers for texts: paths of files, names of functions.

use fallible::{HashMap, Vec};

/// Up to this many texts are searched linearly. Most functions come from one file, and from a few files including
/// inlined code.
const FEW: usize = 8;

/// Numbers texts from 1, in the order of their addition.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers {
    /// The first texts, concatenated; `ends` holds the end of each.
    texts: Vec<u8>,
    ends: Vec<usize>,
    /// The other texts.
    more: HashMap<Vec<u8>, u64>,
}

impl Numbers {
    pub(super) fn clear(&mut self) {
        self.texts.clear();
        self.ends.clear();
        self.more.clear();
    }

    /// How many texts have a number.
    pub(super) fn len(&self) -> usize {
        self.ends.len().saturating_add(self.more.len())
    }

    pub(super) fn get(&self, text: &[u8]) -> Option<u64> {
        let mut start = 0;
        for (number, &end) in (1..).zip(&self.ends) {
            if self.texts.get(start..end) == Some(text) {
                return Some(number);
            }
            start = end;
        }
        if self.more.is_empty() { None } else { self.more.get(text).copied() }
    }

    /// Adds a text that has no number, and returns its number.
    pub(super) fn insert(&mut self, text: &[u8]) -> u64 {
        if self.ends.len() < FEW {
            self.texts.extend_from_slice(text);
            self.ends.push(self.texts.len());
            return self.ends.len() as u64;
        }
        let number = self.len() as u64 + 1;
        self.more.insert(Vec::from(text), number);
        number
    }
}
