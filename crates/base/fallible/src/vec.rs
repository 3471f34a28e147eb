//! A `Vec` whose growth can fail.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut, RangeBounds};

use crate::{Refused, refuse};

/// [`std::vec::Vec`], except for its behaviour when an allocation is refused: see the [crate].
pub struct Vec<T>(std::vec::Vec<T>);

impl<T> Vec<T> {
    /// Creates an empty vector.
    #[must_use]
    pub const fn new() -> Self {
        Self(std::vec::Vec::new())
    }

    /// Creates an empty vector with capacity for at least this many elements.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let mut new = Self::new();
        if capacity > 0 && new.0.try_reserve_exact(capacity).is_err() {
            refuse();
        }
        new
    }

    /// Creates a vector of `count` copies of an element.
    #[must_use]
    pub fn repeated(element: T, count: usize) -> Self
    where
        T: Clone,
    {
        let mut new = Self::with_capacity(count);
        new.resize(count, element);
        new
    }

    /// Creates a vector from the elements of an array.
    #[must_use]
    pub fn from_array<const N: usize>(elements: [T; N]) -> Self {
        let mut new = Self::with_capacity(N);
        new.extend(elements);
        new
    }

    /// Converts into the vector of `std`.
    #[must_use]
    pub fn into_inner(self) -> std::vec::Vec<T> {
        self.0
    }

    /// The underlying vector, for functions that reserve space with [`std::vec::Vec::try_reserve`] themselves.
    pub fn inner_mut(&mut self) -> &mut std::vec::Vec<T> {
        &mut self.0
    }

    /// See [`std::vec::Vec::capacity`].
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Reserves space for at least `more` more elements.
    ///
    /// # Errors
    /// The allocation was refused; the vector is unchanged.
    #[inline]
    pub fn try_reserve(&mut self, more: usize) -> Result<(), Refused> {
        self.0.try_reserve(more).map_err(|_| Refused)
    }

    /// Reserves space for exactly `more` more elements.
    ///
    /// # Errors
    /// The allocation was refused; the vector is unchanged.
    pub fn try_reserve_exact(&mut self, more: usize) -> Result<(), Refused> {
        self.0.try_reserve_exact(more).map_err(|_| Refused)
    }

    /// Appends an element.
    ///
    /// # Errors
    /// The allocation was refused; the vector is unchanged.
    #[inline]
    pub fn try_push(&mut self, element: T) -> Result<(), Refused> {
        self.try_reserve(1)?;
        self.0.push(element);
        Ok(())
    }

    /// Ensures space for `more` more elements. Returns whether there is.
    #[inline]
    fn has_room(&mut self, more: usize) -> bool {
        if self.0.capacity().wrapping_sub(self.0.len()) < more {
            self.grow(more);
        }
        // Asked again, so that the compiler leaves out what `std` does if there is none.
        self.0.capacity().wrapping_sub(self.0.len()) >= more
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, more: usize) {
        if self.0.try_reserve(more).is_err() {
            refuse();
        }
    }

    /// Reserves space for at least `more` more elements.
    pub fn reserve(&mut self, more: usize) {
        self.has_room(more);
    }

    /// Reserves space for exactly `more` more elements.
    pub fn reserve_exact(&mut self, more: usize) {
        if self.0.try_reserve_exact(more).is_err() {
            refuse();
        }
    }

    /// See [`std::vec::Vec::push`].
    #[inline]
    pub fn push(&mut self, element: T) {
        if self.has_room(1) {
            self.0.push(element);
        }
    }

    /// See [`std::vec::Vec::insert`]. Appends if `at` is past the end.
    pub fn insert(&mut self, at: usize, element: T) {
        if self.has_room(1) {
            self.0.insert(at.min(self.0.len()), element);
        }
    }

    /// See [`std::vec::Vec::extend_from_slice`].
    #[inline]
    pub fn extend_from_slice(&mut self, elements: &[T])
    where
        T: Clone,
    {
        if self.has_room(elements.len()) {
            self.0.extend_from_slice(elements);
        }
    }

    /// See [`std::vec::Vec::resize`].
    pub fn resize(&mut self, len: usize, element: T)
    where
        T: Clone,
    {
        if self.has_room(len.saturating_sub(self.0.len())) {
            self.0.resize(len, element);
        }
    }

    /// See [`std::vec::Vec::append`].
    pub fn append(&mut self, other: &mut Self) {
        if self.has_room(other.len()) {
            self.0.append(&mut other.0);
        }
    }

    /// Splits off the elements from `at` on. If the allocation is refused, all stay in this vector.
    #[must_use]
    pub fn split_off(&mut self, at: usize) -> Self {
        let at = at.min(self.len());
        let mut upper = Self::new();
        if upper.has_room(self.len().saturating_sub(at)) {
            upper.0.extend(self.0.drain(at..));
        }
        upper
    }

    /// See [`std::vec::Vec::pop`].
    pub fn pop(&mut self) -> Option<T> {
        self.0.pop()
    }

    /// See [`std::vec::Vec::pop_if`].
    pub fn pop_if(&mut self, is_it: impl FnOnce(&mut T) -> bool) -> Option<T> {
        self.0.pop_if(is_it)
    }

    /// See [`std::vec::Vec::remove`], which panics if there is no such element.
    pub fn remove(&mut self, at: usize) -> T {
        self.0.remove(at)
    }

    /// See [`std::vec::Vec::swap_remove`], which panics if there is no such element.
    pub fn swap_remove(&mut self, at: usize) -> T {
        self.0.swap_remove(at)
    }

    /// See [`std::vec::Vec::clear`].
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// See [`std::vec::Vec::truncate`].
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// See [`std::vec::Vec::retain`].
    pub fn retain(&mut self, is_kept: impl FnMut(&T) -> bool) {
        self.0.retain(is_kept);
    }

    /// See [`std::vec::Vec::retain_mut`].
    pub fn retain_mut(&mut self, is_kept: impl FnMut(&mut T) -> bool) {
        self.0.retain_mut(is_kept);
    }

    /// See [`std::vec::Vec::drain`].
    pub fn drain(&mut self, range: impl RangeBounds<usize>) -> std::vec::Drain<'_, T> {
        self.0.drain(range)
    }

    /// See [`slice::sort_by_key`]: the sort is stable. `key` is called once for each element.
    pub fn sort_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        let mut order: Vec<(K, usize)> =
            self.0.iter().enumerate().map(|(index, element)| (key(element), index)).collect();
        if order.len() != self.0.len() {
            return; // refused
        }
        order.sort_unstable();
        // Each place of `order` holds the index that its element comes from. Elements move along the cycles of this
        // permutation.
        for start in 0..order.len() {
            let mut at = start;
            while let Some((_, place)) = order.get_mut(at) {
                let from = std::mem::replace(place, at);
                if from == start {
                    break;
                }
                self.0.swap(at, from);
                at = from;
            }
        }
    }

    /// See [`std::vec::Vec::dedup`].
    pub fn dedup(&mut self)
    where
        T: PartialEq,
    {
        self.0.dedup();
    }

    /// See [`std::vec::Vec::as_slice`].
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }

    /// Inserts `count` copies of an element before the one at `at`.
    pub fn insert_repeated(&mut self, at: usize, element: T, count: usize)
    where
        T: Clone,
    {
        if self.has_room(count) {
            let at = at.min(self.0.len());
            self.0.resize(self.0.len().saturating_add(count), element);
            if let Some(moved) = self.0.get_mut(at..) {
                moved.rotate_right(count);
            }
        }
    }
}

impl<T> Deref for Vec<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for Vec<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T> Extend<T> for Vec<T> {
    #[inline]
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        let elements = elements.into_iter();
        if !self.has_room(elements.size_hint().0) {
            return;
        }
        for element in elements {
            if !self.has_room(1) {
                return;
            }
            self.0.push(element);
        }
    }
}

impl<'a, T: Copy + 'a> Extend<&'a T> for Vec<T> {
    fn extend<I: IntoIterator<Item = &'a T>>(&mut self, elements: I) {
        self.extend(elements.into_iter().copied());
    }
}

impl<T> FromIterator<T> for Vec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut new = Self::new();
        new.extend(elements);
        new
    }
}

impl<T: Clone> From<&[T]> for Vec<T> {
    fn from(elements: &[T]) -> Self {
        let mut new = Self::with_capacity(elements.len());
        new.extend_from_slice(elements);
        new
    }
}

impl<T> From<std::vec::Vec<T>> for Vec<T> {
    fn from(elements: std::vec::Vec<T>) -> Self {
        Self(elements)
    }
}

impl<T> IntoIterator for Vec<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Vec<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Vec<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut()
    }
}

impl<T: Clone> Clone for Vec<T> {
    fn clone(&self) -> Self {
        Self::from(self.as_slice())
    }
}

impl<T> Default for Vec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Vec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Vec<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T: Eq> Eq for Vec<T> {}

impl<T: PartialEq<U>, U> PartialEq<[U]> for Vec<T> {
    fn eq(&self, other: &[U]) -> bool {
        self.0 == other
    }
}

impl<T: PartialEq<U>, U> PartialEq<&[U]> for Vec<T> {
    fn eq(&self, other: &&[U]) -> bool {
        self.0 == *other
    }
}

impl<T: PartialEq<U>, U, const N: usize> PartialEq<[U; N]> for Vec<T> {
    fn eq(&self, other: &[U; N]) -> bool {
        self.0 == other
    }
}

impl<T: PartialEq<U>, U, const N: usize> PartialEq<&[U; N]> for Vec<T> {
    fn eq(&self, other: &&[U; N]) -> bool {
        self.0 == *other
    }
}

impl<T: PartialEq<U>, U> PartialEq<std::vec::Vec<U>> for Vec<T> {
    fn eq(&self, other: &std::vec::Vec<U>) -> bool {
        self.0 == *other
    }
}

impl<T: Hash> Hash for Vec<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T> Borrow<[T]> for Vec<T> {
    fn borrow(&self) -> &[T] {
        self
    }
}

impl<T> AsRef<[T]> for Vec<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

/// Concatenates slices.
#[must_use]
pub fn concat<T: Clone>(parts: &[&[T]]) -> Vec<T> {
    let mut all =
        Vec::with_capacity(parts.iter().fold(0, |sum, part| sum.saturating_add(part.len())));
    for part in parts {
        all.extend_from_slice(part);
    }
    all
}

impl std::io::Write for Vec<u8> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Vec;
    use crate::{Refused, attempt};

    /// More than any allocator provides.
    const TOO_MANY: usize = isize::MAX as usize / 8;

    #[test]
    fn what_is_refused_changes_nothing() {
        let mut numbers = crate::vec![1_u64, 2];
        assert_eq!(attempt(|| numbers.reserve(TOO_MANY)), Err(Refused));
        assert_eq!(attempt(|| numbers.resize(TOO_MANY, 0)), Err(Refused));
        assert_eq!(attempt(|| numbers.insert_repeated(1, 0, TOO_MANY)), Err(Refused));
        assert_eq!(attempt(|| Vec::<u64>::with_capacity(TOO_MANY).len()), Err(Refused));
        assert_eq!(attempt(|| crate::vec![0_u64; TOO_MANY].len()), Err(Refused));
        assert_eq!(attempt(|| (0..TOO_MANY).collect::<Vec<usize>>().len()), Err(Refused));
        assert_eq!(numbers.try_reserve(TOO_MANY), Err(Refused));
        assert_eq!(numbers, [1, 2]);
    }

    #[test]
    fn sorting_is_stable() {
        for count in [0, 1, 2, 30, 1000] {
            let numbers = (0..count).map(|number: u32| (number * 7919 % 257 % 40, number));
            let mut of_std: std::vec::Vec<_> = numbers.clone().collect();
            let mut ours: Vec<_> = numbers.collect();
            of_std.sort_by_key(|number| number.0);
            ours.sort_by_key(|number| number.0);
            assert_eq!(ours, of_std);
        }
    }

    #[test]
    fn what_is_not_refused_is_as_in_std() {
        let mut numbers = crate::vec![1, 2, 3, 4];
        numbers.insert_repeated(1, 9, 2);
        assert_eq!(numbers, [1, 9, 9, 2, 3, 4]);
        let upper = numbers.split_off(4);
        assert_eq!((numbers.as_slice(), upper.as_slice()), (&[1, 9, 9, 2][..], &[3, 4][..]));
        numbers.insert(0, 7);
        numbers.extend(upper.iter().filter(|number| **number > 3));
        assert_eq!(numbers, [7, 1, 9, 9, 2, 4]);
        assert_eq!(crate::vec![5; 3], [5, 5, 5]);
    }
}
