//! Numbers of texts.

use std::hash::{BuildHasher, RandomState};

use fallible::Vec;

/// Different texts, numbered from 1 in the order in which they came.
///
/// This is not a hash map: there are only pointers into the middle of such a map's memory, which memcheck takes for lost then. The
/// leak check of a host's tests would fail.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// One after the other.
    texts: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    /// The numbers, each at the first place from that of its text's hash on that was free, which has 0. At most half of them are
    /// taken, and their count is a power of 2.
    slots: Vec<u32>,
    hash: RandomState,
}

impl Numbers {
    /// The number of a text.
    pub(crate) fn get(&self, text: &[u8]) -> Option<u32> {
        let numbers = self.places(text).filter_map(|place| self.slots.get(place).copied());
        numbers.take_while(|number| *number != 0).find(|number| self.text(*number) == Some(text))
    }

    /// Adds a text, which must not be there yet.
    pub(crate) fn add(&mut self, text: &[u8]) -> u32 {
        self.texts.extend_from_slice(text);
        self.ends.push(self.texts.len());
        let number = self.ends.len() as u32;
        if self.ends.len() * 2 > self.slots.len() {
            self.slots = Vec::repeated(0, (self.slots.len() * 2).max(16));
            (1..number).for_each(|earlier| self.place(earlier));
        }
        self.place(number);
        number
    }

    fn place(&mut self, number: u32) {
        let Some(text) = self.text(number) else { return };
        let is_free = |place: &usize| self.slots.get(*place) == Some(&0);
        let free = self.places(text).find(is_free);
        if let Some(slot) = free.and_then(|place| self.slots.get_mut(place)) {
            *slot = number;
        }
    }

    /// The places where a text may be, the first one first.
    fn places(&self, text: &[u8]) -> impl Iterator<Item = usize> + use<> {
        let count = self.slots.len();
        let first = self.hash.hash_one(text) as usize;
        (0..count).map(move |further| first.wrapping_add(further) & (count - 1))
    }

    fn text(&self, number: u32) -> Option<&[u8]> {
        let place = (number as usize).checked_sub(1)?;
        let start = place.checked_sub(1).map_or(Some(&0), |before| self.ends.get(before))?;
        self.texts.get(*start..*self.ends.get(place)?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn each_text_keeps_its_number() {
        let mut numbers = Numbers::default();
        let mut known: HashMap<std::vec::Vec<u8>, u32> = HashMap::new();
        for step in 0..3_000_u32 {
            // Half of them come again; some are parts of others, and one is empty.
            let text = std::vec![b'a'; ((step * 7) % 500) as usize];
            let text = [&text[..], if step % 3 == 0 { b"" } else { b"b" }].concat();
            assert_eq!(numbers.get(&text), known.get(&text).copied(), "{step}");
            if !known.contains_key(&text) {
                let number = numbers.add(&text);
                assert_eq!(number as usize, known.len() + 1);
                known.insert(text, number);
            }
        }
        assert_eq!(known.len(), 1_000);
        assert!(known.iter().all(|(text, number)| numbers.get(text) == Some(*number)));
    }
}
