//! A `VecDeque` whose growth can fail.

use std::fmt;
use std::ops::{Deref, RangeBounds};

use crate::{Refused, refuse};

/// [`std::collections::VecDeque`], except for its behaviour when an allocation is refused: see the [crate].
pub struct VecDeque<T>(std::collections::VecDeque<T>);

impl<T> VecDeque<T> {
    /// Creates an empty deque.
    #[must_use]
    pub const fn new() -> Self {
        Self(std::collections::VecDeque::new())
    }

    /// Reserves space for at least `more` more elements.
    ///
    /// # Errors
    /// The allocation was refused; the deque is unchanged.
    pub fn try_reserve(&mut self, more: usize) -> Result<(), Refused> {
        self.0.try_reserve(more).map_err(|_| Refused)
    }

    /// Appends an element.
    ///
    /// # Errors
    /// The allocation was refused; the deque is unchanged.
    pub fn try_push_back(&mut self, element: T) -> Result<(), Refused> {
        self.try_reserve(1)?;
        self.0.push_back(element);
        Ok(())
    }

    /// Appends an element.
    pub fn push_back(&mut self, element: T) {
        if self.try_push_back(element).is_err() {
            refuse();
        }
    }

    /// Removes the first element and returns it.
    pub fn pop_front(&mut self) -> Option<T> {
        self.0.pop_front()
    }

    /// The element at an index, mutable.
    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.0.get_mut(at)
    }

    /// Removes the element at an index and returns it.
    pub fn remove(&mut self, at: usize) -> Option<T> {
        self.0.remove(at)
    }

    /// Removes the elements in a range and returns them.
    pub fn drain(
        &mut self,
        range: impl RangeBounds<usize>,
    ) -> std::collections::vec_deque::Drain<'_, T> {
        self.0.drain(range)
    }
}

impl<T> Deref for VecDeque<T> {
    type Target = std::collections::VecDeque<T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T> VecDeque<T> {
    /// The elements, mutable, from front to back.
    pub fn iter_mut(&mut self) -> std::collections::vec_deque::IterMut<'_, T> {
        self.0.iter_mut()
    }
}

impl<T> Default for VecDeque<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for VecDeque<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
