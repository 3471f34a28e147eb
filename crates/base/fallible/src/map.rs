//! A sorted map whose growth can fail.

use std::fmt;
use std::ops::{Bound, RangeBounds};

use crate::{Refused, Vec, refuse};

/// Maximum number of entries in a chunk.
const CHUNK: usize = 128;

/// A map sorted by key: [`std::collections::BTreeMap`], except for its behaviour when an allocation is refused (see
/// the [crate]).
///
/// Entries are stored in sorted chunks of up to 128, and the chunks in one list. Inserting in ascending order fills
/// each chunk completely.
pub struct Map<K, V> {
    /// No chunk is empty.
    chunks: Vec<Vec<(K, V)>>,
    len: usize,
}

impl<K: Ord, V> Map<K, V> {
    /// Creates an empty map.
    #[must_use]
    pub const fn new() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the map has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The position of the first entry for which `is_before` is false: the chunk, and the index in it. The index
    /// equals the chunk's length only for the last chunk.
    #[inline]
    fn place(&self, is_before: impl Fn(&K) -> bool) -> (usize, usize) {
        let ends_before = |chunk: &Vec<(K, V)>| chunk.last().is_some_and(|last| is_before(&last.0));
        let Some((last, chunks)) = self.chunks.split_last() else { return (0, 0) };
        // Most look-ups are for a key behind all others or among the last.
        let at = match chunks.last() {
            Some(before) if !ends_before(before) => chunks.partition_point(ends_before),
            _ => chunks.len(),
        };
        let chunk = self.chunks.get(at).unwrap_or(last);
        (at, chunk.partition_point(|entry| is_before(&entry.0)))
    }

    #[inline]
    fn entry(&self, (chunk, at): (usize, usize)) -> Option<&(K, V)> {
        self.chunks.get(chunk)?.get(at)
    }

    #[inline]
    fn found(&self, key: &K) -> Option<(usize, usize)> {
        let place = self.place(|other| other < key);
        self.entry(place).filter(|entry| entry.0 == *key).map(|_| place)
    }

    /// The value for a key.
    #[inline]
    pub fn get(&self, key: &K) -> Option<&V> {
        let place = self.place(|other| other < key);
        self.entry(place).filter(|entry| entry.0 == *key).map(|entry| &entry.1)
    }

    /// The value for a key.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (chunk, at) = self.found(key)?;
        self.chunks.get_mut(chunk)?.get_mut(at).map(|entry| &mut entry.1)
    }

    /// Whether the map contains the key.
    #[must_use]
    pub fn contains_key(&self, key: &K) -> bool {
        self.found(key).is_some()
    }

    /// Inserts a value and returns the key's previous value.
    ///
    /// # Errors
    /// The allocation was refused; the map is unchanged. The error contains the value.
    pub fn try_insert(&mut self, key: K, value: V) -> Result<Option<V>, (Refused, V)> {
        let place = self.place(|other| *other < key);
        if let Some((_, old)) = self
            .chunks
            .get_mut(place.0)
            .and_then(|chunk| chunk.get_mut(place.1))
            .filter(|entry| entry.0 == key)
        {
            return Ok(Some(std::mem::replace(old, value)));
        }
        match self.room(place) {
            Ok((chunk, at)) => {
                if let Some(chunk) = self.chunks.get_mut(chunk) {
                    // `room` reserved the space.
                    chunk.inner_mut().insert(at, (key, value));
                    self.len = self.len.saturating_add(1);
                }
                Ok(None)
            }
            Err(refused) => Err((refused, value)),
        }
    }

    /// Inserts a value and returns the key's previous value.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.try_insert(key, value) {
            Ok(old) => old,
            Err((Refused, _)) => {
                refuse();
                None
            }
        }
    }

    /// Makes space for one more entry at a position, and returns where that position is now.
    fn room(&mut self, (chunk, at): (usize, usize)) -> Result<(usize, usize), Refused> {
        let count = self.chunks.len();
        let Some(full) = self.chunks.get_mut(chunk) else {
            let mut first = Vec::new();
            first.try_reserve(1)?;
            self.chunks.try_push(first)?;
            return Ok((0, 0));
        };
        if full.len() < CHUNK {
            full.try_reserve(1)?;
            return Ok((chunk, at));
        }
        // Behind all other entries, a new chunk begins. Elsewhere, half of the full chunk moves to a new one.
        let is_behind_all = at == full.len() && chunk.saturating_add(1) == count;
        let from = if is_behind_all { CHUNK } else { CHUNK / 2 };
        let mut upper = Vec::new();
        upper.try_reserve_exact(CHUNK)?;
        self.chunks.try_reserve(1)?;
        if let Some(full) = self.chunks.get_mut(chunk) {
            upper.inner_mut().extend(full.drain(from..));
        }
        self.chunks.inner_mut().insert(chunk.saturating_add(1), upper);
        Ok(match at.checked_sub(from) {
            Some(at) if at > 0 || is_behind_all => (chunk.saturating_add(1), at),
            _ => (chunk, at),
        })
    }

    /// Changes the key of an entry, if the entries are still sorted then. Returns whether they are, and `None` without such an
    /// entry.
    pub fn rename(&mut self, key: &K, new: K) -> Option<bool> {
        let place = self.found(key)?;
        let is_above = |before: (&K, &V)| *before.0 < new;
        let is_below = |(after, _): &(K, V)| new < *after;
        let behind = match self.entry((place.0, place.1.saturating_add(1))) {
            None => self.entry((place.0.saturating_add(1), 0)),
            within => within,
        };
        let is_sorted = self.before(place).is_none_or(is_above) && behind.is_none_or(is_below);
        if is_sorted
            && let Some(entry) =
                self.chunks.get_mut(place.0).and_then(|chunk| chunk.get_mut(place.1))
        {
            entry.0 = new;
        }
        Some(is_sorted)
    }

    /// Removes the entry of a key and returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let (number, at) = self.found(key)?;
        let chunk = self.chunks.get_mut(number)?;
        let (_, value) = chunk.remove(at);
        self.len = self.len.saturating_sub(1);
        if chunk.is_empty() {
            self.chunks.remove(number);
        } else if chunk.len() < CHUNK / 4 {
            self.join(number);
            if let Some(before) = number.checked_sub(1) {
                self.join(before);
            }
        }
        Some(value)
    }

    /// Joins a chunk with the next if both are small, so that few chunks remain after most entries are removed. If
    /// the allocation is refused, they stay separate.
    fn join(&mut self, number: usize) {
        let next = number.saturating_add(1);
        let Ok([small, other]) = self.chunks.get_disjoint_mut([number, next]) else { return };
        if small.len().saturating_add(other.len()) <= CHUNK / 2
            && small.try_reserve(other.len()).is_ok()
        {
            small.append(other);
            self.chunks.remove(next);
        }
    }

    /// See [`std::collections::BTreeMap::retain`]. It does not allocate.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&K, &mut V) -> bool) {
        for chunk in &mut self.chunks {
            chunk.retain_mut(|(key, value)| is_kept(key, value));
        }
        self.chunks.retain(|chunk| !chunk.is_empty());
        self.len = self.chunks.iter().fold(0, |sum, chunk| sum.saturating_add(chunk.len()));
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.chunks.clear();
        self.len = 0;
    }

    /// The entry with the smallest key.
    #[must_use]
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.chunks.first()?.first().map(|(key, value)| (key, value))
    }

    /// The entry with the greatest key.
    #[must_use]
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.chunks.last()?.last().map(|(key, value)| (key, value))
    }

    /// The last entry whose key is less than `key`.
    #[inline]
    pub fn last_below(&self, key: &K) -> Option<(&K, &V)> {
        self.before(self.place(|other| other < key))
    }

    /// The last entry whose key is not greater than `key`.
    #[inline]
    pub fn last_up_to(&self, key: &K) -> Option<(&K, &V)> {
        self.before(self.place(|other| other <= key))
    }

    /// The first entry whose key is not less than `key`.
    pub fn first_from(&self, key: &K) -> Option<(&K, &V)> {
        self.entry(self.place(|other| other < key)).map(|(key, value)| (key, value))
    }

    #[inline]
    fn before(&self, (chunk, at): (usize, usize)) -> Option<(&K, &V)> {
        let entry = match at.checked_sub(1) {
            Some(at) => self.entry((chunk, at)),
            None => self.chunks.get(chunk.checked_sub(1)?)?.last(),
        };
        entry.map(|(key, value)| (key, value))
    }

    /// The positions of the first entry of a range and of the entry behind its last.
    fn places(&self, range: &impl RangeBounds<K>) -> ((usize, usize), (usize, usize)) {
        let first = match range.start_bound() {
            Bound::Unbounded => (0, 0),
            Bound::Included(key) => self.place(|other| other < key),
            Bound::Excluded(key) => self.place(|other| other <= key),
        };
        let last = match range.end_bound() {
            Bound::Unbounded => (self.chunks.len(), 0),
            Bound::Included(key) => self.place(|other| other <= key),
            Bound::Excluded(key) => self.place(|other| other < key),
        };
        (first, last.max(first))
    }

    /// The entries whose keys are in a range.
    #[inline]
    pub fn range(&self, range: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        let (first, last) = self.places(&range);
        let chunks = self.chunks.get(first.0..).unwrap_or_default();
        let count = last.0.saturating_sub(first.0).saturating_add(usize::from(last.1 > 0));
        let chunks = chunks.get(..count).unwrap_or(chunks);
        chunks.iter().enumerate().flat_map(move |(number, chunk)| {
            let from = if number == 0 { first.1 } else { 0 };
            let is_last = number.saturating_add(first.0) == last.0;
            let to = if is_last { last.1 } else { chunk.len() };
            chunk.get(from..to).unwrap_or_default().iter().map(|(key, value)| (key, value))
        })
    }

    /// The entries whose keys are in a range.
    pub fn range_mut(
        &mut self,
        range: impl RangeBounds<K>,
    ) -> impl DoubleEndedIterator<Item = (&K, &mut V)> {
        let (first, last) = self.places(&range);
        let chunks = self.chunks.get_mut(first.0..).unwrap_or_default();
        let count = last.0.saturating_sub(first.0).saturating_add(usize::from(last.1 > 0));
        let chunks = match chunks.len() {
            all if count < all => chunks.split_at_mut(count).0,
            _ => chunks,
        };
        chunks.iter_mut().enumerate().flat_map(move |(number, chunk)| {
            let from = if number == 0 { first.1 } else { 0 };
            let is_last = number.saturating_add(first.0) == last.0;
            let to = if is_last { last.1 } else { chunk.len() };
            chunk
                .get_mut(from..to)
                .unwrap_or_default()
                .iter_mut()
                .map(|(key, value)| (&*key, value))
        })
    }

    /// All entries.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> + Clone {
        self.chunks.iter().flat_map(|chunk| chunk.iter().map(|(key, value)| (key, value)))
    }

    /// All values.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> {
        self.chunks.iter_mut().flat_map(|chunk| chunk.iter_mut().map(|(_, value)| value))
    }

    /// Consumes the map and returns all values.
    pub fn into_values(self) -> impl Iterator<Item = V> {
        self.chunks.into_iter().flat_map(|chunk| chunk.into_iter().map(|(_, value)| value))
    }

    /// All keys.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + Clone {
        self.iter().map(|(key, _)| key)
    }

    /// All values.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + Clone {
        self.iter().map(|(_, value)| value)
    }
}

/// Without all entries if an allocation is refused.
impl<K: Clone, V: Clone> Clone for Map<K, V> {
    fn clone(&self) -> Self {
        let mut chunks = self.chunks.clone();
        chunks.retain(|chunk| !chunk.is_empty());
        let len = chunks.iter().fold(0, |sum: usize, chunk| sum.saturating_add(chunk.len()));
        Self { chunks, len }
    }
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Map<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut new = Self::new();
        for (key, value) in entries {
            new.insert(key, value);
        }
        new
    }
}

impl<K: Ord + fmt::Debug, V: fmt::Debug> fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{CHUNK, Map};

    fn check(map: &Map<u32, u32>, model: &BTreeMap<u32, u32>) {
        assert_eq!(map.len(), model.len());
        assert!(map.iter().eq(model.iter()));
        assert!(map.iter().rev().eq(model.iter().rev()));
        assert!(map.chunks.iter().all(|chunk| (1..=CHUNK).contains(&chunk.len())));
        assert_eq!(map.last_key_value(), model.last_key_value());
        assert_eq!(map.first_key_value(), model.first_key_value());
    }

    proptest! {
        #[test]
        fn it_holds_what_a_btree_map_holds(
            operations in proptest::collection::vec((0..5_u8, 0..600_u32, 0..600_u32), 0..1500),
        ) {
            let (mut map, mut model) = (Map::new(), BTreeMap::new());
            for (kind, key, other) in operations {
                match kind {
                    0 | 1 => prop_assert_eq!(map.insert(key, other), model.insert(key, other)),
                    2 => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                    3 => {
                        let between = key.min(other)..=key.max(other);
                        let is_only = model.range(between).all(|(at, _)| *at == key);
                        let expected = model.contains_key(&key).then_some(is_only);
                        prop_assert_eq!(map.rename(&key, other), expected);
                        if expected == Some(true) {
                            let value = model.remove(&key).unwrap();
                            model.insert(other, value);
                        }
                    }
                    _ => {
                        prop_assert_eq!(map.get(&key), model.get(&key));
                        prop_assert!(map.range(..key).rev().eq(model.range(..key).rev()));
                        prop_assert!(map.range(key..).eq(model.range(key..)));
                        prop_assert_eq!(map.last_below(&key), model.range(..key).next_back());
                        prop_assert_eq!(map.last_up_to(&key), model.range(..=key).next_back());
                        prop_assert_eq!(map.first_from(&key), model.range(key..).next());
                        let (from, to) = (key.min(other), key.max(other));
                        prop_assert!(map.range(from..=to).eq(model.range(from..=to)));
                        for (_, value) in map.range_mut(from..to) { *value += 1; }
                        for (_, value) in model.range_mut(from..to) { *value += 1; }
                    }
                }
            }
            check(&map, &model);
            check(&map.clone(), &model);
            prop_assert!(map.into_values().eq(model.into_values()));
        }
    }

    #[test]
    fn ascending_and_descending_keys_fill_chunks() {
        let ascending: Map<u32, u32> = (0..100_000).map(|key| (key, key)).collect();
        assert_eq!(ascending.chunks.len(), 100_000_usize.div_ceil(CHUNK));
        let mut descending: Map<u32, u32> = (0..100_000).rev().map(|key| (key, key)).collect();
        assert!(descending.chunks.len() <= 2 * 100_000_usize.div_ceil(CHUNK));
        // After most entries are removed, few chunks remain.
        for key in 0..100_000 {
            if key % 1000 != 0 {
                descending.remove(&key);
            }
        }
        assert!(descending.chunks.len() < 20, "{}", descending.chunks.len());
    }
}
