//! A hash map whose growth can fail.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;

use crate::{Refused, refuse};

/// [`std::collections::HashMap`], except for its behaviour when an allocation is refused: see the [crate].
pub struct HashMap<K, V>(std::collections::HashMap<K, V>);

impl<K: Eq + Hash, V> HashMap<K, V> {
    /// Creates an empty map.
    #[must_use]
    pub fn new() -> Self {
        Self(std::collections::HashMap::new())
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the map has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value for a key.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)
    }

    /// Inserts a value and returns the key's previous value.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if self.try_reserve(1).is_err() {
            refuse();
            return None;
        }
        self.0.insert(key, value)
    }

    /// Returns the value for a key. If there is none, inserts the value that `make` returns.
    pub fn find_or_insert(&mut self, key: K, make: impl FnOnce(&K) -> V) -> V
    where
        V: Copy,
    {
        if let Some(value) = self.0.get(&key) {
            return *value;
        }
        let value = make(&key);
        self.insert(key, value);
        value
    }

    /// See [`std::collections::HashMap::capacity`].
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// The value for a key.
    pub fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.0.get_mut(key)
    }

    /// Removes the entry of a key and returns its value.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.0.remove(key)
    }

    /// Reserves space for at least `more` more entries.
    ///
    /// # Errors
    /// The allocation was refused; the map is unchanged.
    pub fn try_reserve(&mut self, more: usize) -> Result<(), Refused> {
        self.0.try_reserve(more).map_err(|_| Refused)
    }

    /// Reserves space for at least `more` more entries.
    pub fn reserve(&mut self, more: usize) {
        if self.try_reserve(more).is_err() {
            refuse();
        }
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// All entries, in arbitrary order.
    pub fn iter(&self) -> std::collections::hash_map::Iter<'_, K, V> {
        self.0.iter()
    }

    /// All values, in arbitrary order.
    pub fn into_values(self) -> std::collections::hash_map::IntoValues<K, V> {
        self.0.into_values()
    }
}

impl<K: Eq + Hash, V> Default for HashMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Eq + Hash + Clone, V: Clone> Clone for HashMap<K, V> {
    fn clone(&self) -> Self {
        let mut new = Self::new();
        if new.try_reserve(self.len()).is_err() {
            refuse();
            return new;
        }
        for (key, value) in &self.0 {
            new.0.insert(key.clone(), value.clone());
        }
        new
    }
}

impl<K: Eq + Hash + fmt::Debug, V: fmt::Debug> fmt::Debug for HashMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
