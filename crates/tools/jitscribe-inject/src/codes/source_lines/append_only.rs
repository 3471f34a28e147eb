//! A list that only grows. Its items stay where they are, so that other threads can keep references to them while more are added.

use std::sync::OnceLock;

/// Number of items in the first chunk; each further chunk has twice as many as the one before.
const FIRST: usize = 64;
/// Number of chunks: enough for 2^32 items.
const CHUNKS: usize = 27;

/// A list that only grows.
#[derive(Debug)]
pub struct AppendOnly<T> {
    chunks: [OnceLock<Chunk<T>>; CHUNKS],
}

type Chunk<T> = Box<[OnceLock<T>]>;

impl<T> Default for AppendOnly<T> {
    fn default() -> Self {
        Self { chunks: [const { OnceLock::new() }; CHUNKS] }
    }
}

impl<T> AppendOnly<T> {
    /// The item with this number.
    pub fn get(&self, number: usize) -> Option<&T> {
        let (chunk, at) = place(number)?;
        self.chunks.get(chunk)?.get()?.get(at)?.get()
    }

    /// Sets the item with this number, if it is not set, and returns it. Numbers are assigned in sequence, as memory is allocated for all
    /// numbers up to it. `None` if there are too many.
    pub fn set(&self, number: usize, item: T) -> Option<&T> {
        let (chunk, at) = place(number)?;
        let empty = || (0..FIRST << chunk).map(|_| OnceLock::new()).collect();
        let items = self.chunks.get(chunk)?.get_or_init(empty);
        Some(items.get(at)?.get_or_init(|| item))
    }
}

/// The chunk of an item, and its place in the chunk.
fn place(number: usize) -> Option<(usize, usize)> {
    let counted = number.checked_add(FIRST)?;
    let chunk = (counted / FIRST).ilog2() as usize;
    Some((chunk, counted - (FIRST << chunk)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_stay_where_they_are() {
        let list = AppendOnly::default();
        let items: Vec<&usize> =
            (0..1000).map(|number| list.set(number, number).expect("space")).collect();
        for (number, item) in items.into_iter().enumerate() {
            assert_eq!(*item, number);
            assert!(std::ptr::eq(item, list.get(number).expect("an item")));
        }
        assert_eq!(list.set(7, 8), Some(&7));
        assert_eq!(list.get(1000), None);
        assert_eq!(list.get(usize::MAX), None);
        assert_eq!(AppendOnly::default().set(usize::MAX, ()), None);
    }

    #[test]
    fn places_follow_one_another() {
        let places: Vec<_> = (0..FIRST * 7).filter_map(place).collect();
        let chunks = (0..3).flat_map(|chunk| (0..FIRST << chunk).map(move |at| (chunk, at)));
        assert!(places.into_iter().eq(chunks));
    }
}
